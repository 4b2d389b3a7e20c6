"""What an earlier kr exported (``tests/data/exported``) is imported with nothing missing: exported again, it is the same bytes."""

from datetime import timedelta
from pathlib import Path

from kr.store.engine import Store
from kr.transfer.export_yaml import export_yaml
from kr.transfer.import_yaml import import_yaml
from tests.support.stores import NOW, sql

EXPORTED = Path(__file__).parents[1] / "data" / "exported"
LATER = NOW + timedelta(days=40)


def files(folder: Path) -> dict[str, bytes]:
    """Return all files; of the wordings no times, which an earlier kr wrote."""
    found = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    items = found["_wordings.yaml"].split(b"\n- ")
    return {**found, "_wordings.yaml": b"\n- ".join(it for it in items if b'kind: "times"' not in it)}


def test_an_export_of_an_earlier_kr_is_imported_with_nothing_missing(tmp_path: Path) -> None:
    with Store(None, tmp_path / "base") as store:
        result = import_yaml(store, tmp_path / "base", [EXPORTED], now=LATER)
        assert (result.counts["imported"], result.counts["archived"]) == (8, 3)
        assert (result.refused, result.unreadable) == ([], [])
        export_yaml(store, tmp_path / "base", tmp_path / "again")
        assert files(tmp_path / "again") == files(EXPORTED)
        writers = dict(sql(store.path, "SELECT id, written_by FROM entries WHERE origin = 'finding'"))
        assert writers == {
            "click-虚拟滚动-quoted-1": "person:Ann O'Neil",
            "flask-blueprints": "file",
            "vue-watchers": "agent:s-7",
        }
        assert not import_yaml(store, tmp_path / "base", [EXPORTED], now=LATER).has_changed
