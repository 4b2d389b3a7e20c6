"""Fits the weights of the evidence to one's own model of embeddings, on the labelled sets that kr ships (SPEC 3.2)."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from kr.errors import SourceFailure
from kr.matching.fit import Fitted
from kr.matching.frameworks import canonical
from kr.matching.labelled import FILES, Asked, Labelled, read_labelled
from kr.matching.trial import ALLOWED, Example, Learned, Reached, judge, learn, mean
from kr.matching.vectors import cosine, need_text
from kr.research.meaning import Embedder
from kr.values import Entry, Query

_TIMEOUT = 120.0
"""Seconds for one request: a model on a processor that is loaded first takes its time."""
_VERSION = 1

Progress = Callable[[int, int], None]
"""Told how many of how many texts have their vectors."""


class Evidence(Protocol):
    """What speaks for each entry, in numbers."""

    @property
    def names(self) -> Sequence[str]:
        """What the numbers are; with vectors, ``SIMILARITIES`` stand behind them."""

    def __call__(
        self, query: Query, entries: Sequence[Entry], reports: Mapping[str, str]
    ) -> Mapping[str, Sequence[float]]:
        """Return the numbers for each entry, by id, in the order of ``names``."""


SIMILARITIES = ("similarity", "similarity_margin")
"""The cosine of the needs' vectors, and how far it is from the best of the other entries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """``reached`` with the model and ``without`` it, each learned from one file and judged on the other, both ways."""

    model: str
    names: tuple[str, ...]
    learned: Learned
    reached: Reached
    without: Reached
    questions: int


def calibrate(
    embedder: Embedder, evidence: Evidence, labelled: Sequence[Labelled], *, progress: Progress
) -> Calibration:
    """Ask for the vectors of all labelled needs, learn, and judge. Raises ``SourceFailure``.

    The weights that are returned are learned from all files; what is told was reached by weights that were not.
    """
    vectors = _vectors(embedder, labelled, progress)
    plain = [_examples(file, evidence, None) for file in labelled]
    meant = [_examples(file, evidence, vectors) for file in labelled]
    return Calibration(
        model=embedder.model,
        names=(*evidence.names, *SIMILARITIES),
        learned=learn([example for file in meant for example in file]),
        reached=_crosswise(meant),
        without=_crosswise(plain),
        questions=sum(map(len, meant)),
    )


def load_labelled() -> list[Labelled]:
    """Read the labelled sets that kr ships."""
    from kr import matching

    folder = Path(matching.__file__).parent
    return [read_labelled((folder / name).read_text(encoding="utf-8")) for name in FILES]


def similarity_numbers(similarities: Mapping[str, float], entry_id: str) -> tuple[float, float]:
    """Return the ``SIMILARITIES`` of an entry, 0.0 where its vector is not known."""
    own = similarities.get(entry_id)
    if own is None:
        return 0.0, 0.0
    others = [value for other, value in similarities.items() if other != entry_id]
    return own, own - max(others, default=0.0)


def to_text(calibration: Calibration) -> str:
    """Return what is kept of a calibration, as JSON."""
    fitted, least = calibration.learned
    kept = {
        "version": _VERSION,
        "bias": fitted.bias,
        "weights": dict(zip(calibration.names, fitted.weights, strict=True)),
        "least": dict(least),
    }
    return json.dumps(kept)


def from_text(text: str, names: Iterable[str]) -> Learned | None:
    """Read what was kept; None where it is of other evidence than ``names``, and so has to be learned anew."""
    try:
        kept = json.loads(text)
        if kept["version"] != _VERSION or list(kept["weights"]) != list(names):
            return None
        weights = tuple(float(weight) for weight in kept["weights"].values())
        least = {mode: float(kept["least"][mode]) for mode in ALLOWED}
        return Learned(Fitted(float(kept["bias"]), weights), least)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _crosswise(files: Sequence[Sequence[Example]]) -> Reached:
    judged = []
    for place, file in enumerate(files):
        others = [example for at, other in enumerate(files) if at != place for example in other]
        judged.append(judge(learn(others), file))
    return mean(judged)


def _examples(file: Labelled, evidence: Evidence, vectors: Mapping[str, bytes] | None) -> list[Example]:
    by_framework: dict[str, list[Entry]] = {}
    for entry in file.entries:
        by_framework.setdefault(canonical(entry.framework), []).append(entry)
    return [_example(asked, by_framework, file.reports, evidence, vectors) for asked in file.asked]


def _example(
    asked: Asked,
    by_framework: Mapping[str, Sequence[Entry]],
    reports: Mapping[str, str],
    evidence: Evidence,
    vectors: Mapping[str, bytes] | None,
) -> Example:
    framework = canonical(asked.query.framework)
    entries = by_framework.get(framework, [])
    rows = {name: tuple(row) for name, row in evidence(asked.query, entries, reports).items()}
    if vectors is not None:
        need = vectors[_need(asked.query)]
        found = {entry.id: cosine(need, vectors[_need(entry)]) for entry in entries}
        known = {name: value for name, value in found.items() if value is not None}
        rows = {name: (*row, *similarity_numbers(known, name)) for name, row in rows.items()}
    return Example(asked.kind, framework, rows, asked.want)


def _vectors(embedder: Embedder, labelled: Sequence[Labelled], progress: Progress) -> dict[str, bytes]:
    entries = [_need(entry) for file in labelled for entry in file.entries]
    asked = [_need(asked.query) for file in labelled for asked in file.asked]
    texts = list(dict.fromkeys(entries + asked))
    found: dict[str, bytes] = {}
    for start in range(0, len(texts), embedder.most_texts):
        batch = texts[start : start + embedder.most_texts]
        found |= zip(batch, embedder.embed(batch, timeout=_TIMEOUT), strict=True)
        progress(len(found), len(texts))
    if len(set(map(len, found.values()))) > 1:
        raise SourceFailure("the model of embeddings gave vectors of several dimensions")
    return found


def _need(item: Entry | Query) -> str:
    return need_text(item.topic, item.tags, item.question)
