from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kr import frameworks
from kr.frameworks import (
    framework_key,
    lookup_keys,
    same_framework,
)

TABLE = Path(frameworks.__file__).with_name("frameworks.txt")
LINES = [
    [name.strip(" !") for name in line.replace("=", ",").split(",")]
    for line in TABLE.read_text(encoding="utf-8").splitlines()
    if line and line[0] != "#"
]
USUAL = [name for line in LINES for name in line if "*" not in name]

ONE = [
    "next.js, nextjs, next, Next JS, NEXT.JS, next-js, next_js, vercel/next.js, Next.js 14, next@15.1, nextjs15",
    "postgres, postgresql, PostgreSQL 16, postgres:16, psql, pgsql, Postgre, PostgreSQL DB",
    "dotnet, .NET 9, Microsoft .NET",
    "vue, vue.js, vuejs, Vue 3, vue3, Vue.js 3.x, @vue/runtime-core, vuejs/core, Ｖｕｅ",
    "node, node.js, nodejs, Node.js 22, @types/node",
    "kubernetes, k8s, K8S, kubectl",
    "tailwind, tailwindcss, Tailwind CSS, tailwind-css v4, @tailwindcss/vite",
    "ror, rails, ruby on rails, Ruby-on-Rails, rails/rails",
    "spring-boot, springboot, Spring Boot 3.2, org.springframework.boot:spring-boot-starter-web, spring-boot-starter-web",
    "tanstack query, react-query, @tanstack/react-query, TanStack/query, tanstack/react-query, react query v5",
    "nestjs, nest, @nestjs/core, @nestjs/common, nestjs/common, NestJS, nestjs/nest",
    "angular, @angular/core, angular 17, angular2, @angular/router",
    "angularjs, angular.js, AngularJS 1.8, Angular 1.5, angular1.x",
    "gin, github.com/gin-gonic/gin, gin-gonic, gin-gonic/gin, https://github.com/gin-gonic/gin.git",
    "go, golang, Go 1.22",
    "c++, cpp, C++17, c++ 20, cplusplus",
    "c#, csharp, C# 12, C-Sharp",
    "react, react.js, reactjs, React 19, react-dom, facebook/react, @types/react",
    "junit, org.junit.jupiter:junit-jupiter, JUnit 5, junit5",
    "acme-kit, acme_kit, acme kit, Acme.Kit, acme-kit@2.1.0, ACMEKIT",
    "@acme/kit, @acme/kit@1.2.3, @Acme/kit",
    "github.com/acme/tool, acme/tool, https://github.com/acme/tool, github.com/acme/tool/v2, github.com/acme/tool.git",
    "反应堆, 反应堆 ",
]  # fmt: skip

APART = [
    "c, c++, c#, objective-c, c3, clang, c/c++",
    "github, github actions, github cli, git, gitlab, gitlab ci",
    ".net, asp.net, asp.net core, entity framework, entity framework core",
    "java, javascript, typescript",
    "react, react native, preact, react-router, react-redux, redux, redux toolkit, reactivex/rxjs",
    "vue, vueuse, vuex, vue-router, vuetify, vue-i18n",
    "angular, angularjs, angular material",
    "go, django, mongo, argo, hugo",
    "redis, redis-py, ioredis, node-redis, github.com/redis/go-redis/v9, jedis",
    "postgresql, psycopg, psycopg2, asyncpg, node-postgres, pgx",
    "mysql, mariadb, mysql2, pymysql, mysqlclient, github.com/go-sql-driver/mysql",
    "spring, spring boot, spring security, spring cloud",
    "socket.io, socket.io-client, socket",
    "react, @acme/react, github.com/acme/react",
    "junit 4, junit 5",
    "rust, ruby, r",
    "@acme/kit, @acme/tool, kit, acme",
]


def split(names: str) -> list[str]:
    return names.split(", ")


@pytest.mark.parametrize("names", ONE)
def test_other_usual_names_are_one_framework(names: str) -> None:
    keys = {name: framework_key(name) for name in split(names)}
    assert len(set(keys.values())) == 1, keys


@pytest.mark.parametrize("names", APART)
def test_names_that_only_look_alike_stay_apart(names: str) -> None:
    for one, other in combinations(split(names), 2):
        assert not same_framework(one, other), (one, other, framework_key(one))


def test_no_name_stands_for_two_frameworks() -> None:
    places: dict[str, set[str]] = {}
    for line in LINES:
        for name in line:
            places.setdefault(name.translate(str.maketrans("", "", "-_. ")), set()).add(line[0])
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_every_name_of_a_line_has_its_key() -> None:
    for line in LINES:
        keys = {framework_key(name.replace("*", "anything")) for name in line}
        assert keys == {framework_key(line[0])}, line


@st.composite
def spellings(draw: st.DrawFn) -> str:
    pieces = draw(
        st.lists(st.sampled_from([*USUAL, "acme", "@", "/", ":", "v", "2", ".", "-", " ", "core", "@types/", ".git", "git", "x", "github.com/"]), max_size=5)
    )  # fmt: skip
    return draw(st.sampled_from(["", "-", " ", ".", "/", "@"])).join(pieces)


NAMED = spellings() | st.text(max_size=30) | st.sampled_from(USUAL)


@given(NAMED)
def test_a_key_is_its_own_key(name: str) -> None:
    assert framework_key(framework_key(name)) == framework_key(name)


@given(NAMED)
def test_spelling_does_not_count(name: str) -> None:
    assume(any(map(str.isalnum, name)))  # of marks alone nothing would be left
    assert framework_key(f"  {name.upper()} ".replace("-", "_")) == framework_key(name.upper())


@given(NAMED, NAMED)
def test_it_does_not_matter_which_name_is_asked_for(one: str, other: str) -> None:
    assert same_framework(one, other) == same_framework(other, one)
    assert same_framework(one, one)


class TestAliases:
    def test_a_name_of_ones_own(self) -> None:
        aliases = {"Our UI": "react"}
        assert framework_key("our-ui", aliases) == framework_key("React.js", aliases) == "react"
        assert lookup_keys("react", aliases) == lookup_keys("ourUI", aliases) == ("ourui", "react")

    def test_it_goes_before_the_table(self) -> None:
        aliases = {"next": "next-auth"}
        assert framework_key("next", aliases) == "nextauth"
        assert framework_key("next.js", aliases) == "nextjs"
        assert "nextjs" in lookup_keys("next-auth", aliases)  # an entry of framework "next" is kept under it


def test_a_long_name_costs_little() -> None:
    assert framework_key("a/" * 100_000) == "a/" * 100_000
    assert framework_key("vue-" * 40 + "3") == "vue" * 40 + "3"
