"""Which programming language a lesson, or a task, is about: by its tags, and by the ends of its files' names.

A lesson about another language than the task's never fits: words such as "test" or "set" are in all of them.
"""

from collections.abc import Iterable

_NAMES = {
    "python": "airflow alembic celery coverage dbt django fastapi flask httpx hypothesis jinja2 mypy numpy pandas pip poetry polars "
    "pydantic pydantic-settings pydantic_settings pytest python ruff sklearn sphinx sqlalchemy streamlit tox uv uvicorn",
    "javascript": "astro esbuild eslint express fastify javascript jest mocha next node npm nuxt pnpm prettier prisma react svelte "
    "tailwind testing-library typescript vite vitest vue webpack",
    "java": "gradle java kotlin maven spring",
    "ruby": "bundler rails rspec ruby",
    "php": "composer laravel php",
    "c": "c cmake cpp meson",
    "rust": "cargo rust",
    "go": "go",
    "elixir": "elixir phoenix",
    "haskell": "haskell",
    "julia": "julia",
    "perl": "perl",
    "r": "r",
    "shell": "bash shell",
}
_ENDS = {
    "python": "py pyi ipynb",
    "javascript": "js jsx ts tsx mjs cjs mts cts vue svelte astro",
    "java": "java kt kts gradle",
    "ruby": "rb",
    "php": "php",
    "c": "c h cc cpp hpp",
    "rust": "rs",
    "go": "go",
    "elixir": "ex exs",
    "haskell": "hs",
    "julia": "jl",
    "perl": "pl pm",
    "r": "r",
    "shell": "sh bash",
}
_BY_NAME = {name: language for language, names in _NAMES.items() for name in names.split()}
_BY_END = {end: language for language, ends in _ENDS.items() for end in ends.split()}


def languages_of(names: Iterable[str], files: Iterable[str] = ()) -> frozenset[str]:
    """Return the languages of frameworks, tools or tags, and of files; what is of none, such as Docker, adds nothing."""
    ends = (path.rpartition("/")[2].partition(":")[0].rpartition(".")[2].lower() for path in files)
    found = {_BY_NAME.get(name.strip().lower()) for name in names} | {_BY_END.get(end) for end in ends}
    return frozenset(language for language in found if language is not None)
