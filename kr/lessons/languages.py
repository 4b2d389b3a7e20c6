"""Which programming language a lesson, or a task, is about: by its tags, and by the ends of its files' names.

A lesson about another language than the task's never fits: words such as "test" or "set" are in all of them.
"""

from collections.abc import Iterable

_WORDS = {
    "python": "py pyi ipynb airflow alembic celery coverage dbt django fastapi flask httpx hypothesis jinja2 mypy numpy pandas pip "
    "poetry polars pydantic pydantic-settings pydantic_settings pytest ruff sklearn sphinx sqlalchemy streamlit tox uv uvicorn",
    "javascript": "js jsx ts tsx mjs cjs mts cts esbuild eslint express fastify jest mocha next node npm nuxt pnpm prettier prisma react "
    "svelte tailwind testing-library typescript vite vitest vue webpack astro",
    "java": "kt kts gradle kotlin maven spring",
    "ruby": "rb bundler rails rspec",
    "php": "composer laravel",
    "c": "h cc cpp hpp cmake meson",
    "rust": "rs cargo",
    "go": "",
    "elixir": "ex exs phoenix",
    "haskell": "hs",
    "julia": "jl",
    "perl": "pl pm",
    "r": "",
    "shell": "sh bash",
}
_LANGUAGES = {word: name for name, words in _WORDS.items() for word in [name, *words.split()]}


def languages_of(names: Iterable[str], files: Iterable[str] = ()) -> set[str]:
    """Return the languages of frameworks, tools or tags, and of files; what is of none, such as Docker, adds nothing."""
    ends = (path.rpartition("/")[2].partition(":")[0].rpartition(".")[2] for path in files)
    return {_LANGUAGES[word] for it in (*names, *ends) if (word := it.strip().lower()) in _LANGUAGES}
