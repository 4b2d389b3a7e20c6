"""The one value that the rest of kr reads its configuration from, and what a hit remembers of it (HIT: a hit reads no YAML).

A memory is a small file in the knowledge base. It counts while all that the settings are made of is as it was: files, ``KR_*``, ``HOME``,
working directory, options, variables. A miss reads the files: nobody who can write to the folder points kr at other servers.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from kr import __version__
from kr.naming import sha256_of
from kr.values import CacheMatch, Tier, Value

if TYPE_CHECKING:
    from pathlib import Path

    from _typeshed import StrPath

    from kr.freshness import Limits
    from kr.settings.model import Defaults, E2EInspection, KnowledgeResearch, RoleMapping


class HitSettings(Value):
    """What a hit, and lessons for an agent, need to know: plain values, and no secret among them."""

    enabled: bool
    all_phases: tuple[str, ...]
    lessons_injection_budget: int
    cache_ttl_days: int
    archive_after_days: int
    max_age_days: int | None
    max_entries: int
    max_calls_per_story: int
    cache_match: CacheMatch
    cache_match_floor: Tier
    cache_fuzzy_match: bool
    aliases: Mapping[str, str]
    overall_timeout: float

    @property
    def limits(self) -> "Limits":
        """The ages at which entries become stale, and are archived (SPEC 3.3)."""
        from kr.freshness import Limits

        return Limits(
            ttl_days=self.cache_ttl_days,
            archive_after_days=self.archive_after_days,
            max_age_days=self.max_age_days,
        )


class Details(Value):
    """All of the configuration, validated: its sections, the project's root, and the file, if there is one.

    ``names_persona``: the persona was chosen, it is not the default.
    """

    knowledge_research: "KnowledgeResearch"
    role_mapping: "RoleMapping"
    defaults: "Defaults"
    e2e_inspection: "E2EInspection"
    project_root: "Path"
    config_file: "Path | None"
    names_persona: bool
    left_out: tuple[str, ...] = ()
    """What the project's file says and the user does not trust, one line a setting."""


class Settings:
    """The configuration of one invocation; paths are absolute. ``database_url`` is as given, None for ``kr.db`` in the knowledge base.

    ``hit`` may be remembered (``Memory``); the first look at one of the details reads the files, and raises ``ConfigError``.
    """

    def __init__(
        self,
        *,
        hit: HitSettings,
        read: Callable[[], Details],
        knowledge_base: "StrPath",
        database_url: str | None = None,
        warnings: tuple[str, ...] = (),
    ) -> None:
        self.hit = hit
        self.base = os.fspath(knowledge_base)
        """The knowledge base as text: a hit does without ``pathlib``, which costs a tenth of Python and click."""
        self.database_url = database_url
        self.warnings = warnings
        self._read = read
        self._remember: Callable[[HitSettings], None] | None = None
        self.key = ""
        """Stands for everything that these settings are made of; empty where that is not known."""

    def remember_with(self, remember: Callable[[HitSettings], None]) -> None:
        self._remember = remember

    def remember(self) -> None:
        """Let the next invocation begin with ``hit``, where it may and this one did not."""
        if self._remember is not None:
            self._remember(self.hit)
            self._remember = None

    @cached_property
    def details(self) -> Details:
        return self._read()

    @cached_property
    def knowledge_base(self) -> "Path":
        from pathlib import Path

        return Path(self.base)

    @property
    def lessons_file(self) -> "Path":
        """The append-only file of lessons (SPEC 2)."""
        return self.knowledge_base / "lessons" / "_lessons-learned.md"

    @property
    def project_root(self) -> "Path":
        return self.details.project_root

    @property
    def config_file(self) -> "Path | None":
        return self.details.config_file

    @property
    def knowledge_research(self) -> "KnowledgeResearch":
        return self.details.knowledge_research

    @property
    def role_mapping(self) -> "RoleMapping":
        return self.details.role_mapping

    @property
    def defaults(self) -> "Defaults":
        return self.details.defaults

    @property
    def e2e_inspection(self) -> "E2EInspection":
        return self.details.e2e_inspection


def load_settings(
    *,
    config: "StrPath | None",
    knowledge_base: "StrPath | None",
    environ: Mapping[str, str],
    cwd: "StrPath",
    may_recall: bool = False,
) -> Settings:
    """Read the configuration (SPEC 7); paths relative to ``cwd``. Raises ``ConfigError``, one line per wrong value.

    With ``may_recall`` what a hit needs may be remembered from an earlier invocation (``Memory``).
    """

    def read() -> Settings:
        from kr.settings.raw import read_raw
        from kr.settings.validate import validated

        raw = read_raw(config=config, knowledge_base=knowledge_base, environ=environ, cwd=cwd)
        return validated(raw, environ)

    if not may_recall:
        return read()
    memory = Memory(config=config, knowledge_base=knowledge_base, environ=environ, cwd=cwd)
    hit = memory.recall()
    if hit is None:
        settings = read()
        if not settings.warnings and memory.may_remember(settings.base):
            settings.remember_with(memory.remember)
            settings.key = memory.key
        return settings
    recalled = Settings(
        hit=hit,
        read=lambda: read().details,
        knowledge_base=os.path.realpath(memory.base),
        database_url=None
        if knowledge_base is not None
        else environ.get("KR_DATABASE_URL", "").strip() or None,
    )
    recalled.key = memory.key
    return recalled


DEFAULT_KNOWLEDGE_BASE = "_bmad-output/knowledge-base"
_FOLDER = ".kr-settings"
_MOST = 64
OURS = ("kr.yaml", "_bmad/bso/config.yaml")
ANYBODYS = "config.yaml"
BMM_CONFIG = "_bmad/bmm/config.yaml"
ROOT_MARKS = ("_bmad-output", "_bmad", ".git")
_CODE = ("discovery.py", "model.py", "raw.py", "trust.py", "validate.py", "__init__.py")
OWN_FILE = "kr/kr.yaml"
DIGESTS = "kr/trusted"
_LARGEST = 65_536


class Memory:
    """The memory for one invocation's sources of settings. Nothing in it raises: without a memory the files are read."""

    def __init__(
        self,
        *,
        config: "StrPath | None",
        knowledge_base: "StrPath | None",
        environ: Mapping[str, str],
        cwd: "StrPath",
    ) -> None:
        self.base = _guess(knowledge_base, environ, cwd) or ""
        """The knowledge base; empty where that takes no configuration to be read."""
        self.key = ""
        """Stands for everything that the settings are made of."""
        try:
            material = repr(list(_sources(config, knowledge_base, environ, cwd)))
        except OSError:
            self.base = ""
            return
        self.key = sha256_of(material.encode(errors="surrogateescape"))

    def recall(self) -> HitSettings | None:
        known = kept(self.base, self.key[:16]) if self.base else None
        try:
            if known is None or known.pop("key") != self.key:
                return None
            return HitSettings(**{**known, "all_phases": tuple(known["all_phases"])})
        except (TypeError, KeyError):
            return None

    def may_remember(self, knowledge_base: str) -> bool:
        """Tell whether the memory would be found again."""
        return bool(self.base) and os.path.realpath(self.base) == knowledge_base

    def remember(self, hit: HitSettings) -> None:
        """Keep it; where nothing can be written, nothing is remembered."""
        if self.base:
            keep(self.base, self.key[:16], {**hit.plain(), "key": self.key})


def kept(base: "StrPath", name: str) -> dict[str, Any] | None:
    """Return what was kept under a name; None where there is nothing, or nothing that can be read."""
    import json

    try:
        with open(_file(base, name), "rb") as file:
            known = json.loads(file.read(_LARGEST))
    except (OSError, ValueError):
        return None
    return known if isinstance(known, dict) else None


def keep(base: "StrPath", name: str, plain: Mapping[str, Any]) -> None:
    """Keep plain values under a name, in place of the oldest of many; where nothing can be written, nothing is."""
    import json
    from contextlib import suppress

    path = _file(base, name)
    part, folder = f"{path}.{os.getpid()}", os.path.dirname(path)
    with suppress(OSError):
        if not os.path.isdir(folder):
            os.mkdir(folder)  # a knowledge base that is not there is not made
        for old in sorted(os.scandir(folder), key=lambda found: found.stat().st_mtime)[:-_MOST]:
            os.unlink(old.path)
        with open(part, "w", encoding="utf-8") as file:
            json.dump(plain, file)
        os.replace(part, path)


def _file(base: "StrPath", name: str) -> str:
    return os.path.join(base, _FOLDER, f"{name}.json")


def user_folder(environ: Mapping[str, str], variable: str, default: str) -> str | None:
    """Name a folder of the user's by the XDG rules: an absolute path in the variable, else below the home; None without one."""
    named, home = environ.get(variable, ""), environ.get("HOME", "")
    if os.path.isabs(named):
        return named
    return os.path.join(home, default) if os.path.isabs(home) else None


def _guess(knowledge_base: "StrPath | None", environ: Mapping[str, str], cwd: "StrPath") -> str | None:
    """Name the knowledge base where that takes no configuration to be read, else None. A wrong guess costs the memory alone."""
    named = str(knowledge_base) if knowledge_base is not None else environ.get("KR_KNOWLEDGE_BASE_PATH", "")
    if named:
        return None if named[0] in "~{" else os.path.join(cwd, named)
    try:
        own = next(map(_content, _own_files(environ)), None) or b""
    except OSError:
        return None
    for folder in _upwards(cwd):
        for name in OURS:
            if content := _content(f"{folder}/{name}"):
                return _named_in(content + b"\n" + own, folder)
    if b"knowledge_base_path" in own:
        return None
    return next(
        (f"{folder}/{DEFAULT_KNOWLEDGE_BASE}" for folder in _upwards(cwd) if _has_mark(folder)),
        os.path.join(cwd, DEFAULT_KNOWLEDGE_BASE),
    )


def _named_in(content: bytes, root: str) -> str | None:
    for line in content.splitlines():
        key, colon, value = line.strip().partition(b":")
        if key == b"knowledge_base_path" and colon:
            path = value.partition(b" #")[0].strip().strip(b"'\"").decode(errors="replace")
            path = path.replace("{project-root}", root)
            return None if not path or path[0] in "~{&*|>" or "{" in path else os.path.join(root, path)
    return f"{root}/{DEFAULT_KNOWLEDGE_BASE}"


def _sources(
    config: "StrPath | None", knowledge_base: "StrPath | None", environ: Mapping[str, str], cwd: "StrPath"
) -> Iterator[Any]:
    """Give everything that the settings are made of. Raises ``OSError`` for what can't be read."""
    yield __version__, *(_stamp(name) for name in _CODE)
    yield str(config), str(knowledge_base), str(cwd), environ.get("HOME")
    own = sorted((name, value) for name, value in environ.items() if name.startswith("KR_"))
    yield own
    texts = [value.encode(errors="surrogateescape") for _, value in own]
    for path in (*_own_files(environ), *_files(config, environ, cwd)):
        content = _content(path)
        yield path, content
        texts.append(content or b"")
    yield [_has_mark(folder) for folder in _upwards(cwd)]
    if any(b"${" in text for text in texts):
        import re

        names = sorted(
            {name for text in texts for name in re.findall(rb"\$\{([A-Za-z_][A-Za-z0-9_]*)", text)}
        )
        yield [(name, environ.get(name.decode())) for name in names]


def _own_files(environ: Mapping[str, str]) -> Iterator[str]:
    """Give the user's own configuration, and the digests of the files that the user trusts."""
    places = (("XDG_CONFIG_HOME", ".config", OWN_FILE), ("XDG_STATE_HOME", ".local/state", DIGESTS))
    for variable, default, name in places:
        if folder := user_folder(environ, variable, default):
            yield os.path.join(folder, name)


def _files(config: "StrPath | None", environ: Mapping[str, str], cwd: "StrPath") -> Iterator[str]:
    named = str(config) if config is not None else environ.get("KR_CONFIG", "")
    if named:
        home = environ.get("HOME", "")
        path = os.path.join(cwd, home + named[1:] if named.startswith("~/") else named)
        yield path
        for folder in _upwards(os.path.dirname(os.path.realpath(path))):
            yield f"{folder}/{BMM_CONFIG}"
    for folder in _upwards(cwd):
        for name in (*OURS, ANYBODYS, BMM_CONFIG):
            yield f"{folder}/{name}"


def _upwards(start: "StrPath") -> Iterator[str]:
    folder = os.path.realpath(start)
    while True:
        yield folder.rstrip("/")
        above = os.path.dirname(folder)
        if above == folder:
            return
        folder = above


def _content(path: str) -> bytes | None:
    """Return a file's bytes, None where there is no file. What is there and can't be read is an ``OSError``."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except (FileNotFoundError, NotADirectoryError):
        return b"link" if os.path.islink(path) else None
    except ValueError as error:  # a NUL
        raise OSError from error


def _has_mark(folder: str) -> bool:
    return any(os.path.exists(f"{folder}/{mark}") for mark in ROOT_MARKS)


def _stamp(name: str) -> int | None:
    try:
        return os.stat(os.path.join(os.path.dirname(__file__), name)).st_mtime_ns
    except OSError:
        return None
