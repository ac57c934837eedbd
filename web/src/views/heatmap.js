// The alignment matrix: a row for each token that looks, a column for each that is looked at.
import { Canvas, clamp, html, quoted, short, shown } from "../html.js";
import { css, drawImage, image, inkOn, isDark, isPrinting, weightChannels } from "../palette.js";
import { WeightTable } from "../table.js";
import { moved, Readout, View } from "./frame.js";

const LABEL = 15; // characters of a label
const LEAST_LABELLED = 11; // pixels of a cell that has room for one
const LEAST_NUMBERED = 30;

const SHEET = { width: 480, height: 560 }; // pixels of all cells that fit on one sheet of paper, beside their labels

function cellSize(rows, columns) {
  if (isPrinting()) return clamp(Math.floor(Math.min(SHEET.width / columns, SHEET.height / rows)), 1, 38);
  const room = Math.max(320, Math.min(window.innerWidth - 220, 1000));
  return Math.max(2, Math.min(38, Math.floor(room / columns), Math.max(14, Math.floor(900 / rows))));
}

function drawCells(context, values, rows, columns, cell, mirrored) {
  drawImage(context, image(values, rows, columns, { mirrored }), 0, 0, columns * cell, rows * cell);
  if (cell < LEAST_NUMBERED) return;
  context.font = "10px ui-monospace, monospace";
  context.textAlign = "center";
  context.textBaseline = "middle";
  for (let row = 0; row < rows; row += 1) {
    for (let column = 0; column < columns; column += 1) {
      const value = values[row * columns + column];
      if (value < 0.005) continue;
      context.fillStyle = inkOn(weightChannels(value));
      const x = (mirrored ? columns - 1 - column : column) + 0.5;
      context.fillText(value > 0.995 ? "1.0" : value.toFixed(2).slice(1), x * cell, (row + 0.5) * cell);
    }
  }
}

/** A matrix with labels; `choose(row, column)` is called for what is clicked or reached by the arrow keys. */
export function Matrix({ name, values, rows, columns, row, column, mirrored, choose, turn, say, headings }) {
  const cell = cellSize(rows.length, columns.length);
  const width = cell * columns.length;
  const height = cell * rows.length;
  const labelled = cell >= LEAST_LABELLED;
  const left = 130;
  const top = 96;
  const x = (place) => (mirrored ? columns.length - 1 - place : place) * cell;
  const at = (event) => {
    const box = event.currentTarget.getBoundingClientRect();
    const across = Math.floor((event.clientX - box.left) / cell);
    return [Math.floor((event.clientY - box.top) / cell), mirrored ? columns.length - 1 - across : across];
  };
  const inside = ([r, c]) => r >= 0 && r < rows.length && c >= 0 && c < columns.length;
  const pointed = (event) => {
    const place = at(event);
    if (inside(place)) choose(...place);
  };
  const typed = (event) => {
    if (turn && turn(event.key)) return event.preventDefault();
    const place = moved(event, row, column, rows.length, columns.length, mirrored);
    if (place === null) return undefined;
    event.preventDefault();
    return choose(...place);
  };
  const isTold = (place, chosen) => labelled || place === chosen || (cell * 8 >= 12 && place % Math.ceil(24 / cell) === 0 && Math.abs(place - chosen) > 24 / cell);
  return html`<div class="wide">
    <div class="map" style=${{ width: `${left + width + 60}px`, height: `${top + height + 8}px` }}>
      <svg width=${left + width + 60} height=${top + height + 8} aria-hidden="true">
        <text class="axis" x=${left - 8} y=${top - 10} text-anchor="end">${headings[0]} ↓</text>
        <text class="axis" x="2" y="14">${mirrored ? `← ${headings[1]}` : `${headings[1]} →`}</text>
        ${rows.map((part, place) => isTold(place, row) && html`<text
          class=${place === row ? "label chosen" : "label"} x=${left - 8} y=${top + (place + 0.5) * cell + 4} text-anchor="end"
          onclick=${() => choose(place, column)}><title>${short(part.text, 300)}</title>${short(part.text, LABEL)}</text>`)}
        ${columns.map((part, place) => isTold(place, column) && html`<text
          class=${place === column ? "label chosen" : "label"}
          transform=${`translate(${left + x(place) + cell / 2 + 3} ${top - 8}) rotate(-50)`}
          onclick=${() => choose(row, place)}><title>${short(part.text, 300)}</title>${short(part.text, LABEL)}</text>`)}
      </svg>
      <div class="cells" style=${{ left: `${left}px`, top: `${top}px`, width: `${width}px`, height: `${height}px` }}
        tabindex="0" role="application" aria-roledescription="heat map" aria-label=${`${name}. ${say}`}
        data-rows=${rows.length} data-columns=${columns.length} data-cell=${cell}
        onkeydown=${typed} onclick=${pointed} onmousemove=${(event) => event.buttons === 0 && pointed(event)}>
        <${Canvas} width=${width} height=${height} of=${[values, mirrored, isDark()]}
          draw=${(context) => drawCells(context, values, rows.length, columns.length, cell, mirrored)} />
        <div class="mark" style=${{ left: `${x(column)}px`, top: `${row * cell}px`, width: `${cell}px`, height: `${cell}px` }}></div>
      </div>
    </div>
  </div>`;
}

/** Light to dark, with its numbers. */
export function Scale() {
  const steps = [0, 0.25, 0.5, 0.75, 1];
  return html`<p class="scale" aria-hidden="true">weight ${steps.map((value) => {
    const colour = weightChannels(value);
    return html`<span style=${{ background: css(colour), color: inkOn(colour) }}>${value}</span>`;
  })}</p>`;
}

export function Heatmap({ scene }) {
  const values = scene.shownWeights();
  const { rows, columns, row, column, attention } = scene;
  const ready = values !== null && rows.length > 0 && columns.length > 0;
  const value = ready ? values[row * columns.length + column] : 0;
  const say = ready && html`${quoted(rows[row].text, 60)} looks at ${quoted(columns[column].text, 60)}`;
  return html`<${View} name="heatmap" ready=${ready} title="Heat map"
    about=${`Each row is one token and where it looks; the ${isDark() ? "lighter" : "darker"} a cell, the more of what is read comes from there. A row sums to 1.`}>
    <${Readout}>${say}: <output data-value=${value}>${shown(value)}</output> <span class="quiet">${scene.headName}</span><//>
    ${ready && html`<${Matrix} name=${scene.block} values=${values} rows=${rows} columns=${columns} row=${row} column=${column}
      mirrored=${scene.keySide.direction === "rtl"} choose=${(r, c) => scene.chooseCell(r, c)} turn=${(key) => scene.turn(key)}
      say="Arrow keys move; square brackets change the head, braces the layer."
      headings=${[scene.doc.sides[attention.query_side].name, scene.doc.sides[attention.key_side].name]} />`}
    <${Scale} />
    ${ready && html`<${WeightTable} scene=${scene} values=${values} />`}
  <//>`;
}
