"""Which dependency an import statement belongs to, in each language."""

from pathlib import Path

import pytest

from kr.packages.dependencies import count_imports
from kr.packages.model import Dependency, Ecosystem


@pytest.mark.parametrize(
    ("ecosystem", "file", "code", "package"),
    [
        ("python", "a.py", "from yaml import safe_load", "PyYAML"),
        ("python", "a.py", "def f():\n    import typing_extensions as t", "typing-extensions"),
        ("npm", "a.ts", "import type { A } from '@scope/a/b'", "@scope/a"),
        ("npm", "a.vue", "<script>\nimport 'vue'\n</script>", "vue"),
        ("npm", "a.js", "const x = await import('zod')", "zod"),
        (
            "go",
            "a.go",
            'import (\n\tchi "github.com/go-chi/chi/v5/middleware"\n)',
            "github.com/go-chi/chi/v5",
        ),
        ("cargo", "a.rs", "use rustc_hash::FxHashMap;", "rustc-hash"),
        (
            "maven",
            "A.java",
            "import org.springframework.web.X;",
            "org.springframework.boot:spring-boot-starter-web",
        ),
        ("composer", "a.php", "<?php\nuse Monolog\\Logger;", "monolog/monolog"),
        ("ruby", "a.rb", "require 'sidekiq/api'", "sidekiq"),
    ],
)
def test_one_file_imports_it(
    tmp_path: Path, ecosystem: Ecosystem, file: str, code: str, package: str
) -> None:
    (tmp_path / file).write_text(code + "\n" + code + "\n")
    (tmp_path / "b.py").write_text("import otherwise\n")
    rows = [
        Dependency(framework=name, version="1", package=name, file="f", direct=True, ecosystem=ecosystem)
        for name in (package, "unrelated")
    ]
    assert +count_imports(tmp_path, rows) == {package: 1}


def test_tests_and_installed_packages_do_not_count(tmp_path: Path) -> None:
    for place in ("tests", "node_modules/x", ".hidden"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "a.py").write_text("import flask\n")
    row = Dependency(
        framework="flask", version="1", package="flask", file="f", direct=True, ecosystem="python"
    )
    assert not +count_imports(tmp_path, [row])
