"""A run that goes on under another platform says what the same bits can no longer be promised for."""

import io
from typing import Any

import pytest
from rich.console import Console

from regard.session.resuming import note_platform

HERE = {"torch": "2.13.0", "threads": 2, "kernels": "native (AVX2)"}


def noted(old: dict[str, Any]) -> str:
    said = io.StringIO()
    note_platform(old, HERE, Console(file=said, width=300))
    return said.getvalue()


def test_nothing_is_said_where_nothing_changed():
    assert noted(HERE) == ""


@pytest.mark.parametrize(
    ("old", "said"),
    [
        (HERE | {"threads": 1}, "note: this run began with threads 1 and goes on with 2; "),
        (HERE | {"kernels": "torch"}, "note: this run began with kernels torch and goes on with native (AVX2); "),
        # Runs of earlier versions noted none, and had torch's.
        ({"torch": "2.13.0", "threads": 2}, "note: this run began with kernels torch and goes on with native (AVX2); "),
    ],
    ids=["threads", "kernels", "before there were kernels"],
)
def test_what_changed_is_named(old: dict[str, Any], said: str):
    assert noted(old) == said + "the same bits are no longer promised\n"
