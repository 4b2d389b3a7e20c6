from kr.packages.documented import shortened, split_sections, without_sections
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
    more = ", ".join(f"name{n}" for n in range(4, 35))  # as many as fit
    assert shortened(signature, text, TERMS) == (
        f"def merge(\n    ... name0, name1, name2\n    name3: int = 3,\n    ... {more}\n    suffixes=None,\n)"
    )
    assert shortened(signature, "- `name3`: text", TERMS) == signature
    assert shortened("def f()", "", TERMS) == "def f()"


def test_headings_name_things_and_links_say_where_they_lead() -> None:
    text = (
        "# Store [![ci][badge]][home]\n\nSee [the guide][home].\n\n## Open[⬆](#contents)<!-- made by a tool -->\n\nOpens it.\n\n"
        'A packet is anything that has an id.\n---\n\n### <a name="close"></a>Close\n\nCloses it.\n\n'
        "[home]: https://example.com\n[badge]: https://example.com/b.svg\n"
    )
    found = [(section.title, section.text) for section in split_sections(text)]
    assert [title for title, _ in found] == ["Store", "Store > Open", "Store > Open > Close"]
    assert found[0][1] == "See [the guide](https://example.com)."
    assert "A packet is anything" in found[1][1]


def test_a_table_of_contents_is_no_section() -> None:
    text = "# Store\n\n## Contents\n\n- [Open](#open)\n  - [Twice](#twice)\n\n## Open\n\n- [The guide](https://example.com) tells more.\n"
    assert [section.title for section in split_sections(text)] == ["Store > Open"]


def test_a_declaration_that_nothing_is_left_of_goes() -> None:
    members = "".join(f"  name{n}: number;\n" for n in range(150))
    signature = f"class Worker {{\n{members}  suffixes?: Options;\n}}\n\ninterface Options {{\n{members}}}"
    told = shortened(signature, "", TERMS)
    assert told.startswith("class Worker {\n    ... name0, name1,")
    assert told.endswith("\n  suffixes?: Options;\n}")
