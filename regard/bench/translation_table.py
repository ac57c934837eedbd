"""What `regard bench translate` prints and draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from regard.bench.figures import SPREAD, aligned_table, machine_line, megabytes, notes, row_of
from regard.bench.translators import OURS
from regard.report.plots import Curve, CurvePlot, PicturePlot, RowPlot


def table(results: dict[str, Any]) -> str:
    parts = [run_table(found, results["sentences"]) for found in results["runs"]]
    return "\n".join([*parts, *conditions(results)])


def run_table(found: dict[str, Any], sentences: int) -> str:
    lines: list[str] = []
    engines = [engine for engine in found["engines"] if "beams" in engine]
    for place, beam in enumerate(found["beams"]):
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
        for engine in engines:
            own = engine["beams"][place]
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


def conditions(results: dict[str, Any]) -> list[str]:
    signature = next(
        engine["beams"][0]["signature"] for found in results["runs"] for engine in found["engines"] if "beams" in engine
    )
    return [
        f"{results['source']}, {results['sentences']:,} sentences; median of {results['rounds']} rounds, {SPREAD}; "
        f"“ours is” compares speeds, “ours takes” the median latencies of {results['alone']} sentences one by one",
        f"BLEU: {signature}; same: texts equal to those of {OURS}",
        machine_line(results["machine"]),
    ]


def plots(results: dict[str, Any]) -> list[PicturePlot]:
    """Of one run the speed of each engine by beam; of several, BLEU against speed."""
    runs, beams = results["runs"], list(enumerate(results["runs"][0]["beams"]))
    if len(runs) == 1:
        return [speed_plot(runs[0], place, beam) for place, beam in beams]
    return [quality_plot(runs, place, beam) for place, beam in beams]


def speed_plot(found: dict[str, Any], place: int, beam: int) -> RowPlot:
    engines = [engine for engine in found["engines"] if "beams" in engine]
    rows = tuple(row_of(engine["name"], engine["beams"][place]["sentences_per_second"]) for engine in engines)
    title = f"Translation, {'greedy' if beam == 1 else f'beam {beam}'}"
    return RowPlot(f"translate-{beam}", title, rows, "sentences/s")


def quality_plot(runs: Sequence[dict[str, Any]], place: int, beam: int) -> CurvePlot:
    """A point for each run and engine."""
    curves: list[Curve] = []
    for name in dict.fromkeys(engine["name"] for found in runs for engine in found["engines"] if "beams" in engine):
        own = [
            engine["beams"][place]
            for found in runs
            for engine in found["engines"]
            if engine["name"] == name and "beams" in engine
        ]
        speeds = tuple(each["sentences_per_second"]["median"] for each in own)
        curves.append(Curve(name, speeds, tuple(each["bleu"] for each in own)))
    title = f"BLEU against speed, {'greedy' if beam == 1 else f'beam {beam}'}"
    return CurvePlot(f"quality-{beam}", title, tuple(curves), "sentences/s", "BLEU", joined=False)
