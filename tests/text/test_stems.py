import subprocess
import sys

from kr.text.keywords import stem


def test_threads_that_load_the_language_at_once_all_get_it() -> None:
    """Each in a process of its own, where nothing has loaded it; a race of imports needs some tries."""
    threads = (
        "import sys, threading; sys.setswitchinterval(1e-6)\n"
        "from kr.text.keywords import stem\n"
        "stems, gate = [], threading.Barrier(8)\n"
        "work = [threading.Thread(target=lambda: (gate.wait(), stems.append(stem('running')))) for _ in range(8)]\n"
        "[it.start() for it in work]; [it.join() for it in work]\n"
        "sys.exit(stems != ['run'] * 8)"
    )
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", threads], capture_output=True, check=False, timeout=60)
        assert (done.returncode, done.stderr) == (0, b"")


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
