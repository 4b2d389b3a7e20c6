"""The program's entry, for ``kr`` and for ``python -m kr``."""

import signal
import sys
from typing import NoReturn


def run() -> NoReturn:
    """Be the program. Until its own handlers are in place, Ctrl-C just ends it: there is nothing to clean up yet."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from kr.cli.main import main  # heavy

    sys.exit(main())


if __name__ == "__main__":
    run()
