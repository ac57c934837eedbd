"""Small architectures and tasks that show the seams by use. They are registered where a test asks for them."""

from regard.models import ARCHITECTURES
from regard.tasks import TASKS
from tests.toys import bag, frames, gru, label, largest, stream

TOY_ARCHITECTURES = {
    "gru": gru.ARCHITECTURE,
    "bag": bag.ARCHITECTURE,
    "listener": frames.ARCHITECTURE,
    "finder": largest.ARCHITECTURE,
    "bigram": stream.ARCHITECTURE,
}
TOY_TASKS = {"label": label.TASK, "frames": frames.TASK, "largest": largest.TASK, "stream": stream.TASK}


def register() -> None:
    """For a process of its own."""
    ARCHITECTURES.update(TOY_ARCHITECTURES)
    TASKS.update(TOY_TASKS)
