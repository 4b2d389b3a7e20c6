"""What the declaration files of a package document: functions with the options they take, options under their containers.

``server.proxy`` is shown as such, not as a ``proxy`` of some interface: where a type is the type of another one's
member, its own members stand below that (issue: a top-level ``proxy`` was told where ``server.proxy`` is meant).
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from kr.packages.declarations import Declaration, comment_markdown, comment_weight, is_internal
from kr.packages.documented import Documented
from kr.text.sentences import part as sentences

_SMALL = 1_500
_LONGEST_CODE = 1_200
_LONGEST_TYPE = 700
_LONGEST_TAKEN = 800
_LONGEST_HEAD = 120
_ALIAS = re.compile(r"[^{=]*=\s*(?=\{)")
"""A type that is given its members by `=`."""
_LONGEST_LIST = 4_000
_MOST_TYPES = 2
_MOST_OVERLOADS = 3
_MAX_STEPS = 4
_LEAST_SAID = 3  # words
_WORD = re.compile(r"[A-Za-z_$][\w$]*")
_TYPE = re.compile(r"\b[A-Z]\w*\b")
_TAKEN = re.compile(r"(?<!keyof )\b[A-Z]\w*\b")
_OPTIONS = re.compile(r"(?:Options?|Config(?:uration)?|Settings|Props|Init|Params)(?:Export|Base|Raw)?$")
_CONTAINER = re.compile(r"Options|Config|Settings|^Optimization")
_COMMENT = re.compile(r"[ \t]*/\*.{0,20000}?\*/[ \t]*\n?", re.DOTALL)
_EXTENDS = re.compile(r"\b(?:extends|implements)\b(.*)", re.DOTALL)
_MADE = re.compile(r":\s*new\s*(?:<[^()]*>)?\s*(\([^()]*\))\s*=>\s*(?:\w+\.)*([A-Z]\w*)")
"""A constant that compilers declare for the base of a class, by what it takes and makes."""
_EXPORTED, _PLAIN, _KEPT = 1.25, 1.0, 0.8
_TYPES = 0.5  # of a type that is no options: it names what others do


class Declared:
    """The declarations of a package's files. ``offered`` are the names that its entry exports, None where all are."""

    def __init__(
        self, files: Iterable[tuple[str, Sequence[Declaration]]], offered: frozenset[str] | None
    ) -> None:
        """Take the declarations by the file that they stand in."""
        self._files = list(files)
        self._offered = offered
        self._types: dict[str, Declaration] = {}
        self._uses: dict[str, list[tuple[str, str]]] = {}
        self._heirs: dict[str, list[str]] = {}
        self._functions: dict[str, list[Declaration]] = {}
        self._made: dict[str, tuple[str, str]] = {}
        self._bases: set[str] = set()
        for _, declarations in self._files:
            self._index(declarations)

    def documented(self) -> Iterator[tuple[str, Documented]]:
        """Yield ``(file, what it documents)``, overloads as one."""
        seen: set[tuple[str, str]] = set()
        for file, declarations in self._files:
            for found in self._all(declarations, ""):
                # Bundles for several module systems declare the same names again.
                if (found.name, found.signature) not in seen:
                    seen.add((found.name, found.signature))
                    yield file, found

    def _index(self, declarations: Sequence[Declaration]) -> None:
        for declared in declarations:
            if declared.kind == "namespace":
                self._index(declared.members)
                continue
            is_offered = declared.is_exported if self._offered is None else declared.name in self._offered
            if declared.kind == "function" and is_offered and len(declared.text) <= _LONGEST_TYPE:
                for used in set(_TAKEN.findall(declared.text)):
                    self._functions.setdefault(used, []).append(declared)
            if declared.kind in {"interface", "type", "class"}:
                self._types.setdefault(declared.name, declared)
            if declared.kind == "const" and (made := _MADE.search(declared.text)):
                self._made[declared.name] = (made[1], made[2])
            self._bases.update(_WORD.findall(_extended(declared)))
            for base in _TYPE.findall(_extended(declared)):
                self._heirs.setdefault(base, []).append(declared.name)
            for member in declared.members if declared.kind in {"interface", "type"} else ():
                # Neither a method nor a function: what stands there is taken apart below the member's name.
                for used in set(_TYPE.findall(member.text)) if "(" not in member.text[:200] else ():
                    self._uses.setdefault(used, []).append((declared.name, member.name))

    def _all(self, declarations: Sequence[Declaration], prefix: str) -> Iterator[Documented]:
        groups: dict[tuple[str, str], list[Declaration]] = {}
        for declared in declarations:
            if declared.name and declared.kind not in {"export", "import"}:
                groups.setdefault((declared.kind, declared.name), []).append(declared)
        for (kind, name), group in groups.items():
            if name.startswith("_") or "DO_NOT_USE" in name or any(is_internal(one.comment) for one in group):
                continue
            if kind == "namespace":
                inner = prefix if not name[:1].isupper() else f"{prefix}{name}."
                for one in group:
                    yield from self._all(one.members, inner)
            elif group[0].members and kind != "enum":
                for one in group:  # an interface may be declared in parts
                    yield from self._container(self._whole(one), prefix)
            elif name not in self._made or name not in self._bases:
                yield self._single(group, prefix)

    def _single(self, group: Sequence[Declaration], prefix: str) -> Documented:
        first = group[0]
        code = "\n".join(_cut(one.text, _LONGEST_CODE) for one in group[:_MOST_OVERLOADS])
        if first.kind == "enum":
            code = f"{code} {{ {', '.join(member.name for member in first.members[:40])} }}"
        taken: list[Declaration] = []
        if first.kind in {"function", "const"}:
            taken = list(self._taken(code, first.name))
            code = "\n\n".join([code, *map(_written, taken)])
        weight = self._weight(first.name, is_exported=any(one.is_exported for one in group))
        if first.kind == "type":
            weight = min(weight, _TYPES)
        more = _taken_said(taken)
        return Documented(
            f"{prefix}{first.name}", code, _said(group), more, weight=weight * _declining(group)
        )

    def _container(self, declared: Declaration, prefix: str) -> Iterator[Documented]:
        """Yield a type with members: whole when it is small, else its members one by one."""
        code = _written(declared)
        weight = self._weight(declared.name, is_exported=declared.is_exported)
        of_members = weight
        if declared.kind in {"interface", "type"}:
            weight = min(weight, _PLAIN if _OPTIONS.search(declared.name) else _TYPES)
        path = self._path(declared.name) if declared.kind != "class" else ""
        of_members = max(of_members, _PLAIN) if path else of_members
        listed = _members_said(declared)
        if len(code) + len(listed) <= _SMALL:
            named = f"{path} ({declared.name})" if path else f"{prefix}{declared.name}"
            said = "\n\n".join(text for text in (_said([declared]), listed) if text)
            code = "\n\n".join([code, *self._reached(declared.name)])
            yield Documented(named, code, said, weight=weight * _declining([declared]))
            return
        if declared.comment:
            said = _said([declared])
            code = _bare(declared.text)  # of an alias, its members stand in it
            yield Documented(f"{prefix}{declared.name}", code, said, weight=weight * _declining([declared]))
        told, silent = _members(declared)
        if path and listed:
            # Options that stand beside one another are seldom used alone.
            yield Documented(path, _head(declared.text), listed[:_LONGEST_LIST], weight=weight)
        if silent:
            # What has no text of its own is shown together; of it, later, what the question is about.
            code = _written(replace(declared, members=tuple(silent)))
            options = list(self._taken(code, declared.name))
            code = "\n\n".join([code, *self._reached(declared.name), *map(_written, options)])
            told_by = (
                of_members if declared.kind in {"interface", "class", "type"} else min(of_members, _TYPES)
            )
            yield Documented(f"{prefix}{declared.name}", code, "", _taken_said(options), weight=told_by)
        for name, group in told.items():
            lines = "\n".join(f"  {_cut(one.text, _LONGEST_CODE)};" for one in group[:_MOST_OVERLOADS])
            lines = f"{_constructor(declared)}{lines}" if name != "constructor" else lines
            where = f"  // {path}.{name}" if path else ""
            code = f"{_head(declared.text)} {{{where}\n{lines}\n}}"
            taken = list(self._taken(lines, declared.name))
            code = "\n\n".join([code, *self._reached(declared.name), *map(_written, taken)])
            title = f"{path}.{name}" if path else f"{prefix}{self._shown(declared.name)}.{name}"
            declining = _declining([declared, *group])
            yield Documented(title, code, _said(group), _taken_said(taken), weight=of_members * declining)

    def _whole(self, declared: Declaration) -> Declaration:
        """Return a class with the members of what its base makes, where that is a ``const Base: new () => Type``."""
        if declared.kind != "class":
            return declared
        own = {member.name for member in declared.members}
        for base in _WORD.findall(_extended(declared)):
            takes, made = self._made.get(base, ("", ""))
            if made in self._types:
                constructor = Declaration("member", "constructor", f"constructor{takes}")
                members = (constructor, *declared.members, *self._types[made].members)
                kept = (one for one in members if one in declared.members or one.name not in own)
                return replace(declared, members=tuple(kept))
        return declared

    def _path(self, name: str) -> str:
        """Return below which members of options a type stands: ``server`` for ``CommonServerOptions``, else nothing.

        Only where the type is called after the member, lest some other use of it passes for the place of its options.
        """
        parts: list[str] = []
        known = {name}
        for _ in range(_MAX_STEPS):
            found = (
                (owner, member)
                for one in self._family(name)
                for owner, member in self._uses.get(one, ())
                if owner not in known
                and member.isidentifier()
                and member.lower() in one.lower()
                and _CONTAINER.search(owner)
            )
            owner, member = next(found, ("", ""))
            if not owner:
                break
            parts.insert(0, member)
            known.add(owner)
            name = owner
        return ".".join(parts)

    def _family(self, name: str) -> list[str]:
        family = [name]
        for one in family:
            family += [heir for heir in self._heirs.get(one, ()) if heir not in family][:5]
        return family[:12]

    def _taken(self, code: str, own: str) -> Iterator[Declaration]:
        """Yield the declarations of the options that a signature names, the small ones."""
        count = 0
        for name in dict.fromkeys(_TYPE.findall(code)):
            declared = self._types.get(name)
            if declared is None or name == own or not declared.members or not _OPTIONS.search(name):
                continue
            bases = [base for base in _TYPE.findall(_extended(declared)) if base in self._types]
            for one in (declared, *(self._types[base] for base in bases[:1])):
                if one.members and len(_written(one)) <= _LONGEST_TYPE:
                    yield one
            count += 1
            if count == _MOST_TYPES:
                return

    def _reached(self, name: str) -> Iterator[str]:
        """Yield the functions that take or give a type: without them nobody knows what it is for."""
        owners = dict.fromkeys(owner for owner, _ in self._uses.get(name, ()))
        for one in (name, *self._heirs.get(name, ()), *owners):
            if found := self._functions.get(one):
                yield from dict.fromkeys(
                    _cut(function.text, _LONGEST_CODE) for function in found[:_MOST_TYPES]
                )
                return

    def _shown(self, name: str) -> str:
        """Return the name that users know a type by: its own, or that of an heir where only this one is exported."""
        if self._offered is None or name in self._offered:
            return name
        return next((heir for heir in self._family(name) if heir in self._offered), name)

    def _weight(self, name: str, *, is_exported: bool) -> float:
        if self._offered is None:
            return _PLAIN
        return _EXPORTED if self._shown(name) in self._offered else _PLAIN if is_exported else _KEPT


def _members(declared: Declaration) -> tuple[dict[str, list[Declaration]], list[Declaration]]:
    """Return the members that have a text, by name with their overloads, and those without (a link alone is none)."""
    told: dict[str, list[Declaration]] = {}
    silent: list[Declaration] = []
    for member in declared.members:
        if not member.name or member.name.startswith("_") or is_internal(member.comment):
            continue
        says = re.sub(r"https?://\S+|[*\s]+", " ", member.comment)
        if len(says.split()) >= _LEAST_SAID or member.name in told:
            told.setdefault(member.name, []).append(member)
        else:
            silent.append(member)
    return told, silent


def _constructor(declared: Declaration) -> str:
    """Return the line of a class that says how an instance is made: no member is used without; empty if long."""
    found = [member.text for member in declared.members if member.name == "constructor"]
    line = f"  {_bare(found[0])};\n" if declared.kind == "class" and len(found) == 1 else ""
    return line if len(line) <= _LONGEST_HEAD else ""


def _extended(declared: Declaration) -> str:
    found = _EXTENDS.search(declared.text) if declared.kind in {"interface", "class"} else None
    return found[1] if found else ""


def _written(declared: Declaration) -> str:
    """Return a type with its members as code, without comments."""
    if declared.kind not in {"interface", "class", "enum"}:
        return _bare(declared.text)
    members = (member for member in declared.members if not is_internal(member.comment))
    return f"{declared.text} {{\n" + "".join(f"  {_bare(member.text)};\n" for member in members) + "}"


def _bare(code: str) -> str:
    """Return code without the comments that stand inside of it."""
    return _COMMENT.sub("", code)


def _members_said(declared: Declaration) -> str:
    """Return what is said about the members, as a list of their first paragraphs."""
    items = []
    for member in declared.members:
        said = comment_markdown(member.comment, "typescript").partition("\n\n")[0]
        if member.name and said and not said.startswith("```") and not is_internal(member.comment):
            items.append(f"- `{member.name}`: {' '.join(said.split())}")
    return "\n".join(items)


def _taken_said(taken: Sequence[Declaration]) -> str:
    """Return what is said about the members of options that a signature names: of many the first sentence each."""
    said = (_members_said(one) for one in taken)
    briefly = (text if len(text) <= _LONGEST_TAKEN else _first_sentences(text) for text in said if text)
    return "\n".join(text for text in briefly if len(text) <= _LONGEST_LIST)


def _first_sentences(listed: str) -> str:
    return "\n".join(next(iter(sentences(item)), "") for item in listed.split("\n"))


def _said(group: Sequence[Declaration]) -> str:
    texts = (comment_markdown(one.comment, "typescript") for one in group if one.comment)
    return "\n\n".join(dict.fromkeys(text for text in texts if text))


def _declining(group: Sequence[Declaration]) -> float:
    return min(comment_weight(one.comment) for one in group)


def _head(code: str) -> str:
    """Return how a type begins, without its members and without its own types where these are what a reader would see first."""
    begins = _ALIAS.match(code)
    code = begins[0].rstrip() if begins else code
    return code if len(code) <= _LONGEST_HEAD else f"{code.partition('<')[0][:_LONGEST_HEAD]}<...>"


def _cut(code: str, limit: int) -> str:
    code = _bare(code)
    return code if len(code) <= limit else f"{code[:limit].rpartition(chr(10))[0] or code[:limit]} ..."
