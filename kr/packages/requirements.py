"""requirements*.txt and requirements/*.txt: options, includes, constraints, continuation lines, markers, extras, URLs, hashes."""

import re
from collections.abc import Iterator

from kr.packages.folder import Folder
from kr.packages.locks import Declared

_MOST_FILES = 50
_MOST_LINES = 20_000


def parse_requirement(text: str) -> tuple[str, str | None] | None:
    """Return ``(name, version)`` of one PEP 508 requirement; None when it is none.

    The version is the plain number for a single ``==``, the specifier's text otherwise, None for a URL or
    where nothing is said. Extras and markers don't matter here.
    """
    from packaging.requirements import InvalidRequirement, Requirement

    if len(text) > 2_000:
        return None
    try:
        requirement = Requirement(text)
        specifiers = list(requirement.specifier)
    except (InvalidRequirement, ValueError, RecursionError):
        return None
    if not specifiers:
        return requirement.name, None
    only = specifiers[0]
    if len(specifiers) == 1 and only.operator in {"==", "==="} and "*" not in only.version:
        return requirement.name, only.version
    order = sorted(specifiers, key=lambda s: (s.operator in {"!=", "<", "<="}, s.version))
    return requirement.name, ",".join(str(s) for s in order)


def find_requirements(folder: Folder) -> list[Declared]:
    """Read every ``requirements*.txt`` of the folder, those of a folder ``requirements``, and what they include inside the project."""
    try:
        names = sorted(p.name for p in folder.root.glob("requirements*.txt"))
        names += sorted(f"requirements/{p.name}" for p in folder.root.glob("requirements/*.txt"))
    except OSError as exc:
        folder.warn("requirements*.txt", exc.strerror or "the folder can't be listed")
        return []
    # What is called constraints is so, also where nothing includes it.
    queue = [(name, "constraint" in name) for name in names]
    done: set[str] = set()
    declared: list[Declared] = []
    constraints: dict[str, Declared] = {}
    while queue and len(done) < _MOST_FILES:
        file, is_constraint = queue.pop(0)
        if file in done:
            continue
        done.add(file)
        for kind, value in _entries(folder, file):
            if kind == "requirement":
                for dependency in _requirement(folder, file, value):
                    if is_constraint:
                        constraints.setdefault(dependency.package.lower(), dependency)
                    else:
                        declared.append(dependency)
            else:
                queue += _include(folder, file, value, is_constraint=is_constraint or kind == "constraint")
    return [constraints.get(d.package.lower(), d) if d.spec is None else d for d in declared]


def _include(folder: Folder, file: str, target: str, *, is_constraint: bool) -> list[tuple[str, bool]]:
    if "://" in target:
        return []
    included = folder.inside(f"{file.rpartition('/')[0]}/{target}".lstrip("/"))
    if target.startswith("/") or included is None:
        folder.warn(file, f"includes {target}, which is outside the project; it is not read")
        return []
    return [(included, is_constraint)]


def _requirement(folder: Folder, file: str, line: str) -> Iterator[Declared]:
    text = re.split(r"\s--?[a-z]", line, maxsplit=1)[0].strip()  # per-requirement options such as --hash
    parsed = parse_requirement(text)
    if parsed:
        yield Declared(parsed[0], parsed[1], file)
        return
    egg = re.search(r"#egg=([A-Za-z0-9][\w.-]*)", text)
    if egg:
        yield Declared(egg[1], None, file)
    elif not re.match(r"[./~]|[a-z+]+://|[^\s=]+\.(?:whl|zip|tar\.gz)$", text):
        folder.warn(file, f"{text[:80]!r} is no requirement")


def _entries(folder: Folder, file: str) -> Iterator[tuple[str, str]]:
    """Yield ``("requirement" | "include" | "constraint", text)`` of each logical line."""
    text = folder.text(file)
    if text is None:
        return
    joined = ""
    for line in text.splitlines()[:_MOST_LINES]:
        if line.rstrip().endswith("\\") and len(joined) < 50_000:
            joined += line.rstrip()[:-1] + " "
            continue
        entry = re.sub(r"(^|\s)#.*$", "", joined + line).strip()
        joined = ""
        option = re.match(
            r"(-r|--requirement|-c|--constraint|-e|--editable)(?:[\s=]+|(?<=-[rce]))(.+)", entry
        )
        if option:
            name, value = option[1], option[2].strip()
            if name in {"-e", "--editable"}:
                yield "requirement", value
            else:
                yield "include" if "r" in name[:3] else "constraint", value
        elif entry and not entry.startswith("-"):
            yield "requirement", entry
