"""Runs pages in a process of its own: `python -m tests.docs.runner FOLDER`, a page a line in, a JSON line out.

One process for all pages, for torch takes seconds to start; not that of the tests, whose shape checks double the time
(tests/e2e has them), and whose signals and streams stay untouched.
"""

import json
import os
import sys
import traceback
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from tests.docs.markdown import Document
from tests.docs.pages import Page
from tests.docs.stand_ins import furnish, train_once
from tests.docs.substitutions import DRAWN


def main(folder: Path) -> None:
    """Until the input ends."""
    answers = sys.stdout
    home = Path.cwd()
    run = train_once(folder / "shared")
    for line in sys.stdin:
        page = Document(line.strip())
        answers.write(json.dumps({"page": page.path, "fault": fault_of(page, folder / page.path, run)}) + "\n")
        answers.flush()
        os.chdir(home)


def fault_of(page: Document, folder: Path, run: Path) -> str | None:
    """What is wrong with a page, as it comes out of Python; None where nothing is."""
    furnish(folder, page, run)
    os.chdir(folder)
    try:
        with drawing_reports(page.path in DRAWN):
            Page(page).run()
    except (Exception, SystemExit):
        return traceback.format_exc()
    return None


@contextmanager
def drawing_reports(really: bool) -> Generator[None]:
    """Trainings inside draw their report, or not."""
    from regard.report.live import LiveReport

    draw = LiveReport.draw
    if not really:
        LiveReport.draw = lambda self: None
    try:
        yield
    finally:
        LiveReport.draw = draw


if __name__ == "__main__":
    main(Path(sys.argv[1]))
