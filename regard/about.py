"""What a run is, in a few lines. Reads no weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from regard.checkpoint import committed_steps
from regard.files import read_json_object
from regard.loading import read_run
from regard.metrics_log import read_metrics
from regard.models.parameters import parameter_count
from regard.progress import duration
from regard.text.tokenizer import Tokenizer

REMEDY = "Remove it; `regard train --out RUN --resume` writes it again."


def describe_run(path: Path) -> dict[str, Any]:
    """Plain values, for JSON."""
    run, config, _ = read_run(path)
    records = read_metrics(run.metrics) if run.metrics.is_file() else []
    validations = [record for record in records if "valid_loss" in record]
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
    run, config, document = read_run(path)
    tokenizer = Tokenizer.load(run.tokenizer)
    return {
        "run": str(path),
        "regard": document["regard"],
        "platform": document["platform"],
        "languages": [config.data.source_language, config.data.target_language],
        "preset": config.preset,
        "seed": config.seed,
        "parameters": parameter_count(config.model, tokenizer.source.size, tokenizer.target.size),
        "vocabulary": {"kind": tokenizer.kind, "source": tokenizer.source.size, "target": tokenizer.target.size},
        "pairs": document["data"]["pairs"],
        "config": document["config"],
    }


def run_summary(about: dict[str, Any]) -> str:
    """For a person."""
    languages = " → ".join(code or "?" for code in about["languages"])
    model, vocabulary = about["config"]["model"], about["vocabulary"]
    lines = [
        f"{about['run']}: {languages}, preset {about['preset']}, seed {about['seed']}, regard {about['regard']}",
        f"model       {about['parameters']:,} parameters, {model['encoder_layers']} + {model['decoder_layers']} "
        f"layers, width {model['width']}, {model['heads']} heads",
        f"data        {about['pairs']:,} pairs; {vocabulary['kind']} vocabulary of {vocabulary['source']:,} / "
        f"{vocabulary['target']:,}",
        f"training    step {about['steps']:,} of {about['max_steps']:,} after {duration(about['seconds'])}"
        + (", ended" if about["ended"] else ", not ended (--resume goes on)")
        + (f", {about['skipped']} steps skipped" if about["skipped"] else ""),
    ]
    last = about["last_validation"]
    if last is not None:
        bleu = "" if last["valid_bleu"] is None else f", BLEU {last['valid_bleu']:.2f} (greedy)"
        lines.append(f"validation  loss {float(last['valid_loss']):.4f} at step {last['step']:,}{bleu}")
    for name in ("valid", "test"):
        scores = (about["results"] or {}).get(name)
        if scores:
            lines.append(f"{name:<11} BLEU {scores['bleu']:.2f}, chrF {scores['chrf']:.2f}  {scores['bleu_signature']}")
    return "\n".join(lines)
