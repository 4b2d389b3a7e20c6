"""Prints recall and wrong hits of the matcher on the labelled queries. Run it as scripts/calibrate."""

import argparse
from collections.abc import Sequence

from kr.matching import match
from kr.values import TIERS, Entry
from tests.support import calibration


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/calibrate", description=__doc__)
    parser.add_argument(
        "--verbose", action="store_true", help="list every miss and wrong hit with its reason"
    )
    parser.add_argument(
        "files",
        nargs="*",
        default=["matching.yaml", "matching-extra.yaml", "matching-held-out.yaml"],
        help="in tests/data",
    )
    arguments = parser.parse_args()
    for name in arguments.files:
        entries, cases = calibration.load(name)
        print(f"{name}: {len(entries)} entries, {len(cases)} queries")
        for floor in TIERS:
            result = calibration.score(entries, cases, floor=floor)
            _print("rules", floor, result)
            _print("dice", floor, calibration.score(entries, cases, floor=floor, finder=calibration.by_dice))
            for kind in result.kinds:
                part = result.of(kind)
                recall = f"{part.hits:3}/{part.answerable}" if part.answerable else ""
                print(f"      {kind:18}{recall:10}{part.wrong:4} wrong of {len(part.outcomes)}")
            if arguments.verbose:
                _explain(entries, result)
        print()


def _print(finder: str, floor: str, result: calibration.Score) -> None:
    literal = result.without("paraphrase")
    print(
        f"  {finder:5} {floor:22} recall {result.recall:.3f} (without paraphrases {literal.recall:.3f}), "
        f"wrong hits {result.wrong_rate:.3f} ({result.wrong} of {len(result.outcomes)})"
    )


def _explain(entries: Sequence[Entry], result: calibration.Score) -> None:
    for outcome in result.outcomes:
        case = outcome.case
        missed = case.expect is not None and not outcome.is_hit
        if not (missed or outcome.is_wrong):
            continue
        print(f"      {case.id} {case.kind}: {case.query.topic}  {list(case.query.tags)}")
        candidates = [entry for entry in entries if entry.framework == case.query.framework]
        for item in match.rank(case.query, candidates, fuzzy=True, floor=TIERS[-1]):
            mark = (
                "expected" if item.entry.id == case.expect else "got" if item.entry.id == outcome.got else ""
            )
            if mark:
                why = item.reason or f"{item.tier}, tags {list(item.shared_tags)}"
                print(
                    f"        {mark:8} {item.entry.id} {item.topic_overlap:.2f} {item.entry.topic}  ({why})"
                )
        if outcome.got == calibration.TIED:
            print("        got      a tie")


if __name__ == "__main__":
    main()
