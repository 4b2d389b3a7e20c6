"""What is known of an installed package, and of the documentation it ships (SPEC 3.5.5)."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """The text that the distribution carries about itself. ``content_type`` is a media type such as ``text/markdown``."""

    text: str
    content_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledPackage:
    """One installed package. Every path in it lies in ``root``, symbolic links resolved."""

    name: str
    version: str
    ecosystem: Literal["npm", "python"]
    root: Path
    """The package's folder; for Python the site-packages folder that its files are relative to."""
    documents: tuple[Path, ...] = ()
    """README and documentation files, the most telling first."""
    sources: tuple[Path, ...] = ()
    """Source files that carry documentation (``.py``, ``.d.ts``)."""
    templates: tuple[Path, ...] = ()
    """Files that the package ships as beginnings of its users' own."""
    offered: frozenset[str] | None = None
    """The names that an npm package's main entry exports; None where that is not known or all of them are."""
    related: "tuple[InstalledPackage, ...]" = ()
    """Packages that document names which this one hands on (``@vue/runtime-core`` for ``vue``)."""
    description: Description | None = None
    urls: tuple[tuple[str, str], ...] = ()
    """``(label, URL)`` as the metadata names them."""
    repository: str | None = None
    """``owner/repo`` on GitHub."""

    @property
    def home(self) -> str | None:
        """Return the address of the documentation, else of the home page; None when there is neither."""
        folded = {re.sub(r"[^a-z]", "", label.lower()): url for label, url in reversed(self.urls)}
        for label in ("documentation", "docs", "homepage", "home"):
            url = folded.get(label, "")
            if re.fullmatch(r"https?://[^\s<>\"'`]{1,500}", url) and url.isprintable():
                return url
        return None
