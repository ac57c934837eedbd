"""Every task, by the name that a recipe's `task` gives it. A new one is one file and one line."""

from regard.tasks import lm, point, translate
from regard.tasks.interface import Task

TASKS: dict[str, Task] = {
    "translate": translate.TASK,
    "point": point.TASK,
    "lm": lm.TASK,
}

__all__ = ["TASKS", "Task"]
