"""``kr`` whose every run is a process of its own that does not pay for the imports.

A server imports the program once and forks for each run; the ``kr`` on the path hands it its arguments,
environment, working directory and standard streams. Run as a module, with the socket's path, it is the server,
which ends with its standard input: it never outlives who started it.
"""

import atexit
import importlib
import json
import os
import pkgutil
import select
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path

from tests.support.stores import ROOT

_LATE = ("alembic.command", "sqlalchemy.dialects.sqlite")
"""What kr imports inside its functions, of the heavier kind."""

_CLIENT = """\
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect({path!r})
    told = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
    socket.send_fds(server, [len(told).to_bytes(4, "big")], [0, 1, 2])
    server.sendall(told)
    status = server.recv(1)
sys.exit(status[0] if status else 70)
"""


@contextmanager
def program(folder: Path) -> Iterator[Path]:
    """Put a ``kr`` into ``folder``, and keep its server running within the block."""
    # Socket paths are short, the folders of tests are not.
    with tempfile.TemporaryDirectory(prefix="kr-") as place:
        path = os.path.join(place, "socket")  # noqa: PTH118 - text is what sockets take
        client = folder / "client.py"
        client.write_text(_CLIENT.format(path=path))
        start = folder / "kr"
        start.write_text(f'#!/bin/sh\nexec {shlex.join([sys.executable, "-I", "-S", str(client)])} "$@"\n')
        start.chmod(0o755)
        command = [sys.executable, "-m", "tests.support.forked", path]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT) as server:
            assert server.stdout is not None
            assert server.stdout.readline() == b"ready\n"
            yield start


@cache
def shared() -> str:
    """Return the path of a ``kr`` that is there until this process ends."""
    kept = ExitStack()
    atexit.register(kept.close)
    folder = kept.enter_context(tempfile.TemporaryDirectory(prefix="kr-"))
    return str(kept.enter_context(program(Path(folder))))


def import_everything() -> None:
    """Import what a command may import, so that a fork does not."""
    from kr import __path__ as packages

    for module in pkgutil.walk_packages(packages, "kr."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    for name in _LATE:
        importlib.import_module(name)


def serve(path: str) -> None:
    """Answer until standard input ends. Each connection is one run."""
    import_everything()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the children report to the client, and need no reaping
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while listener in select.select([listener, sys.stdin], [], [])[0]:
            connection, _ = listener.accept()
            with connection:
                if os.fork() == 0:
                    listener.close()
                    _run(connection)


def _run(connection: socket.socket) -> None:
    from kr.cli.main import main

    status = 70
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        size, streams, _, _ = socket.recv_fds(connection, 4, 3)
        data = b""
        while len(data) < int.from_bytes(size, "big"):
            data += connection.recv(65536)
        arguments, folder, environ = json.loads(data)
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environ)
        try:
            status = main(arguments)
        except SystemExit as left:  # how click ends a completion
            status = int(left.code or 0)
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        connection.sendall(bytes([status]))
        os._exit(status)


if __name__ == "__main__":
    serve(sys.argv[1])
