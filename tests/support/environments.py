"""Virtual environments of projects, with packages really installed in them."""

import shutil
from importlib.metadata import distribution
from pathlib import Path


def install_click(project: Path) -> None:
    """Put click, as it is installed here, into the ``.venv`` of a project: kr's own environment is never read."""
    site = project / ".venv" / "lib" / "python3.11" / "site-packages"
    for file in distribution("click").files or ():
        if ".." not in file.parts and file.suffix != ".pyc":
            (site / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(str(file.locate()), site / file)
