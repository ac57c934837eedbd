"""What `regard bench translate` prints and draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from regard.bench.figures import SPREAD, aligned_table, machine_line, megabytes, notes, row_of
from regard.bench.judging import with_beam
from regard.bench.translators import EARLY, OURS
from regard.report.plots import Curve, CurvePlot, PicturePlot, RowPlot


def table(results: dict[str, Any]) -> str:
    parts = [run_table(found, results["sentences"]) for found in results["runs"]]
    return "\n".join([*parts, *conditions(results)])


def run_table(found: dict[str, Any], sentences: int) -> str:
    lines: list[str] = []
    for beam in found["beams"]:
        how = "greedy" if beam == 1 else f"beam {beam}, length penalty {found['length_penalty']:g} (power)"
        head = (
            how,
            "sent./s",
            "tokens/s",
            "spread",
            "ours is",
            "of peak",
            "p50 ms",
            "p95 ms",
            "ours takes",
            "BLEU",
            "same",
        )
        rows: list[tuple[str, ...]] = [(*head, "memory", "version")]
        for engine, own in measured_with(found, beam):
            rows.append(
                (
                    engine["name"],
                    f"{own['sentences_per_second']['median']:,.1f}",
                    f"{own['tokens_per_second']['median']:,.0f}",
                    f"{own['sentences_per_second']['spread']:.0%}",
                    f"{own['ratio']:.2f}×",
                    f"{own['share_of_peak']:.0%}" if "share_of_peak" in own else "–",
                    f"{1e3 * own['p50']:,.1f}",
                    f"{1e3 * own['p95']:,.1f}",
                    f"{own['latency_ratio']:.2f}×",
                    f"{own['bleu']:.2f}",
                    f"{own['same']:,}/{sentences:,}",
                    megabytes(engine["peak_memory"]),
                    engine["version"],
                )
            )
        lines += [aligned_table(rows), ""]
    return "\n".join([found["run"], *lines, *notes(found["engines"]), ""])


def measured_with(found: dict[str, Any], beam: int) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """The engines of a run that were measured with a beam, each with what was measured."""
    return [(engine, own) for engine in found["engines"] for own in with_beam(engine, beam)]


def conditions(results: dict[str, Any]) -> list[str]:
    signature = next(
        engine["beams"][0]["signature"] for found in results["runs"] for engine in found["engines"] if "beams" in engine
    )
    return [
        f"{results['source']}, {results['sentences']:,} sentences; median of {results['rounds']} rounds, {SPREAD}; "
        f"“ours is” compares speeds, “ours takes” the median latencies of {results['alone']} sentences one by one",
        f"ours is {OURS} for a row of regard, else regard in the row's precision; beside a beam of CTranslate2, which "
        f"ends when as many hypotheses have ended as it is wide, it is regard with {EARLY}",
        f"BLEU: {signature}; same: texts equal to those of {OURS}",
        machine_line(results["machine"]),
    ]


def plots(results: dict[str, Any]) -> list[PicturePlot]:
    """Of one run the speed of each engine by beam; of several, BLEU against speed."""
    runs, beams = results["runs"], results["runs"][0]["beams"]
    if len(runs) == 1:
        return [speed_plot(runs[0], beam) for beam in beams]
    return [quality_plot(runs, beam) for beam in beams]


def speed_plot(found: dict[str, Any], beam: int) -> RowPlot:
    rows = tuple(row_of(engine["name"], own["sentences_per_second"]) for engine, own in measured_with(found, beam))
    title = f"Translation, {'greedy' if beam == 1 else f'beam {beam}'}"
    return RowPlot(f"translate-{beam}", title, rows, "sentences/s")


def quality_plot(runs: Sequence[dict[str, Any]], beam: int) -> CurvePlot:
    """A point for each run and engine."""
    curves: list[Curve] = []
    measured = [(engine["name"], own) for found in runs for engine, own in measured_with(found, beam)]
    for name in dict.fromkeys(name for name, _ in measured):
        own = [each for other, each in measured if other == name]
        speeds = tuple(each["sentences_per_second"]["median"] for each in own)
        curves.append(Curve(name, speeds, tuple(each["bleu"] for each in own)))
    title = f"BLEU against speed, {'greedy' if beam == 1 else f'beam {beam}'}"
    return CurvePlot(f"quality-{beam}", title, tuple(curves), "sentences/s", "BLEU", joined=False)
