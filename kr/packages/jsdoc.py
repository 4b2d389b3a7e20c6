"""The documentation comments of TypeScript declarations (``.d.ts``) and JavaScript."""

import re
from collections.abc import Iterator

from kr.packages.docstrings import Documented

_LONGEST_COMMENT = 20_000
_DECLARATION = re.compile(r"\s{0,20}([^\r\n]{0,400})")
_NAME = re.compile(
    r"(?:(?:export|declare|default|abstract|static|readonly|public|async|function|class|interface|type|const|let|var"
    r"|enum|namespace|get|set)\s+)*([A-Za-z_$][\w$.]*)"
)


def parse_declarations(source: str, module: str) -> list[Documented]:
    """Return the documented declarations of a source file; ``docstring`` is the comment's Markdown."""
    found = []
    for comment, declaration in _comments(source):
        text = _markdown(comment)
        name = _NAME.match(declaration.strip())
        if text and "@internal" not in text and name and name[1] not in {"import", "export"}:
            short = name[1].rpartition(".")[2] or name[1]
            found.append(Documented(f"{module}.{short}", declaration.strip().rstrip("{").strip(), text))
    return found


def _comments(source: str) -> Iterator[tuple[str, str]]:
    """Yield each documentation comment and the line after it, in one pass over the source."""
    at = source.find("/**")
    while at >= 0:
        end = source.find("*/", at + 2)
        if end < 0:
            return
        after = end + 2
        if at + 3 <= end <= at + _LONGEST_COMMENT and (line := _DECLARATION.match(source, after)):
            yield source[at + 3 : end], line[1]
            after = line.end()
        at = source.find("/**", after)


def _markdown(comment: str) -> str:
    lines = [re.sub(r"^\s*\* ?", "", line).rstrip() for line in comment.splitlines()]
    # Three spaces of indentation mean code to the people who write them, four to Markdown.
    lines = [re.sub(r"^ {3}(?! )", "    ", line) for line in lines]
    return "\n".join(re.sub(r"^@(?=\w)", "- @", line) for line in lines).strip()
