"""Every task, by the name that a recipe's `task` gives it. A new one is one file and one line."""

from regard.tasks import classify, embed, lm, mlm, point, span, tag, translate
from regard.tasks.interface import Task

TASKS: dict[str, Task] = {
    "translate": translate.TASK,
    "point": point.TASK,
    "lm": lm.TASK,
    "embed": embed.TASK,
    "mlm": mlm.TASK,
    "classify": classify.TASK,
    "tag": tag.TASK,
    "span": span.TASK,
}

__all__ = ["TASKS", "Task"]
