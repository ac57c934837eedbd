// Lines between the two sentences, a colour for each head; a token that is clicked is followed alone.
import { linkHorizontal } from "d3-shape";
import { clamp, html, quoted, short, shown } from "../html.js";
import { headColour } from "../palette.js";
import { select } from "../selection.js";
import { WeightTable } from "../table.js";
import { Readout, View } from "./frame.js";

const MOST_LINES = 4000;
const ROW = 26;
const HEADING = 24;
const WIDE = { column: 170, letters: 20 }; // pixels of the tokens' columns
const NARROW = { column: 104, letters: 12 };
const LEAST_GAP = 120; // between the two
const MOST_GAP = 460;
const CURVE = linkHorizontal();

/** Which heads are shown: those of the selection, or all. */
export function shownHeads(scene) {
  if (!scene.chosen.heads) return scene.heads;
  const wanted = scene.chosen.heads.split(".").map(Number);
  return scene.heads.filter((head) => wanted.includes(head));
}

function Chips({ scene, heads }) {
  const toggle = (head) => {
    const next = heads.includes(head) ? heads.filter((each) => each !== head) : [...heads, head].sort((a, b) => a - b);
    select({ heads: next.length === scene.heads.length ? "" : next.join(".") || "none" });
  };
  return html`<fieldset class="chips"><legend>Heads</legend>
    ${scene.heads.map((head) => html`<button type="button" aria-pressed=${heads.includes(head)} onclick=${() => toggle(head)}
      ondblclick=${() => select({ heads: String(head) })} style=${{ "--chip": headColour(head) }}>${head}</button>`)}
    <button type="button" class="plain" onclick=${() => select({ heads: "" })}>all</button>
    <button type="button" class="plain" onclick=${() => select({ heads: "none" })}>none</button>
  </fieldset>`;
}

/** Lines of the shown heads, strongest first, and how many there are. */
function linesOf(scene, heads, weights) {
  const { rows, columns } = scene;
  const lines = [];
  heads.forEach((head, number) => {
    const values = weights[number];
    for (let row = 0; row < rows.length; row += 1) {
      if (scene.chosen.follow && row !== scene.row) continue;
      for (let column = 0; column < columns.length; column += 1) {
        const value = values[row * columns.length + column];
        if (value >= scene.chosen.least && value > 0) lines.push({ head, row, column, value });
      }
    }
  });
  lines.sort((one, two) => two.value - one.value);
  return { lines: lines.slice(0, MOST_LINES), count: lines.length };
}

function Token({ part, place, x, y, anchor, chosen, act, label, focusable, room }) {
  const typed = (event) => {
    if (event.key === "Enter" || event.key === " ") { event.preventDefault(); act(); }
  };
  return html`<g class=${chosen ? "token chosen" : "token"} transform=${`translate(${x} ${y})`}
    tabindex=${focusable ? 0 : undefined} role=${focusable ? "button" : undefined}
    aria-label=${focusable ? label : undefined} aria-pressed=${focusable ? String(chosen) : undefined}
    onclick=${act} onkeydown=${typed} data-place=${place}>
    <rect x=${anchor === "end" ? -room.column : 0} y=${-ROW / 2} width=${room.column} height=${ROW} rx="3" />
    <title>${short(part.text, 300)}</title>
    <text x=${anchor === "end" ? -8 : 8} y="4" text-anchor=${anchor}>${short(part.text, room.letters)}</text>
  </g>`;
}

export function Heads({ scene }) {
  const heads = shownHeads(scene);
  const weights = heads.map((head) => scene.shownWeights(head));
  const ready = weights.every((each) => each !== null);
  const { rows, columns } = scene;
  const { lines, count } = ready ? linesOf(scene, heads, weights) : { lines: [], count: 0 };
  const height = Math.max(rows.length, columns.length) * ROW + HEADING + 8;
  const middle = (place) => HEADING + (place + 0.5) * ROW;
  const room = window.innerWidth < 640 ? NARROW : WIDE;
  const { column: first } = room;
  const gap = clamp(window.innerWidth - 2 * first - (room === WIDE ? 160 : 24), LEAST_GAP, MOST_GAP);
  const across = first + gap;
  const width = across + first + 12 * heads.length + 16;
  const follow = (place) => {
    const again = scene.chosen.follow && place === scene.row;
    select({ query: rows[place].tokens[0], follow: again ? 0 : 1 });
  };
  const best = lines[0];
  const said = best
    ? html`strongest: ${quoted(rows[best.row].text)} → ${quoted(columns[best.column].text)} <output data-value=${best.value}>${shown(best.value)}</output> <span class="quiet">(head ${best.head}; ${count.toLocaleString("en")} lines of at least ${scene.chosen.least}${count > lines.length ? `, the strongest ${MOST_LINES.toLocaleString("en")} drawn` : ""})</span>`
    : html`no weight of at least ${scene.chosen.least}`;
  const bars = (column) => heads.map((head, number) => {
    const value = weights[number][scene.row * columns.length + column];
    return html`<rect class="bar" x=${across + first + 4 + number * 12} y=${middle(column) - 9} width="10" height="18" fill=${headColour(head)} fill-opacity=${value}><title>head ${head}: ${shown(value)}</title></rect>`;
  });
  return html`<${View} name="heads" ready=${ready} title="Head view"
    about="A line for each place a token looks at: the stronger, the more. Click a token, or press Enter on it, to follow it alone.">
    <${Chips} scene=${scene} heads=${heads} />
    <label class="slider">hide lines below <input type="range" min="0" max="0.5" step="0.01" value=${scene.chosen.least}
      oninput=${(event) => select({ least: Number(event.currentTarget.value) })} /> <span>${scene.chosen.least}</span></label>
    <${Readout}>${said}<//>
    ${ready && html`<div class="wide"><svg class="lines" width=${width} height=${height} viewBox=${`0 0 ${width} ${height}`} role="group" aria-label="Lines between tokens">
      <text class="axis" x=${first - 8} y="12" text-anchor="end">${scene.querySide.name} looks</text>
      <text class="axis" x=${across + 8} y="12">at ${scene.keySide.name}</text>
      <g aria-hidden="true">${lines.map(({ head, row, column, value }) => html`<path
        d=${CURVE({ source: [first, middle(row)], target: [across, middle(column)] })}
        stroke=${headColour(head)} stroke-opacity=${0.1 + 0.85 * value} stroke-width=${0.8 + 4.2 * value}
        data-head=${head} data-row=${row} data-column=${column} data-value=${value} />`)}</g>
      ${rows.map((part, place) => html`<${Token} part=${part} place=${place} room=${room} x=${first} y=${middle(place)} anchor="end"
        chosen=${Boolean(scene.chosen.follow) && place === scene.row} act=${() => follow(place)} focusable=${true}
        label=${`follow ${short(part.text, 60)}`} />`)}
      ${columns.map((part, place) => html`<${Token} part=${part} place=${place} room=${room} x=${across} y=${middle(place)} anchor="start"
        chosen=${false} act=${() => select({ key: part.tokens[0] })} />`)}
      ${Boolean(scene.chosen.follow) && html`<g aria-hidden="true">${columns.map((_, column) => bars(column))}</g>`}
    </svg></div>`}
    ${ready && heads.length > 0 && html`<${WeightTable} scene=${scene} values=${weights[Math.max(heads.indexOf(scene.head), 0)]} />`}
  <//>`;
}
