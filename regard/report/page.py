"""The page of one run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from regard.about import subject_of, vectors_of, vocabulary_of
from regard.changes import flattened
from regard.naming import counted
from regard.progress import duration
from regard.report.history import Attempt, History
from regard.report.html import folded, page, plots_html, section, table_html
from regard.tasks import TASKS, Task

ATTEMPTS_SHOWN = 6


@dataclass(frozen=True, slots=True)
class Story:
    """All that the page tells, besides its plots."""

    name: str
    facts: Mapping[str, Any]
    """As `about.run_facts` gives them."""
    history: History
    results: Mapping[str, Any] | None
    """Of a run that has ended."""


def report_page(story: Story, pictures: Sequence[str]) -> str:
    """One HTML file; while the run goes on, a browser that shows it looks again each minute."""
    body = (
        f"<h1>{escape(story.name)}</h1>\n<p>{escape(subject(story.facts))}</p>\n"
        + "".join(f"<p>Word vectors of {escape(line)}.</p>\n" for line in vectors_of(story.facts))
        + progress_html(story)
        + section("Scores at the end", scores_html(story.results, TASKS[story.facts["task"]]))
        + section("Training", plots_html(pictures))
        + section("Samples of the validation set", samples_html(story.history))
        + section("Recipe", folded("Every setting", settings_html(story.facts["config"])))
        + section("Machine", table_html([(key, str(value)) for key, value in story.facts["platform"].items()]))
    )
    return page(f"{story.name} – regard", body, refresh=story.results is None)


def subject(facts: Mapping[str, Any]) -> str:
    return (
        f"{subject_of(facts)}. {facts['config']['model']['architecture']}, {facts['parameters']:,} parameters, "
        f"preset {facts['preset']}, {vocabulary_of(facts)}; {counted(facts['examples'], 'training ' + facts['noun'])}; "
        f"seed {facts['seed']}; regard {facts['regard']}."
    )


def progress_html(story: Story) -> str:
    history, train = story.history, story.facts["config"]["train"]
    done = min(1.0, history.step / train["max_steps"]) if story.results is None else 1.0
    return (
        f'<progress max="1" value="{done:.4f}" aria-label="progress"></progress>\n'
        f'<p id="progress">{escape(progress_text(story))}</p>\n'
    )


def progress_text(story: Story) -> str:
    history, train = story.history, story.facts["config"]["train"]
    said = f"step {history.step:,} of {train['max_steps']:,} after {duration(history.seconds)}"
    if story.results is not None:
        said += f"; ended: {story.results.get('ended', '')}"
    elif history.step:
        said += f"; at most {duration(seconds_left(history, train))} left"
    skipped = f"; {counted(history.skipped, 'steps')} skipped" if history.skipped else ""
    return f"{said}{skipped}; {history.speed():,.0f} tokens/s"


def seconds_left(history: History, train: Mapping[str, Any]) -> float:
    """At the run's pace until now; early stopping may end it before."""
    left = (train["max_steps"] - history.step) * history.seconds / history.step
    limit = 60 * train["max_minutes"] - history.seconds if train["max_minutes"] else left
    return max(0.0, min(left, limit))


def scores_html(results: Mapping[str, Any] | None, task: Task) -> str:
    """The task's metrics with their signatures, and whatever single numbers a run adds to them."""
    if results is None:
        return ""
    rows: list[tuple[str, ...]] = []
    for name, scores in results.items():
        if isinstance(scores, Mapping):
            rows += [(name, *row) for row in task.rows(scores)]
        elif name.endswith("match"):
            rows.append((name.replace("_", " "), f"{scores:.1f} %", ""))
    return table_html(rows)


def samples_html(history: History) -> str:
    return "".join(sample_html(*texts, attempts) for texts, attempts in history.samples.items())


def sample_html(given: str, reference: str, attempts: Sequence[Attempt]) -> str:
    """The latest attempts; earlier ones are folded away. The same text twice is one attempt."""
    lines = [(steps, escape(text)) for steps, text in grouped(attempts)]
    earlier, latest = lines[:-ATTEMPTS_SHOWN], lines[-ATTEMPTS_SHOWN:]
    rest = folded(f"{len(earlier)} earlier", attempts_table(earlier)) if earlier else ""
    asked = [("input", escape(given)), ("reference", f"<strong>{escape(reference)}</strong>")]
    return f'<div class="sample">{attempts_table(asked)}{rest}{attempts_table(latest)}</div><hr>\n'


def attempts_table(lines: Sequence[tuple[str, str]]) -> str:
    rows = "".join(f'<tr><td class="key">{key}</td><td dir="auto">{text}</td></tr>' for key, text in lines)
    return f"<table>{rows}</table>"


def grouped(attempts: Sequence[Attempt]) -> list[tuple[str, str]]:
    """(steps, output): neighbours that are equal share a line."""
    groups: list[list[Attempt]] = []
    for attempt in attempts:
        if groups and groups[-1][-1].output == attempt.output:
            groups[-1].append(attempt)
        else:
            groups.append([attempt])
    return [(steps_of(group), group[0].output) for group in groups]


def steps_of(group: Sequence[Attempt]) -> str:
    first, last = group[0].step, group[-1].step
    return f"step {first:,}" if first == last else f"steps {first:,}–{last:,}"


def settings_html(config: Mapping[str, Any]) -> str:
    rows = [(key, json.dumps(value, ensure_ascii=False)) for key, value in sorted(flattened(config).items())]
    return table_html(rows, kind="code")
