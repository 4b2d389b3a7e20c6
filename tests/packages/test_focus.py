from kr.packages.focus import ROOM, focus, shortened
from kr.reports.terms import question_terms

TERMS = question_terms("thing", "How do I keep rows that have no suffixes?")
WEIGHTS = [term.weight for term in TERMS.all]
LONG = "\n".join(f"- `name{n}` (`int`): {'Nothing to see here. ' * 8}" for n in range(30))
TEXT = f"""Merge two frames.

{"Much is said about it, of no use. " * 30}

**Parameters:**

{LONG}
- `suffixes` (`tuple`): Of the rows.
  More of it.

**Examples:**

It is done so:

```python
>>> merge(a, suffixes=("_x", "_y"))
```

```python
>>> something(else_)
```
"""


def test_short_text_stays_whole() -> None:
    assert focus("def f()", "Short.", TERMS, WEIGHTS) == "Short."


def test_of_a_long_text_what_speaks_of_the_question_is_left() -> None:
    text = focus("def merge(a, suffixes=None)", TEXT, TERMS, WEIGHTS)
    assert text.startswith("Merge two frames.\n\nParameters:\n\n- `name0`")
    assert "- `suffixes` (`tuple`): Of the rows.\n  More of it." in text
    assert text.endswith('\n\nIt is done so:\n\n```python\n>>> merge(a, suffixes=("_x", "_y"))\n```')
    assert "Much is said" not in text
    assert len(text) <= ROOM


def test_what_a_call_needs_is_told_though_nobody_asked() -> None:
    text = focus("def merge(name29, name8=3)", TEXT, TERMS, WEIGHTS, room=1_000)
    assert "- `name29` (`int`): Nothing to see here." in text
    assert "- `name28`" not in text


def test_what_is_about_one_name_has_no_sections() -> None:
    text = "Do it.\n\n## Example\n\n```python\n# no heading\n**x:**\n```\n\n**Note:**\n\nLook."
    assert focus("", text, TERMS, WEIGHTS) == (
        "Do it.\n\nExample:\n\n```python\n# no heading\n**x:**\n```\n\nNote:\n\nLook."
    )


def test_a_long_signature_keeps_what_is_asked_for_or_told() -> None:
    lines = "".join(f"    name{n}: int = {n},\n" for n in range(50))
    signature = f"def merge(\n{lines}    suffixes=None,\n)"
    text = f"- `name3`: text{' and more' * 200}"
    assert shortened(signature, text, TERMS) == (
        "def merge(\n    ...\n    name3: int = 3,\n    ...\n    suffixes=None,\n)"
    )
    assert shortened(signature, "- `name3`: text", TERMS) == signature
    assert shortened("def f()", "", TERMS) == "def f()"
