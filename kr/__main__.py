"""``python -m kr`` is the same program as ``kr``."""

from kr.cli.main import run

if __name__ == "__main__":
    run()
