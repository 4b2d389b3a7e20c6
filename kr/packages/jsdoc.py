"""The documentation comments of TypeScript and JavaScript (JSDoc, TSDoc) as Markdown."""

import re
from collections.abc import Iterator
from itertools import pairwise
from textwrap import dedent

from kr.packages.documented import Documented
from kr.packages.restructured import code_span, fence

LONGEST_COMMENT = 20_000
_DECLARATION = re.compile(r"\s{0,20}([^\r\n]{0,400})")
_NAME = re.compile(
    r"(?:(?:export|declare|default|abstract|static|readonly|public|async|function|class|interface|type|const|let|var"
    r"|enum|namespace|get|set)\s+)*([A-Za-z_$][\w$.]*)"
)
_TAG = re.compile(r"^[ \t]{0,8}@(\w+)(?![\w(.])[ \t]*", re.MULTILINE)
_PARAMETER = re.compile(r"(?:\{([^}\n]{1,200})\}\s*)?(\[[^\]\n]{1,100}\]|[\w$.]{1,80})\s*(?:-\s*)?")
_LINK = re.compile(r"\{@link(?:code|plain)?\s+([^}|\s]{1,200})(?:[|\s]\s*([^}]{1,200}))?\}")
_SILENT = frozenset(
    {
        "alpha", "author", "beta", "callback", "category", "class", "constructor", "copyright", "event", "export",
        "fileoverview", "function", "global", "group", "internal", "kind", "license", "memberOf", "memberof", "method",
        "module", "name", "override", "packageDocumentation", "private", "property", "protected", "public", "sealed", "see",
        "since", "static", "template", "todo", "typedef", "version", "virtual",
    }
)  # fmt: skip
"""Tags that say nothing to somebody who writes code with it."""


def parse_comments(source: str, module: str) -> list[Documented]:
    """Return the documented declarations of a JavaScript file; ``docstring`` is the comment's Markdown."""
    found = []
    for comment, declaration in _comments(source):
        text = comment_markdown(comment, "javascript")
        name = _NAME.match(declaration.strip())
        if text and not is_internal(comment) and name and name[1] not in {"import", "export"}:
            short = name[1].rpartition(".")[2] or name[1]
            signature = declaration.strip().rstrip("{").strip()
            path = short if short == module else f"{module}.{short}"
            found.append(Documented(path, signature, text, weight=comment_weight(comment)))
    return found


def is_internal(comment: str) -> bool:
    """Tell whether a comment says that what it documents is not for users."""
    return "@internal" in comment or "@private" in comment


def comment_weight(comment: str) -> float:
    """Return 1.0, less for what is marked as deprecated."""
    return 0.5 if "@deprecated" in comment else 1.0


def comment_markdown(comment: str, language: str) -> str:
    """Return what stands between ``/**`` and ``*/`` as Markdown.

    Parameters become a list, examples fenced code of the ``language``, links their words; tags that only sort pages go.
    """
    text = dedent(
        "\n".join(re.sub(r"^\s*\*(?: |$)", "", line).rstrip() for line in comment.splitlines())
    ).strip()
    # Three spaces of indentation mean code to the people who write them, four to Markdown.
    text = re.sub(r"^ {3}(?! )", "    ", text, flags=re.MULTILINE)
    starts = [*_tags(text)]
    parts = [_linked(text[: starts[0].start()] if starts else text).strip()]
    for tag, following in pairwise([*starts, None]):
        if tag is None:
            continue
        body = text[tag.end() : following.start() if following else len(text)].strip("\n").rstrip()
        parts.append(_tagged(tag[1], body, language))
    out = ""
    for part in (part for part in parts if part):
        both_items = part.startswith("- ") and out.rpartition("\n\n")[2].startswith("- ")
        out += ("\n" if both_items else "\n\n" if out else "") + part
    return out


def _tags(text: str) -> Iterator[re.Match[str]]:
    """Yield the tags that begin a line, none in fenced code."""
    fences = [found.start() for found in re.finditer(r"^[ \t]*(?:```|~~~)", text, re.MULTILINE)]
    for tag in _TAG.finditer(text):
        if sum(at < tag.start() for at in fences) % 2 == 0:
            yield tag


def _tagged(name: str, body: str, language: str) -> str:
    if name in _SILENT:
        return ""
    if name in {"example", "examples"}:
        return _example(body, language)
    text = " ".join(_linked(body).split()) if "```" not in body and "\n\n" not in body else _linked(body)
    if name in {"param", "arg", "argument", "typeParam", "prop"}:
        found = _PARAMETER.match(text)
        if not found:
            return ""
        kind = f" ({code_span(found[1])})" if found[1] else ""
        return f"- {code_span(found[2])}{kind}: {text[found.end() :]}".rstrip(": ")
    if name in {"returns", "return"}:
        return f"Returns: {re.sub(r'^{([^}]*)}', lambda kind: code_span(kind[1]), text)}" if text else ""
    if name in {"default", "defaultValue", "defaultvalue"}:
        return f"Default: {text if text.startswith('`') else code_span(text)}" if text else ""
    if name in {"remarks", "summary", "description"}:
        return text
    label = {"throws": "Throws", "deprecated": "**Deprecated:**"}.get(name, name.capitalize())
    return f"{label} {text}".rstrip() if text else label if name == "deprecated" else ""


def _example(body: str, language: str) -> str:
    """Return an example: fenced as it is, else put into a fence, with its caption above."""
    if "```" in body or "~~~" in body:
        return body.strip()
    if not body.strip():
        return ""
    caption = re.match(r"[ \t]*<caption>([^<\n]*)</caption>[ \t]*\n", body)
    code = body[caption.end() :] if caption else body
    return (f"{caption[1].strip()}\n\n" if caption else "") + fence(code.strip("\n"), language)


def _linked(text: str) -> str:
    return _LINK.sub(lambda found: found[2].strip() if found[2] else code_span(found[1]), text)


def _comments(source: str) -> Iterator[tuple[str, str]]:
    """Yield each documentation comment and the line after it, in one pass over the source."""
    at = source.find("/**")
    while at >= 0:
        end = source.find("*/", at + 2)
        if end < 0:
            return
        after = end + 2
        if at + 3 <= end <= at + LONGEST_COMMENT and (line := _DECLARATION.match(source, after)):
            yield source[at + 3 : end], line[1]
            after = line.end()
        at = source.find("/**", after)
