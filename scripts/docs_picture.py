"""The picture at the head of README: what a finding is worth, drawn from the table of real agents in docs/findings.md."""

import re
from dataclasses import dataclass
from pathlib import Path

_PAGE = Path(__file__).resolve().parent.parent / "docs" / "findings.md"
_WIDTH, _LEFT, _BAR = 700, 224, 330
_ROW, _GAP, _TOP = 24, 62, 62
_FONT = 'role="img" font-size="14" font-family="-apple-system, BlinkMacSystemFont, Segoe UI, Noto Sans, Helvetica, Arial, sans-serif"'


@dataclass(frozen=True, slots=True)
class Colours:
    text: str
    quiet: str
    has: str
    lacks: str
    track: str


COLOURS = {
    "light": Colours(text="#1f2328", quiet="#59636e", has="#0969da", lacks="#8c959f", track="#eaeef2"),
    "dark": Colours(text="#f0f6fc", quiet="#9198a1", has="#4493f8", lacks="#768390", track="#262c36"),
}


@dataclass(frozen=True, slots=True)
class Measure:
    """One question and its two answers: how long the bars are (0 to 1), and what stands behind them."""

    title: str
    note: str
    has: tuple[float, str]
    lacks: tuple[float, str]


def picture(theme: str) -> str:
    """Draw the table in the colours of a ``theme``, ``light`` or ``dark``."""
    colours, (has, lacks, measures) = COLOURS[theme], read_table(_PAGE.read_text(encoding="utf-8"))
    height = _TOP + _GAP * len(measures) + 6
    told = "; ".join(f"{it.title}: {it.has[1]}, without {it.lacks[1]}" for it in measures)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}" {_FONT}>',
        f"<title>{has} questions with the findings of another agent, {lacks} without. {told}</title>",
    ]
    for y, colour, label in (
        (18, colours.has, f"{has} questions of agents that have another agent's findings"),
        (40, colours.lacks, f"{lacks} questions of an agent that begins with nothing"),
    ):
        square = f'<rect x="0" y="{y - 11}" width="12" height="12" rx="2" fill="{colour}"/>'
        lines.append(f"{square}{_text(20, y, label, colours.quiet)}")
    for number, measure in enumerate(measures):
        top = _TOP + _GAP * number
        lines.append(_text(0, top + 19, measure.title, colours.text, more=' font-weight="600"'))
        lines.append(_text(0, top + _ROW + 15, measure.note, colours.quiet, more=' font-size="12"'))
        lines += _bar(top, *measure.has, colours.has, colours)
        lines += _bar(top + _ROW, *measure.lacks, colours.lacks, colours)
    return "\n".join([*lines, "</svg>", ""])


def read_table(page: str) -> tuple[int, int, list[Measure]]:
    """Return how many questions the agents with and without findings asked, and what came of them."""
    rows = {}
    for line in page.splitlines():
        name, *cells = [cell.strip() for cell in line.strip("|").split("|")]
        rows[name] = cells
    has, lacks = ([_number(cell) for cell in rows[name]] for name in ("B, all", "C"))
    most = max(has[2], lacks[2])
    shares = []
    for title, note, at in (
        ("enough to write the code from", "as a fresh reader graded it", 1),
        ("answered from the cache", "nothing was looked up anew", 3),
    ):
        shares.append(Measure(title, note, _share(has[at], has[0]), _share(lacks[at], lacks[0])))
    tokens = ((it[2] / most, f"{it[2]:,}") for it in (has, lacks))
    shares.append(Measure("tokens a question", "the median; fewer are better", *tokens))
    return has[0], lacks[0], shares


def _number(cell: str) -> int:
    """Return the first number of a cell: of "452, 817" the median."""
    found = re.match(r"\d+(?:,\d{3})*", cell)
    if found is None:
        raise SystemExit(f"docs/findings.md: {cell!r} begins with no number")
    return int(found[0].replace(",", ""))


def _share(part: int, whole: int) -> tuple[float, str]:
    return part / whole, f"{part} of {whole}, {100 * part / whole:.0f} %"


def _bar(top: int, length: float, label: str, colour: str, colours: Colours) -> list[str]:
    place = f'<rect x="{_LEFT}" y="{top + 6}"'
    track = f'{place} width="{_BAR}" height="16" rx="3" fill="{colours.track}"/>'
    filled = f'{place} width="{round(_BAR * length)}" height="16" rx="3" fill="{colour}"/>'
    return [track, filled, _text(_LEFT + _BAR + 12, top + 19, label, colours.text)]


def _text(x: int, y: int, text: str, colour: str, more: str = "") -> str:
    return f'<text x="{x}" y="{y}" fill="{colour}"{more}>{text}</text>'
