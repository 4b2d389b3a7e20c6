"""``kr doctor``: every check, then what they announced, one by one (SPEC 6.5)."""

from collections.abc import Callable, Iterator
from typing import Any

from kr.errors import KrError
from kr.maintenance import content_checks, database_checks, missing_reports
from kr.maintenance.findings import Finding, KnowledgeBase

Check = Callable[[KnowledgeBase], Iterator[Finding]]

CHECKS: tuple[Check, ...] = (
    database_checks.check_network,
    database_checks.check_permissions,
    content_checks.check_links,
    database_checks.check_database,
    database_checks.check_integrity,
    content_checks.check_expired,
    missing_reports.check_missing_reports,
    content_checks.check_orphans,
    content_checks.check_export,
    content_checks.check_circuits,
)
"""In the order in which they repair: a row must be right before it is exported."""

_MOST_ROUNDS = 6


def examine(base: KnowledgeBase) -> list[Finding]:
    """Run every check; nothing is changed. A check that an error stops is a finding itself."""
    base.forget()
    findings: list[Finding] = []
    for check in CHECKS:
        try:
            findings += check(base)
        except (KrError, OSError) as error:
            findings.append(_stopped(base, check, error))
    return findings


def _stopped(base: KnowledgeBase, check: Check, error: KrError | OSError) -> Finding:
    name = check.__name__.removeprefix("check_")
    if isinstance(error, OSError):
        subject, message = str(error.filename or base.folder), error.strerror or str(error)
    else:
        subject, message = base.place, str(error)
    return Finding(check=name, severity="error", subject=subject, message=f"can't be examined: {message}")


def report(base: KnowledgeBase) -> dict[str, Any]:
    """Say what is wrong: ``{knowledge_base, problems, findings, repaired}``."""
    return _result(base, examine(base), [])


def repair(base: KnowledgeBase, announce: Callable[[Finding], None]) -> dict[str, Any]:
    """Do what the findings announce, each once, and look again until nothing more can be done.

    ``announce`` hears of each before it is done. Returns as ``report``, with ``repaired``: the findings that
    were acted on, with ``done``.
    """
    repaired: list[dict[str, Any]] = []
    tried: set[tuple[str, str]] = set()
    findings = examine(base)
    for _ in range(_MOST_ROUNDS):
        due = (it for it in findings if it.fix and (it.check, it.subject) not in tried)
        finding = next(due, None)
        if finding is None:
            break
        for one in _of_one_check(findings, finding, tried):
            tried.add((one.check, one.subject))
            announce(one)
            repaired.append(one.plain() | {"done": _do(one)})
        findings = examine(base)
    return _result(base, findings, repaired)


def _of_one_check(findings: list[Finding], first: Finding, tried: set[tuple[str, str]]) -> list[Finding]:
    """Take what one check found together; what other checks found may be another thing afterwards."""
    same = [it for it in findings if it.fix and it.check == first.check]
    return [it for it in same if (it.check, it.subject) not in tried]


def _do(finding: Finding) -> str:
    if finding.fix is None:
        raise AssertionError("only findings with a fix are repaired")
    try:
        return finding.fix()
    except (KrError, OSError) as error:
        return f"failed: {error}"


def _result(base: KnowledgeBase, findings: list[Finding], repaired: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "knowledge_base": str(base.folder),
        "problems": sum(finding.is_problem for finding in findings),
        "findings": [finding.plain() for finding in findings],
        "repaired": repaired,
    }
