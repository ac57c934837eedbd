"""How a published language model is used: its texts are whole documents, and generation_config.json says how it is
sampled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from regard.data.documents import FILE
from regard.decode.config import LONGEST
from regard.interchange.fields import Fields


def using(folder: Path) -> dict[str, Any]:
    """Settings of `data` and `decode`: line breaks are part of what it reads and writes. Greedy unless the file asks
    for sampling; settings of sampling count where there is any, as for its authors."""
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
    return {"data": {"documents": FILE}, "decode": settings}
