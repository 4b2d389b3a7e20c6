"""Who holds a lease or a reservation: a process that others on the same machine can look for.

A lease in the database ends by itself when its owner is dead. On one machine there is no need to wait for that:
the kernel knows which processes live.
"""

import os
import uuid
from functools import cache


def make_owner(pid: int | None = None) -> str:
    """Name a process (None: this one), and within it one piece of work: ``machine/pid/start/unique``."""
    return f"{_this_process(os.getpid()) if pid is None else _process(pid)}/{uuid.uuid4().hex}"


def _process(pid: int) -> str:
    return f"{_machine()}/{pid}/{_start(pid)}"


_this_process = cache(_process)
"""Of this process alone: another one's number may be given to somebody else."""


def living_pid(owner: str) -> int | None:
    """Return the number of an owner's process that certainly lives: None also where its start is not known."""
    parts = owner.split("/")
    return int(parts[1]) if is_alive(owner) and parts[2] else None


def is_alive(owner: str) -> bool | None:
    """Whether an owner's process lives; None when it can't be known from here (another machine, a foreign text)."""
    parts = owner.split("/")
    if len(parts) != 4 or parts[0] != _machine() or not parts[1].isdecimal():
        return None
    pid = int(parts[1])
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass  # it is another user's
    # The number may have been given to another process since; a zombie is dead, its parent just hasn't looked.
    return _start(pid) == parts[2] and _stat(pid)[:1] != ["Z"]


def _machine() -> str:
    """Name the machine, and the process number space within it: a container has one of its own."""
    try:
        space = os.readlink("/proc/self/ns/pid").strip("pid:[]")
    except OSError:
        space = ""
    return f"{os.uname().nodename}~{space}".replace("/", "_")


def _start(pid: int) -> str:
    return "".join(_stat(pid)[19:20])


def _stat(pid: int) -> list[str]:
    """Return the fields of a process behind its name: the state first, the 20th is when it started."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            text = file.read()
    except OSError:
        return []
    # The name in brackets may hold blanks and brackets itself.
    return text.rpartition(")")[2].split()
