"""Writes docs/gallery.md and its pictures: python docs/gallery.py.

Every figure of `regard figure`, with its explanation.
"""

from pathlib import Path

from regard.figures import FIGURES, Options
from regard.figures.drawing import rendered

HERE = Path(__file__).parent
IMAGES = HERE / "images" / "gallery"
HEAD = """# Gallery

Figures that people know from the papers, drawn by `regard figure NAME --out FILE` from exact formulas, by the functions
that the models themselves use, or measured on models of this package. `regard figure all --out DIR` draws all of them,
as PNG and SVG. Those that show one model at work, the attention of a sentence, its search and its positions, are on the
page of [`regard inspect`](inspect.md).

This page is written by `python docs/gallery.py`.
"""


def main() -> None:
    IMAGES.mkdir(parents=True, exist_ok=True)
    parts = [HEAD]
    for name, figure in FIGURES.items():
        picture = figure.measure(Options())
        (IMAGES / f"{name}.png").write_bytes(rendered(picture, "png"))
        shown = f"![{figure.purpose}](images/gallery/{name}.png)"
        parts.append(f"## {picture.title}\n\n`regard figure {name}`: {picture.note}\n\n{shown}\n")
    (HERE / "gallery.md").write_text("\n".join(parts), "utf-8")


if __name__ == "__main__":
    main()
