"""``kr research``: a question from a person, or a request document from an agent."""

from pathlib import Path
from typing import IO, Any

import click

from kr.cli.forms import check_form, question_parameters
from kr.cli.options import TEXT, common, common_options, open_app
from kr.cli.render import emit, wants_text
from kr.documents import LIMIT

_EPILOG = """\b
Examples:
  kr research click "How do I make an option repeatable?"
  kr research vue "When is a watcher better than a computed property?" --framework-version 3.5 --tag watch
  kr research --request request.yaml
  echo '{"mode": "research", ...}' | kr research --request - --format json
"""


@click.command("research", epilog=_EPILOG)
@question_parameters
@click.option("--story-key", type=TEXT, help="The story that pays for it, such as 3-1.")
@click.option("--session-id", type=TEXT, help="The session that the story belongs to. Default: a new one.")
@click.option(
    "--max-calls",
    type=click.IntRange(min=0),
    help="Calls to sources that this request may cost; 0 asks none.",
)
@click.option(
    "--timeout", type=click.IntRange(min=1), metavar="SECONDS", help="Time that one source may take."
)
@click.option("--include-report", is_flag=True, help="Put the report's text into the answer.")
@common_options
@click.pass_context
def command(
    ctx: click.Context,
    /,
    framework: str | None,
    question: str | None,
    document: IO[bytes] | None,
    *,
    include_report: bool,
    **given: Any,
) -> int:
    """Answer a question about FRAMEWORK from the cache, or research it once for everyone.

    Sources are asked in order (Context7, DeepWiki, web search) until one answers, within the budget of the
    story; without a network the documentation of the installed package answers. The answer is a Markdown
    report in the knowledge base.
    """
    options = {name: value for name, value in given.items() if value is not None and value != ()}
    check_form(framework, question, document, options, command="research")
    shown = wants_text(common(ctx))
    with open_app(ctx) as app:
        if document is not None:
            data = document.read(LIMIT + 1)
            envelope = app.requests.research_document(data, include_report=include_report or shown)
        else:
            envelope = app.requests.research_question(
                str(framework), str(question), include_report=include_report or shown, **options
            )
        value = envelope.plain()
        emit(value, common(ctx), lambda it: view(it, app.settings.knowledge_base))
    return 1 if value["status"] == "failure" else 0


def view(value: dict[str, Any], knowledge_base: Path) -> str:
    """Make the readable view: what happened in a few lines, then the report."""
    results = value["results"]
    lines = [f"{click.style(value['status'], bold=True)}  {_summary(results)}"]
    lines += [f"  {click.style('error', fg='red')} {_told(problem)}" for problem in value["errors"]]
    if results is not None:
        lines += [f"  {click.style('note', fg='yellow')}  {note}" for note in results["degradation_notes"]]
        if results["report_path"] and results["index_updated"]:
            lines.append(f"  {click.style('report', fg='cyan')} {knowledge_base / results['report_path']}")
        if results["report"]:
            lines += ["", results["report"]]
    return "\n".join(lines)


def _summary(results: dict[str, Any] | None) -> str:
    if results is None:
        return ""
    if results["cache_hit"]:
        how = (
            f"matched by {results['match']['tier']}" if results["match"] else "from another agent's research"
        )
        return f"from the cache, {how}, confidence {results['confidence']}"
    asked = [f"{row['source']}: {row['status']}" for row in results["sources_consulted"]]
    return f"confidence {results['confidence']}; {', '.join(asked) or 'no source asked'}"


def _told(problem: dict[str, Any]) -> str:
    return f"{problem['field']}: {problem['message']}" if "field" in problem else str(problem["message"])
