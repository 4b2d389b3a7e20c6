"""The structured return among an agent's last words: JSON or YAML, in a fence or bare (SPEC 8).

A message may be long and is a stranger's: everything here takes time in proportion to what is looked at.
"""

import json
import re
from collections.abc import Iterator, Mapping

LOOKED_AT = 256 * 1024
"""Characters at the end of a message that are looked at."""

_MOST = 8
_MOST_TRIED = 4 * 1024 * 1024
_LEAST_TRIED = 1024
_FENCE = re.compile(r"[ \t>]*(`{3,}|~{3,})")
_OBJECT = re.compile(r'\{(?=\s*")')
_STATUS = re.compile(r"status[\"']?[ \t]*:")
_KEY = re.compile(r"[\"']?[A-Za-z_][\w.-]*[\"']?[ \t]*:(?:\s|$)")
_FIRST_KEY = re.compile(r"[\"']?(?:status|return)[\"']?[ \t]*:(?:\s|$)")
_GOES_ON = re.compile(r"[ \t]|- |-?$|#|[\]}]")

_Span = tuple[int, int]


def returned_documents(message: str) -> list[str]:
    """Return the texts that may be the agent's return, the most likely first: at most eight.

    What ends last in the message comes first, and of two that end alike the longer one.
    """
    text = message[-LOOKED_AT:].replace("\r\n", "\n")
    if "status" not in text:
        return []
    spans = {*_blocks(text), *_objects(text)}
    if text.lstrip().startswith("{"):
        # What is no JSON may be a mapping of YAML.
        spans.update(_with_status(text, 0, len(text)))
    return [text[start:end] for start, end in sorted(spans, key=lambda span: (-span[1], span[0]))[:_MOST]]


def _objects(text: str) -> Iterator[_Span]:
    """Find the outermost JSON objects that have a status, wherever they stand."""
    decoder = json.JSONDecoder(strict=False)
    end, room = 0, _MOST_TRIED
    for found in _OBJECT.finditer(text):
        start = found.start()
        if start < end:
            continue
        try:
            value, end = decoder.raw_decode(text, start)
        except json.JSONDecodeError as error:
            room -= max(error.pos - start, _LEAST_TRIED)
        except RecursionError:
            room -= LOOKED_AT
        else:
            if _has_status(value):
                yield start, end
        if room < 0:
            return


def _has_status(value: object) -> bool:
    if not isinstance(value, Mapping):
        return False
    inner = value.get("return")
    return "status" in value or (isinstance(inner, Mapping) and "status" in inner)


def _blocks(text: str) -> Iterator[_Span]:
    """Find what stands in fences, and the paragraphs that read as YAML, if a status is in them."""
    fence, start, at = "", 0, 0
    bare: list[_Span] = []
    for line in text.splitlines(keepends=True):
        mark = _FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence) and not line[mark.end() :].strip("`~ \t\n"):
                yield from _with_status(text, start, at)
                fence, bare = "", []
        elif mark:
            yield from _bare(text, bare)
            fence, start, bare = mark[1], at + len(line), []
        elif _KEY.match(line) or (bare and _GOES_ON.match(line)):
            bare.append((at, at + len(line)))
        else:
            yield from _bare(text, bare)
            bare = []
        at += len(line)
    if fence:
        yield from _with_status(text, start, at)
    yield from _bare(text, bare)


def _bare(text: str, lines: list[_Span]) -> Iterator[_Span]:
    """Take lines that read as YAML: all of them, or only from the first key of a return, or up to a blank line.

    Prose has lines with a colon too, before the return and after it.
    """
    first = next((at for at, (start, _) in enumerate(lines) if _FIRST_KEY.match(text, start)), None)
    if first is None:
        return
    start, end = lines[first][0], lines[-1][1]
    blank = next((line[0] for line in lines[first:] if not text[line[0] : line[1]].strip()), end)
    for span in ((lines[0][0], end), (start, end), (start, blank)):
        yield from _with_status(text, *span)


def _with_status(text: str, start: int, end: int) -> Iterator[_Span]:
    if _STATUS.search(text, start, end):
        yield start, end
