"""What a run, or a directory of published weights, is, in a few lines. Reads no weights."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from regard.checkpoint import committed_steps
from regard.config import architecture_of, task_of
from regard.data.columns import SOURCE
from regard.data.word_matrix import lines_about
from regard.loading import Opened, open_model, read_run, results_of
from regard.metrics_log import VALID, read_metrics
from regard.models.costs import parameters_in
from regard.naming import counted
from regard.native.packing import refusal
from regard.native.precision import described
from regard.progress import duration
from regard.tasks import TASKS
from regard.tasks.interface import Task

MOST_SHOWN = 12
"""Labels that a summary names."""


def describe_model(path: Path) -> dict[str, Any]:
    """Plain values, for JSON."""
    opened = open_model(path)
    return published_facts(opened) if opened.kind else describe_run(path)


def describe_run(path: Path) -> dict[str, Any]:
    """What it was made from, and how far it has come."""
    (run, config, document), opened, results = read_run(path), open_model(path), results_of(path)
    records = read_metrics(run.metrics) if run.metrics.is_file() else []
    validations = [record for record in records if any(name.startswith(VALID) for name in record)]
    return run_facts(path) | {
        "steps": records[-1]["step"] if records else 0,
        "max_steps": config.train.max_steps,
        "seconds": records[-1]["seconds"] if records else 0.0,
        "skipped": records[-1]["skipped"] if records else 0,
        "checkpoints": committed_steps(run.checkpoints),
        "ended": run.final.is_dir(),
        "resumed_with": document.get("resumed_with", []),
        "last_validation": validations[-1] if validations else None,
        "results": results,
        "engine": engine_of(opened, results),
    }


def engine_of(opened: Opened, results: Mapping[str, Any] | None) -> str:
    """What translates by default, and why; empty for a model that reads no source."""
    model = opened.on_paper()
    said = described(model, results)
    if said or SOURCE.name not in opened.shapes.sizes:
        return said
    return f"Python, fp32; the native engine cannot run it, because {refusal(model)}"


def run_facts(path: Path) -> dict[str, Any]:
    """What was settled before the first step."""
    _, config, document = read_run(path)
    data = document["data"]
    return model_facts(open_model(path)) | {
        "run": str(path),
        "regard": document["regard"],
        "platform": document["platform"],
        "languages": [config.data.source_language, config.data.target_language],
        "preset": config.preset,
        "seed": config.seed,
        "examples": data["examples"] if "examples" in data else data["pairs"],  # as version 0.1 called them
        "noun": task_of(config).noun,
        "word_vectors": data.get("word_vectors", {}),
        "config": document["config"],
    }


def model_facts(opened: Opened) -> dict[str, Any]:
    """What the model is, wherever it comes from."""
    config = opened.config
    return {
        "task": config.task,
        "parameters": parameters_in(opened.on_paper()),
        "model": architecture_of(config).summary(config.model),
        "vocabulary": {"kind": opened.tokenizer.kind, **opened.shapes.sizes},
    }


def published_facts(opened: Opened) -> dict[str, Any]:
    """It has no history here."""
    labels = {name: list(own) for name, own in opened.tokenizer.labels.items()}
    config = opened.config.to_table()
    return model_facts(opened) | {
        "published": str(opened.path),
        "kind": opened.kind,
        "labels": labels,
        "config": {key: config[key] for key in ("task", "model", "decode")},
    }


def summary_of(about: dict[str, Any]) -> str:
    """For a person."""
    return published_summary(about) if "published" in about else run_summary(about)


def published_summary(about: dict[str, Any]) -> str:
    lines = [
        f"{about['published']}: published weights ({about['kind']}), task {about['task']}",
        model_line(about),
        f"data        {vocabulary_of(about)}",
    ]
    for name, own in about["labels"].items():
        shown = ", ".join(own[:MOST_SHOWN]) + (" …" if len(own) > MOST_SHOWN else "")
        lines.append(f"{name:<11} {shown}")
    return "\n".join(lines)


def model_line(about: Mapping[str, Any]) -> str:
    return (
        f"model       {about['config']['model']['architecture']}, {about['parameters']:,} parameters, {about['model']}"
    )


def run_summary(about: dict[str, Any]) -> str:
    task = TASKS[about["task"]]
    lines = [
        f"{about['run']}: {subject_of(about)}, preset {about['preset']}, seed {about['seed']}, "
        f"regard {about['regard']}",
        model_line(about),
        f"data        {counted(about['examples'], about['noun'])}; {vocabulary_of(about)}",
        *(f"vectors     {line}" for line in vectors_of(about)),
        f"training    step {about['steps']:,} of {about['max_steps']:,} after {duration(about['seconds'])}"
        + (", ended" if about["ended"] else ", not ended (--resume goes on)")
        + (f", {counted(about['skipped'], 'steps')} skipped" if about["skipped"] else ""),
    ]
    for change in about["resumed_with"]:
        lines.append(f"changed     {'; '.join(change['changed'])}, from step {change['step']:,} on")
    last = about["last_validation"]
    if last is not None:
        shown = ", ".join(
            metric.shown(float(last[f"{VALID}{metric.name}"]))
            for metric in task.metrics
            if last.get(f"{VALID}{metric.name}") is not None
        )
        lines.append(f"validation  {shown} at step {last['step']:,}")
    if about["engine"]:
        lines.append(f"engine      {about['engine']}")
    for name in ("valid", "test"):
        scores = (about["results"] or {}).get(name)
        if scores:
            lines.append(f"{name:<11} {', '.join(' '.join(filter(None, row)) for row in task.rows(scores))}")
    old = (about["results"] or {}).get("old")
    if old:
        lines.append(f"old         {old['set']}, before and after: {forgotten(task, old)}")
    return "\n".join(lines)


def forgotten(task: Task, old: Mapping[str, Any]) -> str:
    """How the set of the run that another one started from fares with it: `BLEU 41.20 → 38.95, loss 1.23 → 1.40`."""
    before, after = old["before"], old["after"]
    return ", ".join(
        f"{metric.label} {before[metric.name]:.{metric.digits}f} → {after[metric.name]:.{metric.digits}f}"
        for metric in sorted(task.metrics, key=lambda metric: not metric.higher)
        if all(isinstance(side.get(metric.name), int | float) for side in (before, after))
    )


def subject_of(facts: Mapping[str, Any]) -> str:
    """`en → de`, or the task where no language was named."""
    if not any(facts["languages"]):
        return facts["task"]
    return " → ".join(code or "?" for code in facts["languages"])


def vocabulary_of(facts: Mapping[str, Any]) -> str:
    """`bpe vocabulary of 2,400 / 2,400`."""
    sizes = " / ".join(f"{size:,}" for name, size in facts["vocabulary"].items() if name != "kind")
    kind = facts["vocabulary"]["kind"]
    return f"{kind} vocabulary of {sizes}" if kind else f"columns of {sizes}"


def vectors_of(facts: Mapping[str, Any]) -> list[str]:
    """What is known of its word vectors, a line for each vocabulary that has any."""
    return lines_about(facts.get("word_vectors", {}), facts["config"].get("word_vectors", {}))
