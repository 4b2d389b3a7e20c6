"""The signals that the children of the tests obey, however the suite was started."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_ENDING = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)
"""What a shell's background job, ``nohup`` and service managers have ignored."""


@contextmanager
def default_in_children() -> Iterator[None]:
    """Let programs that are started within the block end of the signals that this process ignores.

    A new program inherits an ignored signal, but has the default for one that is handled (POSIX, exec). So the
    ignored ones get a handler that does nothing, and this process ignores them as before.
    """
    ignored = [number for number in _ENDING if signal.getsignal(number) is signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, _do_nothing)
    try:
        yield
    finally:
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)


def _do_nothing(_number: int, _frame: FrameType | None) -> None:
    pass
