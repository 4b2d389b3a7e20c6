"""Prints what the matcher reaches on the labelled sets, and writes its weights. Run it as scripts/calibrate.

Learned from the first file of needs and judged on the second, both ways; then each of the eight files judged by weights
from the other seven; then what each piece of evidence brings, by leaving it out; then the close wordings.
"""

import argparse
import re
from collections.abc import Sequence
from pathlib import Path

from kr.matching import weights
from kr.matching.evidence import NAMES, NEVER_AGAINST
from kr.matching.learning import Example, judge, learn, mean
from kr.matching.weights import Learned
from kr.values import CacheMatch, MatchRules
from tests.support.calibration import (
    CLOSE,
    FIRST_TWO,
    SHARING,
    Case,
    examples,
    learned_from,
    load_close,
    load_sharing,
    score,
)

MODES: tuple[CacheMatch, ...] = ("balanced", "strict")


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/calibrate", description=__doc__)
    parser.add_argument(
        "--write", action="store_true", help="learn from all files and write kr/matching/weights.py"
    )
    parser.add_argument("--verbose", action="store_true", help="list every miss and wrong answer")
    parser.add_argument(
        "--quick", action="store_true", help="judge the first two files and the close wordings alone"
    )
    arguments = parser.parse_args()
    files = [load_sharing(path) for path in SHARING]
    if arguments.write:
        _write(learned_from(files))
        print("written: kr/matching/weights.py; run scripts/calibrate to see what was reached")
        return
    two = files[: len(FIRST_TWO)]
    print("one of the first two files judged by weights that were learned from the other")
    for place, file in enumerate(two):
        learned = learned_from(two[:place] + two[place + 1 :])
        _print(SHARING[place].stem, file, learned, by_kind=True, verbose=arguments.verbose)
    if not arguments.quick:
        print("\neach file judged by weights that were learned from the others")
        for place, file in enumerate(files):
            _print(SHARING[place].stem, file, learned_from(files[:place] + files[place + 1 :]))
        _leave_out(files)
    print("\nclose wordings, judged by the weights that kr ships")
    for name in CLOSE:
        cases = load_close(name)
        _print(name, cases, weights.DEFAULT, by_kind=True)
        literal = score(cases, MatchRules()).without("paraphrase")
        print(f"    without paraphrases: recall {literal.recall:.3f}, wrong {literal.wrong:.3f}")


def _print(
    name: str, cases: Sequence[Case], learned: Learned, *, by_kind: bool = False, verbose: bool = False
) -> None:
    results = {mode: score(cases, MatchRules(mode=mode), learned) for mode in MODES}
    print(f"  {name}: {len(cases)} queries")
    for mode, result in results.items():
        print(
            f"    {mode:9} recall {result.recall:.3f}, near misses answered {result.answered:.3f}, "
            f"wrong of all {result.wrong:.3f}, taken or related {result.offered:.3f}"
        )
    balanced = results["balanced"]
    for kind in balanced.kinds if by_kind else ():
        part = balanced.of(kind)
        reached = f"recall {part.recall:.2f}" if part.answerable else f"answered {part.answered:.2f}"
        print(f"      {kind:16}{len(part.outcomes):4}  {reached}")
    for outcome in balanced.outcomes if verbose else ():
        if outcome.is_wrong or (outcome.case.expect and not outcome.is_hit):
            case = outcome.case
            print(
                f"      {case.kind}: {case.query.topic} | {case.query.question} -> {outcome.got}, not {case.expect}"
            )


def _leave_out(files: Sequence[Sequence[Case]]) -> None:
    """Judge the first two files without each piece of evidence."""
    weighed = [examples(file) for file in files]

    def reached(without: str | None) -> tuple[float, float]:
        found = []
        for place in range(len(FIRST_TWO)):
            rest = [
                _without(one, without) for file in (*weighed[:place], *weighed[place + 1 :]) for one in file
            ]
            learned = learn(rest, never_against=NEVER_AGAINST, ahead=weights.AHEAD)
            found.append(judge(learned, [_without(one, without) for one in weighed[place]]))
        return mean(found).recall["balanced"], mean(found).wrong["balanced"]

    whole = reached(None)
    print(f"\nwhat each piece of evidence brings: recall {whole[0]:.3f} at {whole[1]:.3f} with all; without")
    for name in NAMES:
        recall, answered = reached(name)
        print(f"    {name:36} {recall:.3f} at {answered:.3f}")


def _without(example: Example, name: str | None) -> Example:
    blank = NAMES.index(name) if name else -1
    rows = {
        entry: tuple(0.0 if place == blank else number for place, number in enumerate(row))
        for entry, row in example.rows.items()
    }
    return example._replace(rows=rows)


def _write(learned: Learned) -> None:
    fitted, least, ahead = learned
    lines = [f'    "{name}": {weight:.4f},' for name, weight in zip(NAMES, fitted.weights, strict=True)]
    limits = ", ".join(f'"{mode}": {limit:.4f}' for mode, limit in least.items())
    text = Path(weights.__file__).read_text(encoding="utf-8")
    head, rest = text.split("BIAS = ", 1)
    _, tail = rest.split("LEAST = ", 1)
    after = tail.split("\n", 1)[1]
    if ahead:
        worth = ", ".join(f"{number:.2f}" for number in ahead)
        after = re.sub(r"(?<=\nAHEAD = ).*", f"Ahead({worth})", after)
    body = "\n".join(lines)
    written = f"{head}BIAS = {fitted.bias:.4f}\nWEIGHTS: dict[str, float] = {{\n{body}\n}}\nLEAST = {{{limits}}}\n{after}"
    Path(weights.__file__).write_text(written, encoding="utf-8")


if __name__ == "__main__":
    main()
