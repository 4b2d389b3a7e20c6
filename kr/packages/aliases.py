"""Package names of a project's dependency files as other names of its frameworks (SPEC 3.2, "Candidates")."""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from kr.matching.frameworks import canonical, is_usual_name
from kr.packages.dependencies import Dependency, find_dependencies

_MARKS = "/:"


def project_aliases(project_dir: Path) -> dict[str, str]:
    """Read the dependency files of a project and return ``other name: package``, see :func:`package_aliases`.

    It costs reading and parsing every dependency file: ask when the cache has no entry under the name itself.
    """
    return package_aliases(find_dependencies(project_dir).dependencies)


def package_aliases(dependencies: Iterable[Dependency]) -> dict[str, str]:
    """Return the last part of each direct package's full name as another name of the package.

    ``mux: github.com/gorilla/mux``, ``form-kit: @acme/ui-kit``, ``poi: org.apache.poi:poi``. A part that several packages end
    with says nothing, and neither does one that is the usual name of a framework (the MySQL driver of Go ends
    with ``mysql``) or of a package that has usual names already.
    """
    packages = defaultdict(set)
    for dependency in dependencies:
        if dependency.direct:
            packages[canonical(_last_part(dependency))].add(dependency.package)
    return {
        name: package
        for name, (package, *others) in packages.items()
        if not others
        and name != canonical(package)
        and not is_usual_name(name)
        and not is_usual_name(package)
    }


def _last_part(dependency: Dependency) -> str:
    # The short name has no version at its end, but it keeps the scope of an npm package.
    name = dependency.framework
    for mark in _MARKS:
        name = name.rpartition(mark)[2]
    return name
