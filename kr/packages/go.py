"""go.mod, and the modules that go.work names."""

import re
from collections.abc import Iterator

from kr.packages.folder import MAX_MEMBERS, Folder
from kr.packages.model import Inventory


def find(folder: Folder, inventory: Inventory) -> None:
    """Add what go.mod says: its versions are exact; ``// indirect`` marks what others asked for."""
    places = [""]
    text = folder.text("go.work")
    for words, _ in _directives(text or "", "use"):
        inside = folder.inside(words[0])
        if inside is not None and inside != ".":
            places.append(inside)
    for place in places[:MAX_MEMBERS]:
        file = f"{place}/go.mod".lstrip("/")
        module = folder.text(file)
        if module is None:
            continue
        replaced = _replacements(module)
        for words, comment in _directives(module, "require"):
            if len(words) >= 2:
                version = replaced.get((words[0], words[1]), replaced.get((words[0], "")))
                inventory.add("go", words[0], version or words[1], file, direct="indirect" not in comment)


def _replacements(text: str) -> dict[tuple[str, str], str]:
    """Map ``(path, version or "")`` to the version that stands in; empty for a folder, which has none."""
    found: dict[tuple[str, str], str] = {}
    for words, _ in _directives(text, "replace"):
        if "=>" in words:
            arrow = words.index("=>")
            old, new = words[:arrow], words[arrow + 1 :]
            if old and new:
                found[old[0], old[1] if len(old) > 1 else ""] = new[1] if len(new) > 1 else ""
    return found


def _directives(text: str, verb: str) -> Iterator[tuple[list[str], str]]:
    """Yield the words and the comment of each ``verb`` line, in a block or on its own."""
    block = ""
    for line in text.splitlines():
        code, _, comment = line[:2_000].partition("//")
        words = [word.strip('"`') for word in code.split()]
        if not words:
            continue
        if block:
            if words[0] == ")":
                block = ""
            elif block == verb:
                yield words, comment
        elif opened := re.match(r"\s*(\w+)\s*\(\s*$", code):
            block = opened[1]
        elif words[0] == verb and len(words) > 1:
            yield words[1:], comment
