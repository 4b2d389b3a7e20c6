"""Where kr's messages go, and how they read."""

import logging

from kr.text import strip_invisible


def configure_logging(*, verbose: bool) -> None:
    """Send kr's messages to standard error, all of them or warnings alone; other libraries only warn."""
    for level in (logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL):
        logging.addLevelName(level, logging.getLevelName(level).lower())  # as kr's other messages read
    handler = logging.StreamHandler()
    handler.addFilter(_show_plainly)
    logging.basicConfig(
        format="%(levelname)s: %(message)s", level=logging.WARNING, force=True, handlers=[handler]
    )
    logging.getLogger("kr").setLevel(logging.INFO if verbose else logging.WARNING)
    # It logs an interrupt that strikes while a connection closes as an error with its traceback, and raises it as well.
    logging.getLogger("sqlalchemy.pool").setLevel(logging.CRITICAL)


def _show_plainly(record: logging.LogRecord) -> bool:
    """Take out of a message what a terminal would obey: names of files and of settings may be hostile."""
    record.msg, record.args = strip_invisible(record.getMessage()), None
    return True
