"""reStructuredText to Markdown: docutils reads it, a small renderer writes it.

File insertion and raw markup are off. Roles and directives that docutils does not know (Sphinx's) keep
their text: a role becomes a code span, a directive a label and its content.
"""

import re
import textwrap
from copy import copy
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from docutils import nodes
    from docutils.frontend import Values

_SETTINGS = {
    "_disable_config": True,
    "doctitle_xform": False,
    "docinfo_xform": False,
    "sectsubtitle_xform": False,
    "file_insertion_enabled": False,
    "raw_enabled": False,
    "smart_quotes": False,
    "syntax_highlight": "none",
    "halt_level": 6,
    "report_level": 6,
    "warning_stream": False,
    "input_encoding": "unicode",
}
_MAX_DEPTH = 4
_DROPPED = frozenset(
    {
        "raw", "include", "image", "figure", "contents", "toctree", "highlight", "currentmodule", "module", "seealso",
        "testsetup", "testcleanup",
    }
)  # fmt: skip
_CODE = frozenset(
    {
        "code", "code-block", "sourcecode", "doctest", "testcode", "testoutput", "ipython", "prompt", "parsed-literal",
    }
)  # fmt: skip
_ROLE = re.compile(r":([\w:.+-]+):`([^`]*)`|`([^`]*)`:([\w:.+-]+):", re.DOTALL)
_TARGET = re.compile(r"(?<=\S)\s*<[^<>]*>$")
_ALIAS = re.compile(r"^_(?=[a-z]\w*\.)")
_SILENT_FIELDS = frozenset({"type", "vartype", "meta", "copyright", "license", "author", "authors"})
_PROSE_ROLES = frozenset({"ref", "doc", "term", "std:ref", "std:doc", "std:term", "external+python:ref"})


def to_markdown(source: str, *, depth: int = 0) -> str:
    """Return ``source`` as Markdown. What can't be parsed at all comes back as it is."""
    from docutils.core import publish_doctree
    from docutils.utils import SystemMessage

    try:
        document = publish_doctree(source.replace("\x00", ""), settings=copy(_settings()))
        return "\n\n".join(_Renderer(depth).blocks(document)).strip() + "\n"
    # docutils' own directives let a few plain errors escape on malformed input.
    except (SystemMessage, RecursionError, ValueError, TypeError, AttributeError, IndexError, KeyError):
        return source


@cache
def _settings() -> "Values":
    """Gather what docutils takes a third of a short text's time to gather each time."""
    from docutils.frontend import get_default_settings
    from docutils.parsers.rst import Parser
    from docutils.readers.standalone import Reader

    settings = get_default_settings(Parser, Reader)
    vars(settings).update(_SETTINGS)
    return settings


def with_roles_as_code(text: str) -> str:
    """Return Markdown with the roles of reStructuredText that stand in it (``:func:`io.open```) as code spans."""
    return _ROLE.sub(lambda found: _problematic(found[0]), text)


class _Renderer:
    """Turns docutils nodes into Markdown blocks."""

    def __init__(self, depth: int) -> None:
        self._depth = depth
        self._level = 0

    def blocks(self, node: "nodes.Node") -> list[str]:
        """Return the Markdown blocks of the node's children, none of them empty."""
        found: list[str] = []
        for child in node.children:
            found += [block for block in self._block(child) if block.strip()]
        return found

    def _block(self, node: "nodes.Node") -> list[str]:
        name = type(node).__name__
        handler = getattr(self, f"_{name}", None)
        if handler is not None:
            rendered: list[str] = handler(node)
            return rendered
        if name in {"comment", "target", "substitution_definition", "image", "pending", "footnote"}:
            return []
        if name in {"note", "warning", "tip", "hint", "important", "caution", "danger", "attention", "error"}:
            return [f"**{name.capitalize()}:**", *self.blocks(node)]
        from docutils import nodes

        if isinstance(node, (nodes.Text, nodes.Inline, nodes.TextElement)):
            return [_line(self.inline(node))]
        return self.blocks(node)

    def _section(self, node: Any) -> list[str]:
        self._level += 1
        found = self.blocks(node)
        self._level -= 1
        return found

    def _title(self, node: Any) -> list[str]:
        return [f"{'#' * min(max(self._level, 1), 6)} {' '.join(self.inline(node).split())}"]

    _rubric = _title

    def _paragraph(self, node: Any) -> list[str]:
        return [_line(self.inline(node))]

    def _literal_block(self, node: Any) -> list[str]:
        classes = [c for c in node.get("classes", ()) if c != "code"]
        return [fence(node.astext(), classes[0] if classes else "")]

    def _doctest_block(self, node: Any) -> list[str]:
        return [fence(node.astext(), "python")]

    def _bullet_list(self, node: Any) -> list[str]:
        return ["\n".join(self._item("- ", item) for item in node.children)]

    def _enumerated_list(self, node: Any) -> list[str]:
        start = node.get("start", 1)
        return ["\n".join(self._item(f"{start + i}. ", item) for i, item in enumerate(node.children))]

    def _definition_list(self, node: Any) -> list[str]:
        return ["\n".join(self._defined(item) for item in node.children)]

    def _field_list(self, node: Any) -> list[str]:
        """Write Sphinx's fields as a list: ``:param int x: text`` becomes ``- `x` (int): text``."""
        types = {
            parts[1]: " ".join(self.blocks(field.children[1])).replace("`", "")
            for field in node.children
            if len(parts := field.children[0].astext().split(None, 1)) == 2
            and parts[0] in {"type", "vartype"}
        }
        lines = []
        for field in node.children:
            kind, _, rest = field.children[0].astext().partition(" ")
            if kind in _SILENT_FIELDS or not field.children[1].astext().strip():
                continue
            lines.append(self._item(f"- {_field_label(kind, rest, types)} ", field.children[1]))
        return ["\n".join(lines)] if lines else []

    def _option_list(self, node: Any) -> list[str]:
        return [
            "\n".join(
                self._item(f"- {code_span(i.children[0].astext())}: ", i.children[1]) for i in node.children
            )
        ]

    def _block_quote(self, node: Any) -> list[str]:
        return self.blocks(node)  # indentation alone quotes nothing in a docstring

    def _line_block(self, node: Any) -> list[str]:
        return ["  \n".join(_line(line) for line in node.astext().splitlines())]

    def _table(self, node: Any) -> list[str]:
        from docutils import nodes

        rows = [
            [" ".join(self.inline(entry).split()).replace("|", "\\|") for entry in row.children]
            for row in node.findall(nodes.row)
        ]
        if not rows:
            return []
        lines = [f"| {' | '.join(row)} |" for row in rows]
        return ["\n".join([lines[0], "|" + " --- |" * len(rows[0]), *lines[1:]])]

    def _system_message(self, node: Any) -> list[str]:
        """Rescue the text of a directive that docutils refused."""
        from docutils import nodes

        source = next(
            (child.astext() for child in node.children if isinstance(child, nodes.literal_block)), ""
        )
        found = re.match(r"\.\. ([\w:.+-]+)::[ \t]*([^\n]*)", source)
        if not found:
            return []
        name, argument = found[1].rpartition(":")[2].lower(), found[2].strip()
        body = textwrap.dedent(source[found.end() :].strip("\n"))
        body = re.sub(r"\A(?:[ \t]*:[\w-]+:[^\n]*(?:\n|\Z))+", "", body).strip("\n")
        if name in _DROPPED or self._depth >= _MAX_DEPTH:
            return []
        if name in _CODE:
            return [fence(body, argument)]
        label = {
            "versionadded": "Added in",
            "versionchanged": "Changed in",
            "deprecated": "Deprecated since",
        }.get(name, name.replace("-", " ").capitalize())
        head = f"{label} {argument}" if argument else label
        if not body:
            return [f"**{_escaped(head)}**"]
        return [f"**{_escaped(head)}:**", to_markdown(body, depth=self._depth + 1).strip()]

    def inline(self, node: "nodes.Node") -> str:
        """Return the inline Markdown of a node."""
        from docutils import nodes

        if isinstance(node, nodes.Text):
            return _escaped(node.astext())
        if isinstance(node, (nodes.literal, nodes.math)):
            return code_span(node.astext())
        if isinstance(node, nodes.title_reference):
            return code_span(_TARGET.sub("", node.astext()))
        if isinstance(node, nodes.problematic):
            return _problematic(node.astext())
        if isinstance(node, (nodes.target, nodes.image, nodes.footnote_reference, nodes.system_message)):
            return ""
        text = "".join(self.inline(child) for child in node.children)
        if isinstance(node, nodes.emphasis) and text.strip():
            return f"*{text}*"
        if isinstance(node, nodes.strong) and text.strip():
            return f"**{text}**"
        if isinstance(node, nodes.reference):
            url = node.get("refuri", "")
            return f"[{text}]({url})" if re.fullmatch(r"https?://[^\s()<>]+", url) and url != text else text
        return text

    def _item(self, marker: str, node: Any) -> str:
        body = "\n\n".join(self.blocks(node))
        return marker + textwrap.indent(body, "  ")[2:]

    def _defined(self, item: Any) -> str:
        """Write ``term : classifier`` with its text; in NumPy's style the classifier is a parameter's type."""
        term, *classifiers, definition = item.children
        kinds = ", ".join(kind.astext() for kind in classifiers)
        return self._item(
            f"- {self.inline(term).removesuffix(':')}{f' ({code_span(kinds)})' if kinds else ''}: ",
            definition,
        )


def fence(text: str, language: str) -> str:
    """Return a fenced code block whose fence is longer than any in ``text``."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    mark = "`" * (longest + 1)
    tag = language if re.fullmatch(r"[\w.+#-]{1,30}", language) else ""
    return f"{mark}{tag}\n{text.rstrip()}\n{mark}"


def code_span(text: str) -> str:
    """Return ``text`` as a code span on one line."""
    line = " ".join(text.split())
    if not line:
        return ""
    longest = max((len(run) for run in re.findall(r"`+", line)), default=0)
    mark = "`" * (longest + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{mark}{pad}{line}{pad}{mark}"


def _field_label(kind: str, rest: str, types: dict[str, str]) -> str:
    if (
        kind in {"param", "parameter", "arg", "argument", "key", "keyword", "kwarg", "var", "ivar", "cvar"}
        and rest
    ):
        *type_words, name = rest.split()
        type_text = " ".join(type_words) or types.get(name, "")
        return f"{code_span(name)}" + (f" ({_escaped(' '.join(type_text.split()))}):" if type_text else ":")
    if kind in {"raises", "raise", "except", "exception"}:
        return f"Raises {code_span(rest)}:" if rest else "Raises:"
    named = {
        "return": "Returns",
        "returns": "Returns",
        "rtype": "Return type",
        "yields": "Yields",
        "yield": "Yields",
    }
    return f"{_escaped(named.get(kind, kind.capitalize()) + (f' {rest}' if rest else ''))}:"


def _problematic(text: str) -> str:
    """Return an unknown role or substitution as a code span.

    Sphinx's ``~pkg.name`` shows the last part, ``title <target>`` the title; a title of prose stays prose.
    An alias that a project keeps for its own pages (``_orm.relationship``) shows without its underscore.
    """
    found = _ROLE.fullmatch(text)
    if not found:
        substitution = re.fullmatch(r"\|([^|]+)\|_{0,2}", text)
        return code_span(substitution[1]) if substitution else _escaped(text)
    role, content = found[1] or found[4], found[2] if found[2] is not None else found[3]
    titled = re.fullmatch(r"([^<]+?)\s*<[^<>]*>", content)
    if titled:
        return _escaped(titled[1]) if role in _PROSE_ROLES else code_span(titled[1])
    shown = content.rpartition(".")[2] if content.startswith("~") else _SHORT.sub("", content)
    return code_span(_ALIAS.sub("", shown))


_SHORT = re.compile(r"^!|^\.(?=[A-Z]|\w+(?:\.\w+)+\Z|\w+\(\))")
"""What Sphinx finds a name by (``.Pool``, ``.pool.close``); a file such as ``.env`` begins so as well."""


def _escaped(text: str) -> str:
    return re.sub(r"([`*<\\]|(?<!\w)_|_(?!\w))", r"\\\1", text)


def _line(text: str) -> str:
    """Return a paragraph on one line that no Markdown reader takes for a heading, quote or list."""
    line = " ".join(text.split())
    return re.sub(
        r"^([#>+=~|-]|\d{1,9}(?=[.)]))", lambda m: f"\\{m[1]}" if not m[1].isdigit() else m[1], line
    )
