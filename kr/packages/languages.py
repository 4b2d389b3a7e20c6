"""The languages a project is written in, with the version that it pins or asks for (SPEC 6.4)."""

import re
from collections.abc import Callable, Iterator
from typing import Any

from kr.packages.folder import Folder
from kr.packages.model import Inventory
from kr.packages.simple_projects import go_directives

_TOOL_NAMES = {"nodejs": "node", "golang": "go", "dotnet-core": "dotnet"}
"""How asdf and mise call what has another name here."""


def find(folder: Folder, inventory: Inventory) -> None:
    """Add each language once, by the file that says most exactly which version: a pin before a range.

    A pin may lie above the folder, up to the repository's root; what manifests say counts for their own folder.
    """
    ups = ["", *(up for up, _ in folder.above())]
    known: set[str] = set()
    for language, version, file in [*_pins(folder, ups), *_manifests(folder)]:
        if language not in known:
            known.add(language)
            inventory.add("language", language, version, file, direct=True)


def _pins(folder: Folder, ups: list[str]) -> Iterator[tuple[str, str, str]]:
    for up in ups:
        for language, names in _VERSION_FILES.items():
            for name in names:
                lines = (folder.text(f"{up}{name}") or "").splitlines()
                line = next((text for each in lines if (text := each.partition("#")[0].strip())), None)
                if line:
                    yield language, _number(line), f"{up}{name}"
        for language, version, file in [
            *_tool_versions(folder, up),
            *_mise(folder, up),
            *_sdkman(folder, up),
        ]:
            yield _TOOL_NAMES.get(language, language), _number(version), file


_VERSION_FILES = {
    "python": (".python-version", "runtime.txt"),
    "node": (".nvmrc", ".node-version"),
    "java": (".java-version",),
    "php": (".php-version",),
    "ruby": (".ruby-version",),
    "rust": ("rust-toolchain",),
    "go": (".go-version",),
}
_LANGUAGES = frozenset({*_VERSION_FILES, "elixir", "dart", "dotnet"})


def _number(text: str) -> str:
    """Return ``3.12.4`` of ``python-3.12.4`` and ``v3.12.4``, ``21.0.2`` of ``temurin-21.0.2+13``; other texts as they are."""
    found = re.fullmatch(r"(?:[a-z][a-z-]*-|v|[a-z]+)?(\d+(?:\.\w+)*)(?:[+-].*)?", text.strip())
    return found[1] if found else text.strip()


def _tool_versions(folder: Folder, up: str) -> Iterator[tuple[str, str, str]]:
    file = f"{up}.tool-versions"
    for line in (folder.text(file) or "").splitlines():
        words = line.partition("#")[0].split()
        if len(words) > 1 and _TOOL_NAMES.get(words[0], words[0]) in _LANGUAGES:
            yield words[0], words[1], file


def _mise(folder: Folder, up: str) -> Iterator[tuple[str, str, str]]:
    for name in ("mise.toml", ".mise.toml"):
        file = f"{up}{name}"
        for tool, value in folder.table(file, folder.document(file) or {}, "tools").items():
            first = value[0] if isinstance(value, list) and value else value
            version = first.get("version") if isinstance(first, dict) else first
            if isinstance(version, str) and _TOOL_NAMES.get(tool, tool) in _LANGUAGES:
                yield tool, version, file


def _sdkman(folder: Folder, up: str) -> Iterator[tuple[str, str, str]]:
    file = f"{up}.sdkmanrc"
    if found := re.search(r"^java=(\S{1,100})", folder.text(file) or "", re.MULTILINE):
        yield "java", found[1], file


def _manifests(folder: Folder) -> Iterator[tuple[str, str, str]]:
    for file, read in _READERS.items():
        for language, version in read(folder, file):
            if isinstance(version, str) and version.strip():
                yield language, version.strip(), file


_Stated = Iterator[tuple[str, Any]]


def _package_json(folder: Folder, file: str) -> _Stated:
    manifest = folder.document(file) or {}
    yield "node", folder.table(file, manifest, "volta").get("node")
    engines = manifest.get("engines")  # a list in packages of npm's first years
    yield "node", engines.get("node") if isinstance(engines, dict) else None


def _pyproject(folder: Folder, file: str) -> _Stated:
    manifest = folder.document(file) or {}
    yield "python", folder.table(file, manifest, "project").get("requires-python")
    yield "python", folder.table(file, manifest, "tool", "poetry", "dependencies").get("python")


def _pipfile(folder: Folder, file: str) -> _Stated:
    required = folder.table(file, folder.document(file, "toml") or {}, "requires")
    yield "python", required.get("python_full_version") or required.get("python_version")


def _composer(folder: Folder, file: str) -> _Stated:
    manifest = folder.document(file) or {}
    config = manifest.get("config")
    platform = config.get("platform") if isinstance(config, dict) else None
    yield "php", platform.get("php") if isinstance(platform, dict) else None
    yield "php", folder.table(file, manifest, "require").get("php")


def _go(folder: Folder, file: str) -> _Stated:
    for words, _ in go_directives(folder.text(file) or "", "go"):
        yield "go", words[0]


def _cargo(folder: Folder, file: str) -> _Stated:
    manifest = folder.document(file) or {}
    yield "rust", folder.table(file, manifest, "workspace", "package").get("rust-version")
    yield "rust", folder.table(file, manifest, "package").get("rust-version")


def _rust_toolchain(folder: Folder, file: str) -> _Stated:
    yield "rust", folder.table(file, folder.document(file) or {}, "toolchain").get("channel")


def _pubspec(folder: Folder, file: str) -> _Stated:
    environment = folder.table(file, folder.document(file) or {}, "environment")
    yield "dart", environment.get("sdk")
    yield "flutter", environment.get("flutter")


def _global_json(folder: Folder, file: str) -> _Stated:
    yield "dotnet", folder.table(file, folder.document(file) or {}, "sdk").get("version")


def _pom(folder: Folder, file: str) -> _Stated:
    root = folder.xml(file)
    for name in ("maven.compiler.release", "java.version", "maven.compiler.source", "jdk.version"):
        version = root.findtext(f"properties/{name}") if root is not None else None
        yield "java", version if version and "$" not in version else None


def _first(language: str, *patterns: str) -> Callable[[Folder, str], _Stated]:
    """Read a file that is no data by the first of these expressions that is found in it."""

    def read(folder: Folder, file: str) -> _Stated:
        text = folder.text(file) or ""
        found = (re.search(pattern, text, re.MULTILINE) for pattern in patterns)
        yield language, next((f[1] for f in found if f), None)

    return read


_GRADLE = _first(
    "java",
    r"JavaLanguageVersion\.of\(\s?[\"']?(\d{1,3})",
    r"\bjvmToolchain\(\s?(\d{1,3})\s?\)",
    r"\b(?:source|target)Compatibility\s?=\s?(?:JavaVersion\.VERSION_|[\"'])?(\d{1,3})",
)
_READERS: dict[str, Callable[[Folder, str], _Stated]] = {
    "package.json": _package_json,
    "pyproject.toml": _pyproject,
    "Pipfile": _pipfile,
    "composer.json": _composer,
    "go.mod": _go,
    "rust-toolchain.toml": _rust_toolchain,
    "Cargo.toml": _cargo,
    "pubspec.yaml": _pubspec,
    "global.json": _global_json,
    "pom.xml": _pom,
    "build.gradle": _GRADLE,
    "build.gradle.kts": _GRADLE,
    "Gemfile": _first("ruby", r"^ruby [\"']([^\"'\n]{1,50})[\"']"),
    "Gemfile.lock": _first("ruby", r"^RUBY VERSION\n +ruby (\d[\d.]{0,30})"),
    "mix.exs": _first("elixir", r"\belixir: \"([^\"\n]{1,50})\""),
}
