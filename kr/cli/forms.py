"""The two forms of a research question on the command line: words, or a request document (SPEC 3.1)."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from kr.cli.completing import complete_framework
from kr.cli.options import TEXT, request_option

F = TypeVar("F", bound=Callable[..., Any])

_PARAMETERS = (
    click.argument("framework", type=TEXT, required=False, shell_complete=complete_framework),
    click.argument("question", type=TEXT, required=False),
    request_option,
    click.option(
        "--framework-version",
        type=TEXT,
        help="Version in use. Default: read from the project's dependency files.",
    ),
    click.option("--topic", type=TEXT, help="What it is about, in a few words. Default: from the question."),
    click.option(
        "--tag",
        type=TEXT,
        multiple=True,
        help="A tag to match other requests by; may be given several times.",
    ),
)


def question_parameters(function: F) -> F:
    """Add FRAMEWORK, QUESTION, --request, --framework-version, --topic and --tag."""
    for parameter in reversed(_PARAMETERS):
        function = parameter(function)
    return function


def check_form(
    framework: str | None, question: str | None, document: object, options: dict[str, object], *, command: str
) -> None:
    """Refuse a mix of both forms, and half of one. ``options`` are those that were given."""
    if document is None:
        if framework is None or question is None:
            raise click.UsageError(
                f'Give FRAMEWORK and QUESTION (kr {command} click "How do I …?"), or --request FILE.'
            )
        return
    if framework is not None:
        raise click.UsageError("--request holds the whole question: leave FRAMEWORK and QUESTION out.")
    if options:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in options)
        raise click.UsageError(f"{names} cannot be combined with --request: put it into the document.")
