"""Settings as dotted keys, and which of them changed."""

import json
from collections.abc import Mapping
from typing import Any, cast

from regard.errors import RunError


def changed_keys(old: Mapping[str, Any], new: Mapping[str, Any], exempt: frozenset[str] = frozenset()) -> list[str]:
    """A line for each setting that differs, sorted: `model.width: 512 → 256`.

    Values are compared as JSON, so a tuple equals its list. A name in `exempt` frees a key, or a table and all below.
    """
    before, after = flattened(old), flattened(new)
    keys = sorted(before.keys() | after.keys())
    return [
        f"{key}: {_shown(before, key)} → {_shown(after, key)}"
        for key in keys
        if not _is_exempt(key, exempt) and (key in before, before.get(key)) != (key in after, after.get(key))
    ]


def refuse_changed(old: Mapping[str, Any], new: Mapping[str, Any], exempt: frozenset[str] = frozenset()) -> None:
    """RunError, naming each key with both values, if a run would go on under other settings than it began with."""
    changed = changed_keys(old, new, exempt)
    if changed:
        raise RunError(
            f"The run began with other settings ({'; '.join(changed)}). "
            "Resume it with the same ones, or choose another --out."
        )


def flattened(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Dotted key → JSON value; an empty table is a value."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, Mapping) and value:
            flat.update(flattened(cast(Mapping[str, Any], value), f"{prefix}{key}."))
        else:
            flat[f"{prefix}{key}"] = json.loads(json.dumps(value))
    return flat


def _shown(flat: dict[str, Any], key: str) -> str:
    return json.dumps(flat[key], ensure_ascii=False) if key in flat else "not set"


def _is_exempt(key: str, exempt: frozenset[str]) -> bool:
    parts = key.split(".")
    return any(".".join(parts[:length]) in exempt for length in range(1, len(parts) + 1))
