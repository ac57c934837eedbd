"""Ctrl-C and SIGTERM ask for a stop after the step that is under way, or in the middle of a validation."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any


class Interrupted(BaseException):
    """By a signal, with everything saved; the message says where. No KeyboardInterrupt, for Typer swallows those."""

    def __init__(self, step: int, how: str = "--resume") -> None:
        super().__init__(f"interrupted; saved at step {step:,}, {how} resumes from there")
        self.step = step


class Abandoned(BaseException):
    """What can be done again was left in the middle, because a stop was asked for."""


class StopRequest:
    """While it is open, a first signal is noted; a second Ctrl-C interrupts at once."""

    def __init__(self) -> None:
        self.requested = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> StopRequest:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def abandon_if_requested(self, _: object) -> None:
        """To be told of the progress of what can be abandoned."""
        if self.requested:
            raise Abandoned

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.requested and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.requested = True
