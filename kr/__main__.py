"""The program's entry, for ``kr`` and for ``python -m kr``."""

import gc
import signal
import sys
from typing import NoReturn


def run() -> NoReturn:
    """Be the program. Until its own handlers are in place, Ctrl-C just ends it: there is nothing to clean up yet."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.set_threshold(50_000)  # imports make many objects that stay: they need no look again and again
    from kr.cli.main import main  # heavy

    status = main()
    gc.freeze()  # nor at the end, where the interpreter would look at everything before it lets go of it
    sys.exit(status)


if __name__ == "__main__":
    run()
