"""The program's entry, for ``kr`` and for ``python -m kr``."""

import gc
import os
import signal
import sys
import threading
from typing import NoReturn


def run() -> NoReturn:
    """Be the program. Until its own handlers are in place, Ctrl-C just ends it: there is nothing to clean up yet."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.disable()  # until there is more to do than to look something up (kr.cli.options.open_app)
    from kr.cli.main import main

    _leave(main())


def _leave(status: int) -> NoReturn:
    """End at once where nothing is left to be done: to take an interpreter apart costs a tenth of a hit."""
    if threading.active_count() == 1:
        try:
            for stream in (sys.stdout, sys.stderr):
                if stream is not None:
                    stream.flush()
        except (OSError, ValueError):  # the ordinary way tells what is wrong with it
            sys.exit(status)
        os._exit(status)
    sys.exit(status)


if __name__ == "__main__":
    run()
