"""What a run is, in a few lines. Reads no weights."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from regard.checkpoint import committed_steps
from regard.config import architecture_of, task_of
from regard.files import read_json_object
from regard.loading import open_run, paper_model, read_run
from regard.metrics_log import VALID, read_metrics
from regard.models.costs import parameters_in
from regard.progress import duration
from regard.tasks import TASKS

REMEDY = "Remove it; `regard train --out RUN --resume` writes it again."


def describe_run(path: Path) -> dict[str, Any]:
    """Plain values, for JSON."""
    run, config, _ = read_run(path)
    records = read_metrics(run.metrics) if run.metrics.is_file() else []
    validations = [record for record in records if any(name.startswith(VALID) for name in record)]
    return run_facts(path) | {
        "steps": records[-1]["step"] if records else 0,
        "max_steps": config.train.max_steps,
        "seconds": records[-1]["seconds"] if records else 0.0,
        "skipped": records[-1]["skipped"] if records else 0,
        "checkpoints": committed_steps(run.checkpoints),
        "ended": run.final.is_dir(),
        "last_validation": validations[-1] if validations else None,
        "results": read_json_object(run.results, REMEDY) if run.results.is_file() else None,
    }


def run_facts(path: Path) -> dict[str, Any]:
    """What was settled before the first step."""
    _, config, document = read_run(path)
    run, _, tokenizer, shapes = open_run(path)
    data = document["data"]
    return {
        "run": str(path),
        "regard": document["regard"],
        "platform": document["platform"],
        "languages": [config.data.source_language, config.data.target_language],
        "task": config.task,
        "preset": config.preset,
        "seed": config.seed,
        "parameters": parameters_in(paper_model(run, config, shapes)),
        "model": architecture_of(config).summary(config.model),
        "vocabulary": {"kind": tokenizer.kind, **shapes.sizes},
        "examples": data["examples"] if "examples" in data else data["pairs"],  # as version 0.1 called them
        "noun": task_of(config).noun,
        "config": document["config"],
    }


def run_summary(about: dict[str, Any]) -> str:
    """For a person."""
    task = TASKS[about["task"]]
    lines = [
        f"{about['run']}: {subject_of(about)}, preset {about['preset']}, seed {about['seed']}, "
        f"regard {about['regard']}",
        f"model       {about['config']['model']['architecture']}, {about['parameters']:,} parameters, {about['model']}",
        f"data        {about['examples']:,} {about['noun']}; {vocabulary_of(about)}",
        f"training    step {about['steps']:,} of {about['max_steps']:,} after {duration(about['seconds'])}"
        + (", ended" if about["ended"] else ", not ended (--resume goes on)")
        + (f", {about['skipped']} steps skipped" if about["skipped"] else ""),
    ]
    last = about["last_validation"]
    if last is not None:
        shown = ", ".join(
            metric.shown(float(last[f"{VALID}{metric.name}"]))
            for metric in task.metrics
            if last.get(f"{VALID}{metric.name}") is not None
        )
        lines.append(f"validation  {shown} at step {last['step']:,}")
    for name in ("valid", "test"):
        scores = (about["results"] or {}).get(name)
        if scores:
            lines.append(f"{name:<11} {', '.join(' '.join(filter(None, row)) for row in task.rows(scores))}")
    return "\n".join(lines)


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
