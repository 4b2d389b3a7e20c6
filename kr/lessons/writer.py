"""Lets the configured language model word lessons (SPEC 4.2, ``lessons_distiller: llm``)."""

import logging
from collections.abc import Mapping

from kr.errors import SourceFailure
from kr.lessons.distill.distill import Told
from kr.lessons.distill.material import Writer, scrubbed
from kr.lessons.distill.model import DoubtError, prompts, read_lesson
from kr.lessons.returned import Finding
from kr.settings import Settings
from kr.sources.language_model import LanguageModel

logger = logging.getLogger(__name__)


def lesson_writer(settings: Settings, environ: Mapping[str, str], *, timeout: float) -> Writer | None:
    """Return what asks the model, with ``timeout`` seconds for each lesson; any doubt falls back to the rules' line.

    ``None``, with a warning, when no endpoint is configured.
    """
    llm = settings.knowledge_research.llm
    if llm.base_url is None or llm.model is None:
        logger.warning("lessons_distiller: llm needs knowledge_research.llm.base_url and llm.model")
        return None
    api_key = environ.get(llm.api_key_env) if llm.api_key_env else None
    model = LanguageModel(base_url=llm.base_url, model=llm.model, api_key=api_key)

    def write(finding: Finding, told: Told | None, limit: int) -> Told | None:
        seen = scrubbed(finding)
        try:
            reply = model.write(*prompts(seen, told, limit), timeout=timeout)
            return read_lesson(reply, seen, told, limit)
        except SourceFailure as error:
            logger.warning("the lesson is worded by the rules: %s", error.reason)
        except DoubtError as error:
            logger.warning("the lesson is worded by the rules; the model's answer is passed over: %s", error)
        return told

    return write
