"""Stand-ins for the MCP servers of Context7 and DeepWiki, on 127.0.0.1 and in child processes.

::

    with context7_server(Scenario(docs=["Rate limit exceeded. Please try again later."])) as server:
        run_kr(server.url)
        assert server.calls() == [Call("resolve-library-id", {...}), Call("query-docs", {...})]

One child process (``mcp_host.py``) serves every stand-in, each under a path of its own; it starts with the
first and ends with the test program. ``stdio_command`` gives the command of the same server over stdio.
"""

import atexit
import contextlib
import http.client
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

HERE = Path(__file__).parent

LIBRARIES = """Available Libraries:

- Title: vue-easytable
- Context7-compatible library ID: /huangshuwei/vue-easytable
- Description: Powerful data table based on Vue.js
- Code Snippets: 412
- Source Reputation: High
- Benchmark Score: 99.25
----------
- Title: Vue.js
- Context7-compatible library ID: /vuejs/docs
- Description: The documentation of Vue.js
- Code Snippets: 2512
- Source Reputation: High
- Benchmark Score: 91.5
- Versions: v3.5.1, v2.7.16
----------
- Title: Next.js
- Context7-compatible library ID: /vercel/next.js
- Description: The React framework for the web
- Code Snippets: 3200
- Source Reputation: High
- Benchmark Score: 92
- Versions: v15.1.8, v14.3.0-canary.87
"""

DOCS = """### Make an option repeatable

Source: https://github.com/vuejs/docs/blob/main/src/guide/options.md

Declare the option with `multiple` to take it more than once.

```js
const option = { multiple: true }
### not a title
Source: not a source
```

--------------------------------

### Options in depth

Source: https://vuejs.org/guide/options

An option is read once unless it says otherwise.
"""

WIKI = """## Options

An option is declared with `multiple`, see `src/options.ts`.

```ts
declare('--name', { multiple: true })
```

Wiki pages you might want to explore:
- [Options (vuejs/core)](https://deepwiki.com/vuejs/core/2.1)
- [Parser (vuejs/core)](https://deepwiki.com/vuejs/core/2.2)

View this search on DeepWiki: https://deepwiki.com/search/how-to-repeat_1234
"""


@dataclass(frozen=True)
class Raw:
    """An HTTP answer in place of MCP's. ``when`` is every request, or only those that call a tool.

    The body is ``body`` repeated; ``cut`` breaks the connection after it. ``{origin}`` in a header is the
    host's own origin. ``delay`` seconds pass before the first byte.
    """

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: str = ""
    repeat: int = 1
    cut: bool = False
    delay: float = 0.0
    when: Literal["always", "call"] = "always"


@dataclass(frozen=True)
class Scenario:
    """What a stand-in does. Texts are answered in turn, the last one again and again.

    ``resolve``, ``docs``: of Context7's two tools; ``wiki``: of DeepWiki's. ``is_error`` flags them as errors.
    ``old_names`` gives the tools their older names and arguments. ``legacy`` refuses the stateless protocol.
    """

    resolve: Sequence[str] = (LIBRARIES,)
    docs: Sequence[str] = (DOCS,)
    wiki: Sequence[str] = (WIKI,)
    is_error: bool = False
    old_names: bool = False
    legacy: bool = False
    delay: float = 0.0
    raw: Raw | None = None


class Call(NamedTuple):
    """A tool call that a stand-in saw."""

    tool: str
    arguments: dict[str, Any]


class Request(NamedTuple):
    """An HTTP request that a stand-in saw; header names are lower case."""

    method: str
    headers: dict[str, str]


@dataclass(frozen=True)
class StandIn:
    """A running stand-in."""

    origin: str
    key: str

    @property
    def url(self) -> str:
        return f"{self.origin}/{self.key}/mcp"

    def calls(self) -> list[Call]:
        """The tool calls so far, in order."""
        return [Call(*call) for call in self._seen()["calls"]]

    def requests(self) -> list[Request]:
        """The HTTP requests so far, in order."""
        return [Request(*request) for request in self._seen()["requests"]]

    def _seen(self) -> Any:
        return _control(self.origin, "GET", self.key, None)


@contextlib.contextmanager
def context7_server(scenario: Scenario | None = None) -> Iterator[StandIn]:
    """Serve a stand-in for Context7."""
    with _stand_in("context7", scenario or Scenario()) as stand_in:
        yield stand_in


@contextlib.contextmanager
def deepwiki_server(scenario: Scenario | None = None) -> Iterator[StandIn]:
    """Serve a stand-in for DeepWiki; it speaks the older protocol, as the real one does."""
    with _stand_in("deepwiki", scenario or Scenario(legacy=True)) as stand_in:
        yield stand_in


def stdio_command(kind: Literal["context7", "deepwiki"], scenario: Scenario) -> tuple[str, tuple[str, ...]]:
    """Give command and arguments of the same server over stdio."""
    return sys.executable, (str(HERE / "mcp_host.py"), "stdio", kind, json.dumps(asdict(scenario)))


_numbers = itertools.count(1)


@contextlib.contextmanager
def _stand_in(kind: str, scenario: Scenario) -> Iterator[StandIn]:
    origin = _Host.origin()
    key = f"{kind}-{next(_numbers)}"
    _control(origin, "PUT", key, {"kind": kind, "scenario": asdict(scenario)})
    try:
        yield StandIn(origin, key)
    finally:
        _control(origin, "DELETE", key, None)


def _control(origin: str, method: str, key: str, body: Any) -> Any:
    connection = http.client.HTTPConnection(origin.removeprefix("http://"), timeout=60)
    try:
        connection.request(method, f"/control/{key}", json.dumps(body), {"content-type": "application/json"})
        return json.loads(connection.getresponse().read())
    finally:
        connection.close()


class _Host:
    """The child process, one for each test process."""

    _started: tuple[int, "subprocess.Popen[bytes]", str] | None = None

    @classmethod
    def origin(cls) -> str:
        if cls._started is None or cls._started[0] != os.getpid() or cls._started[1].poll() is not None:
            cls._started = cls._start()
        return cls._started[2]

    @staticmethod
    def _start() -> tuple[int, "subprocess.Popen[bytes]", str]:
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen(128)
            process = subprocess.Popen(
                [sys.executable, str(HERE / "mcp_host.py"), "http", str(listener.fileno())],
                pass_fds=[listener.fileno()],
                stdin=subprocess.PIPE,  # it ends with us, however we end
            )
            port = listener.getsockname()[1]
        atexit.register(_stop, process, os.getpid())
        return os.getpid(), process, f"http://127.0.0.1:{port}"


def _stop(process: "subprocess.Popen[bytes]", owner: int) -> None:
    if os.getpid() != owner or process.poll() is not None:
        return
    process.send_signal(signal.SIGKILL)
    process.wait()
