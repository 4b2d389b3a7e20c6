"""The packages of the project around a request: what it depends on, and what of it is installed."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from kr.packages.installed import find_installed
from kr.packages.versions import project_aliases
from kr.settings import Settings
from kr.text import fold


@dataclass(frozen=True)
class Packages:
    """What a folder's files and the settings say of packages. Everything is read when it is asked for."""

    settings: Settings
    environ: Mapping[str, str]
    cwd: Path

    @cached_property
    def folders(self) -> tuple[Path, ...]:
        """The projects whose packages count: where we are, then where the configuration is."""
        root = self.settings.project_root
        is_elsewhere = self.settings.config_file is not None and root.resolve() != self.cwd.resolve()
        return (self.cwd, root) if is_elsewhere else (self.cwd,)

    def aliases(self) -> dict[str, str]:
        """Return the names by which the project's packages are called otherwise; what the working directory's says counts."""
        return {
            name: package
            for folder in reversed(self.folders)
            for name, package in project_aliases(folder).items()
        }

    def repository(self, framework: str) -> str | None:
        """Return a framework's ``owner/repo``: configured, or named by the installed package."""
        for name, repository in self.settings.knowledge_research.repositories.items():
            if fold(name) == fold(framework):
                return repository
        found = find_installed(framework, self.folders, self.environ)
        return next((package.repository for package in found if package.repository), None)

    def depends_on(self, framework: str) -> tuple[str, ...]:
        """Return the packages that a framework's installed package depends on: their lessons fit, too."""
        found = find_installed(framework, self.folders, self.environ)
        return tuple(dict.fromkeys(name for package in found for name in package.requires))
