"""The program's entry, for ``kr`` and for ``python -m kr``."""

import sys
from typing import NoReturn

from kr.cli.main import main


def run() -> NoReturn:
    sys.exit(main())


if __name__ == "__main__":
    run()
