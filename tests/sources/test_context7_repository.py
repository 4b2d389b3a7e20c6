"""Which repository is a framework's own, by what Context7 says of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kr.sources.context7_text import Library, repository_among, repository_named


def library(library_id: str, title: str, **more: str) -> Library:
    return Library(id=library_id, title=title, **more)  # type: ignore[arg-type]  # texts alone are given


SITE = library("/websites/vue-easytable_com", "vue-easytable", reputation="High")


@pytest.mark.parametrize(
    ("framework", "text", "repository"),
    [
        (
            "vue-easytable",
            "Docs of https://github.com/huangshuwei/vue-easytable, a table",
            "huangshuwei/vue-easytable",
        ),
        ("vue", "https://github.com/vuejs/docs/blob/main/src/x.md", "vuejs/docs"),
        ("next.js", "see http://www.GitHub.com/vercel/next.js.git.", "vercel/next.js"),
        ("@vue/reactivity", "https://github.com/vuejs/core/tree/main", "vuejs/core"),
        ("@angular/core", "https://github.com/vuejs/core", None),
        ("vue", "https://github.com/evil/better-vue https://github.com/evil/vuex", None),
        ("vue", "https://github.com/topics/vue and https://github.com/vue", None),
        ("vue", "https://github.com.evil.example/vuejs/vue https://github.com@evil.example/vuejs/vue", None),
        ("vue", "https://github.com/vuejs/.. https://github.com/-vue/x", None),
        ("vue", "https://github.com/vuejs/vue/../../evil/evil", "vuejs/vue"),
    ],
)
def test_an_address_counts_when_it_is_the_frameworks(
    framework: str, text: str, repository: str | None
) -> None:
    assert repository_named(framework, [text]) == repository


def test_what_is_named_most_often_is_taken_and_then_what_is_named_first() -> None:
    texts = [
        "https://github.com/evil/vue",
        "https://github.com/vuejs/core/a",
        None,
        "https://github.com/vuejs/core/b",
    ]
    assert repository_named("vue", texts) == "vuejs/core"
    assert repository_named("vue", texts[:2]) == "evil/vue"


def test_the_library_then_another_that_fits_then_the_description_tells_it() -> None:
    path = library("/huangshuwei/vue-easytable", "vue-easytable")
    described = library(SITE.id, SITE.title, description="https://github.com/someone/vue-easytable")
    unfit = library("/vuejs/vue", "Vue.js", reputation="High")
    assert repository_among("vue-easytable", path, [described, path]) == "huangshuwei/vue-easytable"
    assert (
        repository_among("vue-easytable", described, [described, unfit, path]) == "huangshuwei/vue-easytable"
    )
    assert repository_among("vue-easytable", described, [described, unfit]) == "someone/vue-easytable"
    assert repository_among("vue-easytable", SITE, [SITE, unfit]) is None


@given(
    st.text(alphabet="htps:/w.gitubcomvue-_@#?\\ \n", max_size=80), st.sampled_from(["vue", "@vue/x", "a b"])
)
def test_what_is_found_is_well_formed(text: str, framework: str) -> None:
    found = repository_named(framework, [f"https://github.com/{text}", text])
    assert found is None or found.count("/") == 1
