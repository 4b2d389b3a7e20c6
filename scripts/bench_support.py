"""What the benchmarks share: kr without sources, a filled knowledge base, and clients of MCP that cost next to nothing."""

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

KR = [sys.executable, "-m", "kr"]
FRAMEWORKS = 20
SUBJECTS = "virtual scrolling,form validation,lazy routes,retry policy,token refresh,batch inserts".split(",")
SIDES = "in tests,behind a proxy,on startup,per tenant,over websockets,after a crash,with workers".split(",")


def quiet(base: Path, **more: str) -> dict[str, str]:
    """Return the environment of a kr that has this knowledge base and no source."""
    kept = {name: it for name, it in os.environ.items() if not name.startswith(("KR_", "VIRTUAL_ENV"))}
    silent = {"KR_SOURCES": "[]", "KR_FALLBACK_IF_MCP_UNAVAILABLE": "null", "KR_LOCAL_DOCS": "false"}
    return {**kept, **silent, "KR_KNOWLEDGE_BASE_PATH": str(base), **more}


def fill(base: Path, entries: int) -> None:
    """Make a knowledge base of reports of usual size, about ``FRAMEWORKS`` frameworks."""
    from kr.models import Entry  # here, so that who measures memory begins with little
    from kr.store import saving
    from kr.store.engine import Store

    with Store(None, base, max_entries=entries + 100) as store:
        for number in range(entries):
            part, framework = divmod(number, FRAMEWORKS)
            subject = f"{SUBJECTS[part % len(SUBJECTS)]} {SIDES[part % len(SIDES)]}"
            entry = Entry(
                framework=f"bench{framework}",
                framework_version="1.0",
                topic=f"{subject} {part}",
                tags=tuple(subject.split()[:2]),
                confidence="medium",
                question=f"How is {subject} done, part {part}?",
            )
            lines = (f"Set `option_{part}_{line}` for {subject} and read it once more." for line in range(60))
            head = f"# {entry.framework} - {entry.topic}\n\n## Summary\n\nSet it once.\n\n## Details\n\n"
            saving.save(store, entry, f"{head}{' '.join(lines)}\n", datetime.now(UTC))


class Client:
    """Who calls tools; ``process`` is the server, where it has one of its own."""

    process: "subprocess.Popen[bytes] | None" = None

    def send(self, message: dict[str, Any]) -> dict[str, Any]:
        """Send a message and return the answer; a notification, which has no id, has none."""
        raise NotImplementedError

    def say(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        return self.send({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})

    def begin(self) -> None:
        client = {"name": "bench", "version": "1"}
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
        self.say("initialize", hello)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def call(self, tool: str, given: dict[str, Any]) -> dict[str, Any]:
        """Return what the tool answered, with ``is_error``."""
        answer = self.say("tools/call", {"name": tool, "arguments": given})
        result = answer.get("result") or {"structuredContent": answer, "isError": True}
        return {**(result.get("structuredContent") or result), "is_error": result.get("isError", False)}

    def end(self) -> None:
        """Hang up."""


class Stdio(Client):
    """A client with a ``kr mcp`` of its own."""

    def __init__(self, environ: dict[str, str], folder: Path) -> None:
        self.process = subprocess.Popen(
            [*KR, "mcp"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environ,
            cwd=folder,
        )
        self.begin()

    def send(self, message: dict[str, Any]) -> dict[str, Any]:
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = {} if "id" in message else {"id": None}
        while "id" not in answer:
            answer = json.loads(self.process.stdout.readline())
        return answer

    def end(self) -> None:
        self.process.stdin.close()
        self.process.wait()


class Http(Client):
    """A session of a shared ``kr serve``."""

    def __init__(self, url: str) -> None:
        import http.client

        self._connection = http.client.HTTPConnection(urlsplit(url).netloc)
        self._headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        self.begin()

    def send(self, message: dict[str, Any]) -> dict[str, Any]:
        body = json.dumps(message).encode()
        try:
            self._connection.request("POST", "/mcp", body, self._headers)
            answer = self._connection.getresponse()
        except ConnectionError:  # it was idle for so long that the server closed it
            self._connection.close()
            self._connection.request("POST", "/mcp", body, self._headers)
            answer = self._connection.getresponse()
        if session := answer.getheader("mcp-session-id"):
            self._headers["Mcp-Session-Id"] = session
        lines = [it.removeprefix("data:") for it in answer.read().decode().splitlines()]
        told: list[dict[str, Any]] = [json.loads(it) for it in lines if it.strip().startswith("{")]
        return told[-1] if told else {}

    def end(self) -> None:
        self._connection.close()


def cpu_of(pid: int) -> float:
    """Return the seconds of CPU that a process and what it has started and waited for have used; Linux alone."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(fields[at]) for at in (11, 12, 13, 14)) / os.sysconf("SC_CLK_TCK")
