from pathlib import Path

from kr.frameworks import same_framework
from kr.packages.dependencies import package_aliases, project_aliases
from kr.packages.model import Dependency


def needed(*packages: str, direct: bool = True) -> list[Dependency]:
    return [
        Dependency(
            framework=package.rpartition(":")[2],
            version="1",
            package=package,
            file="f",
            direct=direct,
            ecosystem="maven",
        )
        for package in packages
    ]


def test_the_files_of_a_project(tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text(
        '{"dependencies": {"@nestjs/core": "10", "@acme/form-kit": "1", "lodash": "4"}}'
    )
    (tmp_path / "go.mod").write_text(
        "module example.com/m\n\nrequire (\n\tgithub.com/acme/router/v3 v3.1.0\n\tgithub.com/go-sql-driver/mysql v1.8.0\n)\n"
    )
    aliases = project_aliases(tmp_path)
    assert aliases == {"formkit": "@acme/form-kit", "router": "github.com/acme/router/v3"}
    assert same_framework("Form Kit", "@acme/form-kit", aliases)
    assert same_framework("router", "github.com/acme/router", aliases)
    assert same_framework("nest", "@nestjs/core", aliases)
    assert not same_framework("mysql", "github.com/go-sql-driver/mysql", aliases)


def test_a_part_that_two_packages_end_with_says_nothing() -> None:
    assert package_aliases(needed("@one/api", "@two/api", "org.acme:tool")) == {}
    assert package_aliases(needed("@one/api", "api")) == {}


def test_packages_of_packages_are_left_out() -> None:
    assert package_aliases(needed("@one/api", direct=False)) == {}
