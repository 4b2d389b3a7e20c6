"""What a configured language model does for a research: it writes reports and chooses among candidates."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from kr import cancellation
from kr.errors import SourceFailure, SourceNotAsked, SourceTimeout
from kr.models import Answer, Related
from kr.research import llm
from kr.research.chain import Breaker
from kr.research.decide import Lookup
from kr.research.persona import Persona
from kr.research.run import Run
from kr.settings import Settings
from kr.source_kinds import is_answer

if TYPE_CHECKING:
    from kr.research.service import Progress

_NAME = "llm"
"""What the model's circuit breaker is called."""
_CHOICE_SECONDS = 5.0
"""For a choice: the reply is a dozen tokens, and all for whom nothing is served wait for it."""


class Model:
    """The language model of the settings."""

    def __init__(self, settings: Settings, environ: Mapping[str, str]) -> None:
        self._config = settings.knowledge_research
        self._environ = environ

    def author(self, run: Run, persona: Persona) -> "Author":
        """Return what writes the report of a research; without ``synthesis: llm`` nobody writes."""
        is_wanted = self._config.synthesis == "llm" and not run.asks_nobody
        timeout = run.overrides.timeout_seconds or self._config.timeout_seconds
        return Author(run, self if is_wanted else None, persona, timeout=timeout)

    def write(self, system: str, user: str, *, timeout: float, temperature: float = 0.2) -> str:
        """Return the model's reply within ``timeout`` seconds. Raises ``SourceFailure``."""
        config = self._config.llm
        if config.base_url is None or config.model is None:
            raise SourceNotAsked("not configured (knowledge_research.llm.base_url and llm.model)")
        from kr.sources.llm import LanguageModel  # heavy

        model = LanguageModel(
            base_url=config.base_url,
            model=config.model,
            api_key=config.key_of(self._environ),
            api_key_env=config.api_key_env,
        )
        return model.write(system, user, timeout=timeout, temperature=temperature)

    @property
    def name(self) -> str:
        return self._config.llm.model or ""

    def choose(self, run: Run, related: Sequence[Related], progress: "Progress") -> Lookup | None:
        """Return the candidate that the model takes; None where it takes none, fails, or is not to be asked."""
        candidates = [it for it in related if it.note is None]
        if self._config.judge != "llm" or not candidates or run.overrides.refresh or run.asks_nobody:
            return None
        try:
            chosen = self._chosen(run, candidates, progress)
        except SourceFailure as failure:
            run.notes.append(f"judge: {failure.reason}; no candidate was taken")
            return None
        taken = run.cache.use(run.query, chosen.id, "llm", chosen.score) if chosen else Lookup()
        if taken.match is None or taken.match.entry.status != "fresh":
            return None
        run.notes.append(f"the language model took {taken.match.entry.id} (judge: llm)")
        return taken

    def _chosen(self, run: Run, candidates: Sequence[Related], progress: "Progress") -> Related | None:
        timeout = min(_CHOICE_SECONDS, float(self._config.timeout_seconds), run.time_left())
        breaker = Breaker(run, self._config.circuit_breaker, timeout=timeout)
        if breaker.is_open(_NAME):
            raise SourceFailure("circuit open")
        progress.asking("the language model")
        try:
            prompt = llm.choice_prompt(run.query, candidates)
            reply = self.write(llm.CHOOSE, prompt, timeout=timeout, temperature=0.0)
            number = llm.read_choice(reply, len(candidates))
        except SourceFailure as failure:
            cancellation.check()  # then it was broken off, and is not to blame
            breaker.note(_NAME, failure)
            raise
        except BaseException:
            breaker.give_back(_NAME)
            raise
        finally:
            progress.done()
        breaker.note(_NAME, None)
        return None if number is None else candidates[number - 1]


class Author:
    """Has a language model, where one is to write, write from what sources answer, once each.

    It reads what words may take for an answer that is none, and for none that is one: so its word counts there. A failure
    leaves an excerpt.
    """

    def __init__(self, run: Run, model: Model | None, persona: Persona, *, timeout: float) -> None:
        self._run = run
        self._model = model
        self._persona = persona
        self._timeout = timeout
        self._written: list[tuple[Answer, llm.Synthesis]] = []

    def covers(self, answer: Answer) -> bool:
        """Whether an answer covers the question, in a source's own words or in the model's."""
        if is_answer(answer.source) and not answer.is_gap:
            return True
        synthesis = self.write(answer)
        return not answer.is_gap if synthesis is None else synthesis.answers

    def write(self, answer: Answer | None) -> llm.Synthesis | None:
        """Return what the model makes of an answer; None where it is not to be asked or has failed."""
        known = next((synthesis for one, synthesis in self._written if one is answer), None)
        if answer is None or known is not None or self._model is None:
            return known
        try:
            timeout = min(self._timeout, self._run.time_left())
            if timeout <= 0:
                raise SourceTimeout("no time is left")
            prompts = llm.writing_prompts(self._persona, self._run.query, answer)
            written = llm.read_report(self._model.write(*prompts, timeout=timeout), self._model.name)
        except SourceFailure as failure:
            self._give_up(failure.reason)
            return None
        if not written.answers and is_answer(answer.source):
            # Such a source answered the question itself, and words are not asked either.
            self._give_up("the language model found no answer in the sources")
            return None
        self._written.append((answer, written))
        return written

    def _give_up(self, reason: str) -> None:
        self._model = None  # of no further answer either
        self._run.notes.append(f"synthesis: {reason}; the report is an excerpt")
