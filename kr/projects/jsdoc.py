"""The documentation comments of TypeScript declarations (``.d.ts``) and JavaScript."""

import re

from kr.projects.docstrings import Documented

_COMMENT = re.compile(r"/\*\*(?!/)((?:[^*]|\*(?!/)){1,20000})\*/\s{0,20}([^\r\n]{0,400})")
_NAME = re.compile(
    r"(?:(?:export|declare|default|abstract|static|readonly|public|async|function|class|interface|type|const|let|var"
    r"|enum|namespace|get|set)\s+)*([A-Za-z_$][\w$.]*)"
)


def parse_declarations(source: str, module: str) -> list[Documented]:
    """Return the documented declarations of a source file; ``docstring`` is the comment's Markdown."""
    found = []
    for comment, declaration in _COMMENT.findall(source):
        text = _markdown(comment)
        name = _NAME.match(declaration.strip())
        if text and "@internal" not in text and name and name[1] not in {"import", "export"}:
            short = name[1].rpartition(".")[2] or name[1]
            found.append(Documented(f"{module}.{short}", declaration.strip().rstrip("{").strip(), text))
    return found


def _markdown(comment: str) -> str:
    lines = [re.sub(r"^\s*\* ?", "", line).rstrip() for line in comment.splitlines()]
    # Three spaces of indentation mean code to the people who write them, four to Markdown.
    lines = [re.sub(r"^ {3}(?! )", "    ", line) for line in lines]
    return "\n".join(re.sub(r"^@(?=\w)", "- @", line) for line in lines).strip()
