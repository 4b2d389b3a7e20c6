"""Fits the weights of the evidence to one's own model of embeddings, on the labelled sets that kr ships (SPEC 3.2)."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from kr.errors import SourceFailure
from kr.matching import evidence as in_words
from kr.matching.frameworks import canonical
from kr.matching.learning import (
    ALLOWED,
    FILES,
    Example,
    Labelled,
    Reached,
    judge,
    learn,
    mean,
    read_labelled,
)
from kr.matching.terms import keys_of
from kr.matching.vectors import (
    SIMILARITIES,
    Calibrated,
    joined,
    likeness,
    need_text,
    similarity_numbers,
    texts_of,
)
from kr.matching.weights import DEFAULT, Ahead, Learned
from kr.research.meaning import Embedder
from kr.store.store import Store
from kr.values import Entry, Query

_TIMEOUT = 120.0
"""Seconds for one request: a model on a processor that is loaded first takes its time."""

_FOLDS = 8
"""Of the frameworks, 64 in all: with one by one a user would wait for minutes."""

Progress = Callable[[int, int], None]
"""Told how many of how many texts have their vectors."""


class Evidence(Protocol):
    """What speaks for each entry, in numbers."""

    @property
    def names(self) -> Sequence[str]:
        """What the numbers are; with vectors, ``SIMILARITIES`` stand behind them."""

    @property
    def never_against(self) -> Collection[int]:
        """The places of numbers that may not get a weight below 0."""

    @property
    def ahead(self) -> Ahead | None:
        """What it is worth to be ahead of the framework's other entries, where that is known."""

    def __call__(
        self, query: Query, entries: Sequence[Entry], reports: Mapping[str, str]
    ) -> Mapping[str, Sequence[float]]:
        """Return the numbers for each entry, by id, in the order of ``names``; the entry that leads stands first."""


class InWords:
    """The evidence that kr weighs without a model. What it works out of a report it keeps."""

    names = in_words.NAMES
    never_against = in_words.NEVER_AGAINST
    ahead = DEFAULT.ahead

    def __init__(self) -> None:
        self._keys: dict[tuple[str, str], dict[str, int]] = {}

    def __call__(
        self, query: Query, entries: Sequence[Entry], reports: Mapping[str, str]
    ) -> dict[str, tuple[float, ...]]:
        """Weigh the words of the request against each entry's need and report."""
        candidates = [in_words.Candidate(entry, self._of(entry, reports[entry.id])) for entry in entries]
        weighed = in_words.weigh(in_words.Asked(query), candidates)
        rows = [(entry.id, found.numbers) for entry, found in zip(entries, weighed, strict=True)]
        return dict(sorted(rows, key=lambda row: -in_words.lead(row[1])))

    def _of(self, entry: Entry, report: str) -> dict[str, int]:
        which = entry.id, report  # entries of several files have one id
        if which not in self._keys:
            self._keys[which] = keys_of((entry.topic, entry.tags, entry.question), (), report)
        return self._keys[which]


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """``reached`` with the model and ``without`` it, each learned from one half of the files and judged on the other, both ways."""

    model: str
    names: tuple[str, ...]
    calibrated: Calibrated
    reached: Reached
    without: Reached
    questions: int

    def plain(self) -> dict[str, Any]:
        """Return what is told of it."""
        return {
            "model": self.model,
            "questions": self.questions,
            "reached": _plain(self.reached),
            "without": _plain(self.without),
        }


def _plain(reached: Reached) -> dict[str, float]:
    shares = {"first": reached.first}
    for mode in ALLOWED:
        shares |= {f"recall_{mode}": reached.recall[mode], f"wrong_{mode}": reached.wrong[mode]}
    return {name: round(share, 4) for name, share in shares.items()}


def calibrate(
    embedder: Embedder, evidence: Evidence, labelled: Sequence[Labelled], *, progress: Progress
) -> Calibration:
    """Ask for the vectors of all labelled needs, learn, and judge. Raises ``SourceFailure``.

    The weights that are returned are learned from all files; what is told was reached by weights that were not.
    """
    vectors = _vectors(embedder, labelled, progress)
    plain = [_examples(file, evidence) for file in labelled]
    meant = [_with_vectors(*both, vectors) for both in zip(labelled, plain, strict=True)]
    return Calibration(
        model=embedder.model,
        names=(*evidence.names, *SIMILARITIES),
        calibrated=Calibrated(
            _learn(meant, evidence),
            usual_next=_usual_next(meant, len(evidence.names)),
        ),
        reached=_crosswise(meant, evidence),
        without=_crosswise(plain, evidence),
        questions=sum(map(len, meant)),
    )


def embed_entries(embedder: Embedder, store: Store, *, progress: Progress) -> None:
    """Keep the vectors of all entries, so that the next look-up compares with every one. Raises ``SourceFailure``, ``StoreError``."""
    with store.read() as unit:
        entries = unit.entries.all()
    found: dict[str, bytes] = {}
    for entry in entries:
        texts = texts_of(entry, store.read_report(entry) or "")
        found[entry.id] = joined(embedder.embed(texts, timeout=_TIMEOUT))
        progress(len(found), len(entries))
    with store.write() as unit:
        unit.vectors.put(embedder.model, found)


def load_labelled() -> list[Labelled]:
    """Read the labelled sets that kr ships."""
    from kr import matching

    folder = Path(matching.__file__).parent
    return [read_labelled((folder / name).read_text(encoding="utf-8")) for name in FILES]


def _usual_next(files: Sequence[Sequence[Example]], place: int) -> float:
    """Return the mean of the second best similarities, which stand at ``place``."""
    found = [
        sorted(row[place] for row in example.rows.values())[-2]
        for file in files
        for example in file
        if len(example.rows) > 1
    ]
    return sum(found) / len(found)


def _crosswise(files: Sequence[Sequence[Example]], evidence: Evidence) -> Reached:
    halves = files[::2], files[1::2]
    judged = []
    for mine, others in (halves, halves[::-1]):
        learned = _learn(others, evidence)
        judged += [judge(learned, file) for file in mine]
    return mean(judged)


def _learn(files: Sequence[Sequence[Example]], evidence: Evidence) -> Learned:
    examples = [example for file in files for example in file]
    return learn(examples, never_against=evidence.never_against, ahead=evidence.ahead, most_folds=_FOLDS)


def _examples(file: Labelled, evidence: Evidence) -> list[Example]:
    by_framework: dict[str, list[Entry]] = {}
    for entry in file.entries:
        by_framework.setdefault(canonical(entry.framework), []).append(entry)
    found = []
    for asked in file.asked:
        framework = canonical(asked.query.framework)
        rows = evidence(asked.query, by_framework.get(framework, []), file.reports)
        found.append(Example(asked.kind, framework, rows, asked.want))
    return found


def _with_vectors(file: Labelled, examples: Sequence[Example], vectors: Mapping[str, bytes]) -> list[Example]:
    """Put what the vectors say behind the numbers of each example."""
    kept = {
        entry.id: joined([vectors[text] for text in texts_of(entry, file.reports[entry.id])])
        for entry in file.entries
    }
    found = []
    for asked, example in zip(file.asked, examples, strict=True):
        need = vectors[_need(asked.query)]
        compared = {name: likeness(need, kept[name]) for name in example.rows}
        similarities = {name: value for name, value in compared.items() if value is not None}
        # No framework of the sets has one entry alone.
        numbers = similarity_numbers(similarities, usual_next=0.0)
        rows = {name: (*row, *numbers[name]) for name, row in example.rows.items()}
        found.append(example._replace(rows=rows))
    return found


def _vectors(embedder: Embedder, labelled: Sequence[Labelled], progress: Progress) -> dict[str, bytes]:
    entries = [
        text
        for file in labelled
        for entry in file.entries
        for text in texts_of(entry, file.reports[entry.id])
    ]
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


def _need(query: Query) -> str:
    return need_text(query.topic, query.tags, query.question)
