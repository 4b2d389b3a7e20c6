from kr.packages.documented import shortened, without_sections
from kr.reports.terms import question_terms

TERMS = question_terms("thing", "How do I keep rows that have no suffixes?")


def test_what_is_about_one_name_has_no_sections() -> None:
    text = "Do it.\n\n## Example\n\n```python\n# no heading\n**x:**\n```\n\n**Note:**\n\nLook."
    assert without_sections(text) == (
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
