"""A report cut to a size: never longer, never a block of code left open, and its sections by name."""

from hypothesis import given
from hypothesis import strategies as st

from kr.text.counting import CUT, fit, headings, section

REPORT = """# vue - slots

**Framework:** vue

## Summary

A slot takes content.

```md
## not a section
```

## Code Examples

```js
h(slot)
```
"""
LINES = st.sampled_from(["", "words of a paragraph", "```", "~~~~ js", "## Title", "x" * 90, "    code"])
TEXTS = st.lists(LINES, max_size=60).map("\n".join)


def open_fence(text: str) -> str:
    """The fence that is open at the end of a text, told by hand."""
    fence = ""
    for line in text.splitlines():
        mark = line.strip().split(" ")[0]
        if line.startswith("    ") or not mark.startswith(("```", "~~~")):
            continue
        if not fence:
            fence = mark
        elif mark.startswith(fence) and line.strip() == mark:
            fence = ""
    return fence


@given(TEXTS, st.integers(min_value=10, max_value=300))
def test_a_cut_text_fits_and_leaves_no_code_open(text: str, tokens: int) -> None:
    cut, is_cut = fit(text, tokens)
    assert len(cut) <= 4 * tokens
    assert is_cut is (len(text) > 4 * tokens)
    if is_cut:
        assert cut.endswith(CUT)
        assert open_fence(cut.removesuffix(CUT)) == ""
    else:
        assert cut == text


def test_a_text_is_cut_between_paragraphs() -> None:
    text = "\n\n".join(f"Paragraph {number} has some words in it." for number in range(20))
    cut, _ = fit(text, 100)
    assert cut.removesuffix(CUT).rstrip("\n").endswith("words in it.")


def test_a_section_is_found_by_its_name_in_any_case() -> None:
    assert headings(REPORT) == ["Summary", "Code Examples"]
    assert section(REPORT, " code examples ") == "## Code Examples\n\n```js\nh(slot)\n```\n"
    assert section(REPORT, "not a section") is None
