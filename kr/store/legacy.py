"""Old ways to call the store, until every caller uses the functions; goes with the last of them."""

from functools import partial
from importlib import import_module
from typing import Any

_PARTS: dict[str, tuple[str, dict[str, str]]] = {
    "archive": ("archive", {}),
    "circuits": ("ledger", {"all": "circuits", "get": "circuit"}),
    "counts": ("counts", {}),
    "entries": ("entries", {"all_ids": "ids"}),
    "leases": ("ledger", {"acquire": "acquire_lease", "renew": "renew_lease", "release": "release_lease"}),
    "ledger": ("ledger", {"record": "record_call"}),
    "lessons": ("lessons", {}),
    "libraries": ("ledger", {"get": "library", "put": "learn_library"}),
    "meta": ("meta", {}),
    "lookup": ("lookup", {}),
    "offers": (
        "requests",
        {"open": "open_offers", "get": "get_offer", "take": "take_offers", "settle": "settle_offers"},
    ),
    "quarantine": ("quarantine", {}),
    "ratings": ("wordings", {"of": "ratings_of", "wrong": "rated_wrong"}),
    "requests": ("requests", {}),
    "revisions": ("revisions", {}),
    "search": ("search", {}),
    "wordings": ("wordings", {}),
    "workflows": ("workflows", {}),
}
_STORE = {
    "save_report": ("saving", "save"),
    "take_in": ("importing", "take_in"),
    "run_guard": ("importing", "run_guard"),
    "read_report": ("reports", "read_report"),
    "drop_lost": ("reports", "drop_lost"),
    "remove": ("restoring", "remove"),
    "restore_archived": ("restoring", "restore_archived"),
    "restore_revision": ("restoring", "restore_revision"),
}


class _Part:
    def __init__(self, tx: Any, module: str, names: dict[str, str]) -> None:
        self._tx, self._module, self._names = tx, import_module(f"kr.store.{module}"), names

    def __getattr__(self, name: str) -> Any:
        return partial(getattr(self._module, self._names.get(name, name)), self._tx)


def part_of(tx: Any, name: str) -> Any:
    if name not in _PARTS:
        raise AttributeError(name)
    return _Part(tx, *_PARTS[name])


def method_of(store: Any, name: str) -> Any:
    if name not in _STORE:
        raise AttributeError(name)
    module, function = _STORE[name]
    return partial(getattr(import_module(f"kr.store.{module}"), function), store)
