"""Writes docs/gallery.md and its pictures: python docs/gallery.py RUN, where RUN is that of `regard demo --out RUN`.

Every figure of `regard figure`, with its explanation.
"""

import sys
from pathlib import Path

from regard.figures import FIGURES, Options
from regard.figures.drawing import rendered

HERE = Path(__file__).parent
IMAGES = HERE / "images" / "gallery"
HEAD = """# Gallery

Figures that people know from the papers, drawn by `regard figure NAME --out FILE`: from exact formulas, by the
functions that the models themselves use; measured on models of this package; or of models at work, which are trained
while the figure is drawn. Four show a translator: the one that `--run RUN` names, or else the demo's, which is then
trained beside them. All of them, as PNG and SVG:

```sh
regard figure all --run runs/demo --out figures
```

What is drawn here of one sentence is on the page of [`regard inspect`](inspect.md) for any. This page is written by
`python docs/gallery.py runs/demo`, with seed 1.
"""


def say(note: str) -> None:
    print(note, file=sys.stderr)


def main(run: Path) -> None:
    IMAGES.mkdir(parents=True, exist_ok=True)
    parts = [HEAD]
    for name, figure in FIGURES.items():
        picture = figure.measure(Options(run=run, say=say))
        (IMAGES / f"{name}.png").write_bytes(rendered(picture, "png"))
        shown = f"![{figure.purpose}](images/gallery/{name}.png)"
        parts.append(f"## {picture.title}\n\n`regard figure {name}`: {picture.note}\n\n{shown}\n")
    (HERE / "gallery.md").write_text("\n".join(parts), "utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python docs/gallery.py RUN, the demo's run")
    main(Path(sys.argv[1]))
