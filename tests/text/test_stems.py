from kr.text.stems import stem


def test_inflected_forms_share_a_stem() -> None:
    for forms in (
        "configure configured configuring configuration configurations",
        "normalize normalizes normalization normalizations",
        "query queries querying queried",
        "test tests testing tested",
        "validate validation validations validating",
    ):
        assert len({stem(word) for word in forms.split()}) == 1, forms


def test_short_words_names_and_other_scripts_stay_as_they_are() -> None:
    for word in ("css", "ios", "utf8", "größe", "缓存", ""):
        assert stem(word) == word
