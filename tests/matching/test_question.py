import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kr.matching.compare import compare
from kr.matching.decide import THRESHOLD, decide
from kr.matching.opposites import BACK, EXCLUSIONS, FORTH, NEGATIONS, PHRASES, TRAILING, place_of
from kr.matching.question import derive_tags, derive_topic
from kr.matching.topic import topic_of
from kr.matching.words import english_poles
from kr.text.keywords import EMPTY_WORDS, FUNCTION_WORDS, HEAVY_PREPOSITIONS
from kr.values import Match, MatchRules, Query
from tests.support import calibration
from tests.support.candidates import candidate

TOPICS = calibration.topics()
DIFFERENT: list[tuple[str, str]] = yaml.safe_load(
    (calibration.DATA / "matching-pairs.yaml").read_text(encoding="utf-8")
)["different"]
FORMS = [
    "How do I {}?",
    "What is the best way to do {}?",
    "can you tell me how to {}",
    "Why is it that {}?",
    "{}?",
]


def asked(framework: str, question: str) -> Query:
    """Return the query that the terminal form makes of a question."""
    tags = tuple(derive_tags(framework, question))
    topic = derive_topic(framework, question)
    return Query(framework=framework, framework_version="1", topic=topic, tags=tags, question=question)


def answers(first: str, second: str) -> Match | None:
    """Return the match by which the report on the first question answers the second."""
    query = asked("click", first)
    known = candidate(query.topic, *query.tags, framework="click", question=first)
    return decide(asked("click", second), [known], MatchRules(floor="framework+topic")).match


@pytest.mark.parametrize(
    ("question", "topic"),
    [
        ("How do I make an option repeatable?", "make option repeatable"),
        ("How do I make an option not repeatable?", "make option not repeatable"),
        ("Why doesn't my command run?", "doesn't command run"),
        ("How can I turn off colors?", "turn off colors"),
        ("How do I sort from A to Z?", "sort from A to Z"),
        ("how do i sort from z to a", "sort from z to a"),
        ("How do I use `unique()` with a “subquery”?", "use unique() with subquery"),
        ('How do I read row["id"] of the (first) "row"?', 'read row["id"] of first row'),
        (
            "How do I set timeout=Timeout(5, read=None) for a call?",
            "set timeout=Timeout(5, read=None) for call",
        ),
        ('What does name="two words" do (see call(f(x), y))?', 'name="two words" see call(f(x), y)'),
        ("Is there a way to read .env files, not the shell?", "read .env files, not shell"),
        ("如何禁用缓存？", "如何禁用缓存"),
        ("What is the best way to get to the end of a file?", "get to end of file"),
        ("How do I write a common table expression?", "write common table expression"),
        ("I need to know how to page through results", "page through results"),
        ("how do I mock a client in my Click 8 tests", "mock client in tests"),
        ("How do I test click commands with Click?", "test commands"),
        ("How does click.Choice differ from a flag in click?", "Choice differ from flag"),
        ("Choice vs a flag, which one should I use", "Choice vs flag"),
        ("what is click?", "what is click?"),
        ("How do I do this?", "How do I do this?"),
        ("  What  is\nit ", "What is it"),
        ("???", "???"),
    ],
)
def test_a_topic_keeps_what_tells(question: str, topic: str) -> None:
    assert derive_topic("click", question) == topic


@pytest.mark.parametrize(
    ("framework", "question", "tags"),
    [
        ("click", "How do I make an option repeatable?", ["repeatable"]),
        ("Tailwind CSS", "how do I toggle dark mode in tailwindcss 3?", ["toggle", "dark", "mode"]),
        ("React Native", "How do I keep a list fast in react native?", ["list"]),
        ("react", "how to use React.lazy with <Suspense>", ["lazy", "Suspense"]),
        ("react", "Why does a useEffect fetch run twice with `use_client`?", ["useEffect", "use_client", "fetch", "twice"]),
        ("docker", "how do I reduce image size with multi-stage builds", ["multi-stage", "reduce", "image", "size", "builds"]),
        ("vue", "test tests, testing a test of components", ["test", "components"]),
        ("click", "How do I change it?", ["change"]),
        ("click", "how do I do this?", ["click"]),
        ("redis", "如何设置 Redis 的过期时间和 maxmemory_policy？", ["maxmemory_policy", "过期时间"]),
        ("vue", "怎么缓存动态组件的状态", ["缓存动态组件", "状态"]),
    ],
)  # fmt: skip
def test_tags_are_what_an_agent_would_file_it_under(framework: str, question: str, tags: list[str]) -> None:
    assert derive_tags(framework, question) == tags


def test_no_word_that_a_rule_reads_is_left_out() -> None:
    read = {*NEGATIONS, *EXCLUSIONS, *TRAILING, *english_poles(), *FORTH, *BACK, *HEAVY_PREPOSITIONS}
    read |= {word for phrase in PHRASES for word in phrase}
    read |= {word for word in FUNCTION_WORDS if place_of(f"log{word}") or place_of(f"scale{word}")}
    assert EMPTY_WORDS & read == set()
    assert EMPTY_WORDS <= FUNCTION_WORDS


@pytest.mark.parametrize("form", FORMS)
def test_a_question_about_a_topic_matches_the_topic(form: str) -> None:
    missed = [
        topic
        for topic in TOPICS
        if compare(topic_of(derive_topic("click", form.format(topic))), topic_of(topic)).overlap < THRESHOLD
    ]
    assert missed == []


@pytest.mark.parametrize("form", FORMS)
def test_what_parts_two_topics_parts_the_questions(form: str) -> None:
    matched = [
        (one, other)
        for one, other in DIFFERENT
        if answers(form.format(one), form.format(other)) or answers(form.format(other), form.format(one))
    ]
    assert matched == []


@pytest.mark.parametrize(
    ("question", "opposite"),
    [
        ("How do I make an option repeatable?", "How do I make an option not repeatable?"),
        ("Can I run a command with a prefix?", "Can I run a command without a prefix?"),
        ("Why does my command run twice?", "Why doesn't my command run twice?"),
        ("What can a plugin read?", "What can't a plugin read?"),
        ("Why is my route cached?", "Why is my route no longer cached?"),
        ("When should I retry?", "When should I never retry?"),
        ("How do I turn on colors?", "How do I turn off colors?"),
        ("How do I turn the colors on?", "How do I turn the colors off?"),
        ("How do I run code before the request?", "How do I run code after the request?"),
        ("How do I scroll up?", "How do I scroll down?"),
        ("How do I log a user in?", "How do I log a user out?"),
        ("How do I opt in to telemetry?", "How do I opt out of telemetry?"),
        ("How do I sort from A to Z?", "How do I sort from Z to A?"),
        ("How do I convert a string to a date?", "How do I convert a date to a string?"),
    ],
)
def test_the_opposite_question_is_no_hit(question: str, opposite: str) -> None:
    assert answers(question, question)
    assert answers(question, opposite) is None
    assert answers(opposite, question) is None


@given(st.text(max_size=80))
def test_any_question_has_a_topic_and_tags(question: str) -> None:
    topic = derive_topic("click", question)
    assert topic == " ".join(topic.split())
    assert bool(topic) == bool(question.split())
    assert derive_tags("click", question)


def test_a_hostile_question_costs_little() -> None:
    assert len(derive_topic("click", "not a word " * 100_000)) < 1000


def test_a_topic_that_is_longer_than_a_line_keeps_its_beginning_and_its_end() -> None:
    question = (
        "How do I configure the command line interface of a very large application with plugins that are loaded lazily "
        "from entry points of other distributions, so that help stays fast and errors of a broken plugin are shown?"
    )
    topic = derive_topic("click", question)
    assert topic == (
        "configure command line interface of large application with plugins loaded "
        "… fast and errors of broken plugin shown"
    )
    junk = "a" * 100_000 + " foo"
    assert len(derive_topic("click", junk)) <= 123
    assert all(len(tag) <= 120 for tag in derive_tags("click", junk))
