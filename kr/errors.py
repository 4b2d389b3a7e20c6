"""The tree of errors that kr raises on purpose; those that one module alone raises and handles stand there.

A message names what it is about (file, key, path, id) and the system's reason, or the nearest and what to do instead.
Foreign exceptions (SQLAlchemy's, httpx2's, the MCP client's, ``OSError``) are translated at the
seam where they arise, ``from exc``; no caller of a layer sees them.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar


class KrError(Exception):
    """Base of the tree. ``str(error)`` is a sentence for a person, without a trailing newline."""

    code: ClassVar[str] = "error"
    """The ``type`` of an item of ``errors`` in an envelope."""
    exit_status: ClassVar[int] = 1
    http_status: ClassVar[int] = 500


class ConfigError(KrError):
    """A setting has a wrong value; names file, key and what is allowed."""

    exit_status = 2


@dataclass(frozen=True, slots=True)
class FieldError:
    """One bad field of a request, by the name the validation table gives it (``research_query.topic``)."""

    field: str
    message: str


class InvalidRequest(KrError):
    """All bad fields of a request at once; ``read`` holds the texts at the top of a document that were read before."""

    http_status = 422

    def __init__(self, *fields: FieldError) -> None:
        super().__init__("; ".join(f"{error.field}: {error.message}" for error in fields))
        self.fields = fields
        self.read: Mapping[str, str] = {}


class BrokenYaml(KrError):
    """``line`` and ``column`` count from 1; ``path`` is the key of what is wrong, where that is known.

    ``read`` holds the texts at the top of the document that were read before.
    """

    def __init__(self, line: int, column: int, problem: str, *, path: tuple[str | int, ...] = ()) -> None:
        super().__init__(f"line {line}, column {column}: {problem}")
        self.line, self.column, self.problem, self.path = line, column, problem, path
        self.read: Mapping[str, str] = {}


class StoreError(KrError):
    """The database can't serve; research goes on without it. ``problem`` is the message without what to do about it."""

    code = "database_error"
    http_status = 503

    def __init__(self, problem: str, advice: str = "") -> None:
        super().__init__(f"{problem}; {advice}" if advice else problem)
        self.problem = problem


class StoreBusy(StoreError):
    """Another process holds it longer than we wait; it is not corrupt."""

    code = "database_busy"


class StoreConflict(StoreBusy):
    """The server ended the transaction for another's sake; it can be tried again."""


class StoreCorrupt(StoreError):
    """The file is no database or is damaged; it is left as it is."""

    code = "database_corrupt"


class StoreForeign(StoreError):
    """Another program's, or of a kr that was never released."""


class StoreTooNew(StoreError):
    """Written by a newer kr."""

    code = "database_too_new"


class StoreUnwritable(StoreError):
    """It can be read at most."""

    code = "database_unwritable"


class Overloaded(KrError):
    http_status = 429


class UnknownEntry(KrError):
    http_status = 404


class EntryConflict(KrError):
    http_status = 409


class ReviewerNeeded(KrError):
    http_status = 403


class ReportUnwritable(KrError):
    code = "report_write_failed"


class NotInstalled(KrError):
    """What was asked for needs ``package``, which the extra ``kr[extra]`` brings."""

    def __init__(self, extra: str, package: str) -> None:
        how = how_to_install(extra)
        super().__init__(f"this needs the package {package}, which is not installed. This installs it: {how}")


def how_to_install(extra: str) -> str:
    """Give the command that adds an extra of kr to the installation that runs."""
    return f"in the clone of kr, {sys.executable} -m pip install '.[{extra}]'"


class WorkflowError(KrError):
    """A workflow can't be started, run or changed as things stand."""


class SourceFailure(KrError):
    """A source gave no answer; ``reason`` is one short line without secrets, ``said`` what the source itself said, as it came.

    ``retry_after`` is the pause in seconds that it asked for. ``is_fault``: it is broken (counts for the circuit breaker), and does not
    merely not know the framework.
    """

    def __init__(
        self, reason: str, *, said: str = "", retry_after: float | None = None, is_fault: bool = True
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.said = said
        self.retry_after = retry_after
        self.is_fault = is_fault


class SourceNotAsked(SourceFailure):
    """The source was not asked: nothing is known of its health."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason, is_fault=False)


class SourceTimeout(SourceFailure):
    """It gave none in time."""
