// Two sentences side by side: where a chosen word looks in each, and which heads change most.
import { html, short, shown } from "../html.js";
import { folded, shownParts } from "../fold.js";
import { css, inkOn, weightChannels } from "../palette.js";
import { nameOf } from "../scene.js";
import { select } from "../selection.js";
import { Readout, View } from "./frame.js";

/** Pairs [place in one, place in other] of equal texts in order: the longest common subsequence. */
export function matched(one, other) {
  const table = Array.from({ length: one.length + 1 }, () => new Uint16Array(other.length + 1));
  for (let i = one.length - 1; i >= 0; i -= 1) {
    for (let j = other.length - 1; j >= 0; j -= 1) {
      table[i][j] = one[i] === other[j] ? table[i + 1][j + 1] + 1 : Math.max(table[i + 1][j], table[i][j + 1]);
    }
  }
  const pairs = [];
  for (let i = 0, j = 0; i < one.length && j < other.length;) {
    if (one[i] === other[j]) { pairs.push([i, j]); i += 1; j += 1; }
    else if (table[i + 1][j] >= table[i][j + 1]) i += 1;
    else j += 1;
  }
  return pairs;
}

/** The same, and what stands between two of them side by side, where there is as much of it: "tired" and "wide". */
export function counterparts(one, other) {
  const pairs = [];
  let [i, j] = [0, 0];
  for (const [nextOne, nextOther] of [...matched(one, other), [one.length, other.length]]) {
    if (nextOne - i === nextOther - j) for (let gap = 0; gap < nextOne - i; gap += 1) pairs.push([i + gap, j + gap]);
    if (nextOne < one.length) pairs.push([nextOne, nextOther]);
    [i, j] = [nextOne + 1, nextOther + 1];
  }
  return pairs;
}

/** Half the sum of the differences, 0 … 1: how much of the attention goes elsewhere. What has no counterpart counts whole. */
export function distance(one, other, pairs) {
  let common = 0;
  for (const [i, j] of pairs) common += Math.min(one[i], other[j]);
  return Math.max(0, 1 - common);
}

function bestOf(values) {
  let best = 0;
  values.forEach((value, place) => { if (value > values[best]) best = place; });
  return best;
}

/** The row of a word in one document: its weights by word, or null while they are on their way. */
function rowOf(store, number, attention, head, rows, columns, row) {
  const found = store.head(number, attention, head);
  return found === null ? null : folded(found.weights, attention.keys, [rows[row]], columns);
}

function Strip({ columns, values, best }) {
  return html`<p class="shaded" dir="auto">${columns.map((part, place) => {
    const colour = weightChannels(values[place]);
    return html`<span class=${place === best ? "next" : ""} style=${{ background: css(colour), color: inkOn(colour) }} data-weight=${values[place]}
      title=${shown(values[place])}>${short(part.text, 40)}</span> `;
  })}</p>`;
}

export function Compare({ scene }) {
  const { store, chosen } = scene;
  const about = "The same word in two sentences: the head at the top of the list is the one whose attention changes most between them.";
  const others = store.documents.map((doc, number) => number).filter((number) => number !== scene.number);
  const number = others.includes(chosen.other) ? chosen.other : others[0];
  const doc = store.documents[number];
  const fold = { words: chosen.words, symbols: chosen.symbols };
  const rows = shownParts(scene.querySide, fold);
  const row = Math.max(0, rows.findIndex((part) => part.tokens.includes(scene.query)));
  const ranking = [];
  let waiting = false;
  for (const attention of scene.layers) {
    const twin = doc.attentions.find((each) => each.block === attention.block);
    if (twin === undefined) continue;
    const otherRows = shownParts(doc.sides[twin.query_side], fold);
    const texts = (parts) => parts.map((part) => part.text);
    const pair = counterparts(texts(rows), texts(otherRows)).find(([place]) => place === row);
    const columns = shownParts(scene.keySide, fold);
    const otherColumns = shownParts(doc.sides[twin.key_side], fold);
    const otherRow = pair ? pair[1] : Math.min(row, otherRows.length - 1);
    const pairs = counterparts(texts(columns), texts(otherColumns));
    for (const head of attention.shown) {
      if (!twin.shown.includes(head)) continue;
      const one = rowOf(store, scene.number, attention, head, rows, columns, row);
      const two = rowOf(store, number, twin, head, otherRows, otherColumns, otherRow);
      if (one === null || two === null) { waiting = true; continue; }
      ranking.push({ layer: attention.layer, head, one, two, columns, otherColumns, otherRow, otherRows, change: distance(one, two, pairs), best: [bestOf(one), bestOf(two)] });
    }
  }
  ranking.sort((a, b) => b.change - a.change);
  const now = ranking.find((each) => each.layer === chosen.layer && each.head === chosen.head) ?? ranking[0];
  const ready = !waiting && now !== undefined;
  const turns = ready && now.columns[now.best[0]].text !== now.otherColumns[now.best[1]].text;
  return html`<${View} name="compare" ready=${ready} title="Compare" about=${about}>
    ${ready && html`<div class="controls">
      <label class="choice"><span>with</span><select onchange=${(event) => select({ other: Number(event.currentTarget.value) })}>
        ${others.map((each) => html`<option value=${each} selected=${each === number}>${short(store.documents[each].text, 60)}</option>`)}</select></label>
      <label class="choice"><span>word that looks</span><select onchange=${(event) => select({ query: Number(event.currentTarget.value) })}>
        ${rows.map((part, place) => html`<option value=${part.tokens[0]} selected=${place === row}>${place + 1}. ${short(part.text, 40)}</option>`)}</select></label>
    </div>
    <${Readout}>layer ${now.layer}, head ${now.head}: “${short(rows[row].text, 40)}” → “${short(now.columns[now.best[0]].text, 40)}” <output data-value=${now.one[now.best[0]]}>${shown(now.one[now.best[0]])}</output>${turns ? ", but “" : "; and “"}${short(now.otherRows[now.otherRow].text, 40)}” → “${short(now.otherColumns[now.best[1]].text, 40)}” <output data-value=${now.two[now.best[1]]}>${shown(now.two[now.best[1]])}</output><//>
    <h3>${short(scene.doc.text, 120)}</h3><${Strip} columns=${now.columns} values=${now.one} best=${now.best[0]} />
    <h3>${short(doc.text, 120)}</h3><${Strip} columns=${now.otherColumns} values=${now.two} best=${now.best[1]} />
    <h3>Heads by how much they change <span class="quiet">${nameOf(scene.block)}</span></h3>
    <table class="numbers ranking"><thead><tr><th scope="col">layer</th><th scope="col">head</th><th scope="col">change</th><th scope="col">looks most at</th><th scope="col">in the other</th></tr></thead>
    <tbody>${ranking.slice(0, 24).map((each) => html`<tr class=${each === now ? "chosen" : ""}><td>${each.layer}</td>
      <td><button type="button" onclick=${() => select({ layer: each.layer, head: each.head })} aria-label=${`layer ${each.layer}, head ${each.head}`}>${each.head}</button></td>
      <td data-change=${each.change}>${shown(each.change)}</td>
      <td><bdi>${short(each.columns[each.best[0]].text, 30)}</bdi> ${shown(each.one[each.best[0]], 2)}</td>
      <td><bdi>${short(each.otherColumns[each.best[1]].text, 30)}</bdi> ${shown(each.two[each.best[1]], 2)}</td></tr>`)}</tbody></table>`}
  <//>`;
}
