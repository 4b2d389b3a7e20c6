"""The return of an agent, and the lessons it words, in what it says last. Pure."""

import json
import re
from collections.abc import Iterator, Mapping
from itertools import islice

LOOKED_AT = 256 * 1024
"""Characters at the end of a message that are looked at."""

_MOST = 8
_SIGNS = ("status", "lessons", "lesson")
_MOST_TRIED = 4 * 1024 * 1024
_LEAST_TRIED = 1024
_FENCED = re.compile(
    r"^[ \t>]*(?P<mark>`{3,}|~{3,})[^\n]*\n(?P<body>.*?)(?:^[ \t>]*(?P=mark)[`~ \t]*$|\Z)",
    re.MULTILINE | re.DOTALL,
)
_OBJECT = re.compile(r'\{(?=\s*")')
_STATUS = re.compile(r"(?:status|lessons?)[\"']?[ \t]*:")
_KEY = r"[\"']?[A-Za-z_][\w.-]*[\"']?[ \t]*:(?=\s|$)"
# Lines that read as YAML: a key, and what may come under it.
_KEYS = re.compile(rf"^{_KEY}[^\n]*(?:\n(?:{_KEY}|[ \t]|- |-?$|#|[\]}}])[^\n]*)*", re.MULTILINE)
_FIRST_KEY = re.compile(r"^[\"']?(?:status|return|lessons?)[\"']?[ \t]*:(?=\s|$)", re.MULTILINE)
_BLANK = re.compile(r"^[ \t]*$", re.MULTILINE)

_Span = tuple[int, int]


def returned_documents(message: str) -> list[str]:
    """Return the texts that may be the agent's return, the most likely first: at most eight.

    What ends last in the message comes first, and of two that end alike the longer one.
    """
    text = message[-LOOKED_AT:].replace("\r\n", "\n")
    if "status" not in text and "lessons" not in text:
        return []
    spans = {*_blocks(text), *_objects(text)}
    if text.lstrip().startswith("{"):
        # What is no JSON may be a mapping of YAML.
        spans.add((0, len(text)))
    found = (text[start:end] for start, end in sorted(spans, key=lambda span: (-span[1], span[0])))
    return list(islice(filter(_STATUS.search, found), _MOST))


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
    return any(key in value for key in _SIGNS) or (isinstance(inner, Mapping) and "status" in inner)


def _blocks(text: str) -> Iterator[_Span]:
    """Find what stands in fences, and lines that read as YAML: all, from a return's first key on, up to a blank line.

    Prose has lines with a colon too, before the return and after it.
    """
    yield from (fenced.span("body") for fenced in _FENCED.finditer(text))
    for keys in _KEYS.finditer(_FENCED.sub(lambda fenced: "!" * len(fenced[0]), text)):
        start, end = keys.span()
        if first := _FIRST_KEY.search(text, start, end):
            blank = _BLANK.search(text, first.start(), end)
            yield from ((start, end), (first.start(), end), (first.start(), blank.start() if blank else end))
