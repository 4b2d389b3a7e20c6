"""Whether what an installed package says about a question is an answer at all."""

from collections.abc import Iterable

from kr.reports.ranking import Scored
from kr.reports.terms import Terms


def answers(best: Iterable[Scored], terms: Terms) -> bool:
    """Tell whether a ranking holds an answer.

    That is a text with two terms of the question, with one in its title, or with its only one or an identifier.
    """
    is_alone = sum(term.is_main for term in terms.all) <= 1
    return any(
        row.titled
        or len(row.said) >= 2
        or (is_alone and row.said)
        or any(terms.all[at].is_name for at in row.said)
        for row in best
    )
