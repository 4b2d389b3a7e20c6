"""The users' own rows of remedies: ``lessons/remedies.yaml`` in the knowledge base (SPEC 4.2)."""

import logging
from pathlib import Path

from kr.lessons.distill.remedies import Remedy, read_rows

logger = logging.getLogger(__name__)

NAME = "remedies.yaml"
_LARGEST = 1024 * 1024


def own_remedies(folder: Path) -> tuple[Remedy, ...]:
    """Read the rows beside the lessons file; what is wrong is told with its file and row, and costs only itself."""
    path = folder / NAME
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
    except FileNotFoundError:
        return ()
    except OSError as error:
        logger.warning("%s: %s; its remedies are not used", path, error.strerror or error)
        return ()
    if len(data) > _LARGEST:
        logger.warning("%s: larger than 1 MiB; its remedies are not used", path)
        return ()
    import yaml

    try:
        rows, problems = read_rows(yaml.safe_load(data))
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        logger.warning("%s: no YAML: %s; its remedies are not used", path, " ".join(str(error).split()))
        return ()
    for problem in problems:
        logger.warning("%s: %s; passed over", path, problem)
    return rows
