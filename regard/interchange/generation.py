"""How a published language model is to be sampled: generation_config.json as the settings of `decode`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from regard.decode.config import LONGEST
from regard.interchange.fields import Fields


def decoding(folder: Path) -> dict[str, Any]:
    """Greedy unless the file asks for sampling. Settings of sampling count where there is any, as for its authors."""
    given = Fields.read_if_there(folder / "generation_config.json")
    settings: dict[str, Any] = {"beam": 1}
    if given.values.get("max_new_tokens") is not None:
        settings["max_extra"] = min(given.whole("max_new_tokens"), LONGEST)
    if given.flag("do_sample", False):
        settings["sample"] = True
        for key in ("temperature", "top_p"):
            if given.values.get(key) is not None:
                settings[key] = given.number(key)
        if given.values.get("top_k") is not None:
            settings["top_k"] = given.whole("top_k", least=0)
    return {"decode": settings}
