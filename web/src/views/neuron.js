// How one token's weights come about: its query, each key, their terms feature by feature, the score, the softmax.
import { Canvas, face, html, isolated, quoted, short, shown } from "../html.js";
import { drawImage, image } from "../palette.js";
import { select } from "../selection.js";
import { Unfolded } from "../table.js";
import { moved, Readout, View } from "./frame.js";

const ROW = 22;
const STRIP = 260;

/** The terms of the scores of one query: what is summed over the features, for each key. */
export function termsOf(attention, q, k) {
  const { keys, width, factor, v } = attention;
  const terms = new Float64Array(keys * width);
  for (let key = 0; key < keys; key += 1) {
    for (let feature = 0; feature < width; feature += 1) {
      const one = q[feature];
      const two = k[key * width + feature];
      terms[key * width + feature] = v ? Math.tanh(one + two) * v[feature] : one * two * factor;
    }
  }
  return terms;
}

export function formula(attention) {
  if (attention.v) return "score = Σ v · tanh(q + k)";
  const root = Math.sqrt(attention.width);
  if (Math.abs(attention.factor - 1) < 1e-9) return "score = q · k";
  if (Math.abs(attention.factor * root - 1) < 1e-6) return `score = q · k / √${attention.width}`;
  return `score = q · k × ${shown(attention.factor)}`;
}

function Strip({ values, rows, width, most, chosen, name, choose }) {
  const cell = STRIP / width;
  const draw = (context) => {
    drawImage(context, image(values, rows, width, { most, signed: true }), 0, 0, STRIP, rows * ROW);
    context.fillStyle = getComputedStyle(document.body).backgroundColor;
    for (let row = 1; row < rows; row += 1) context.fillRect(0, row * ROW - 1, STRIP, 2);
    context.strokeStyle = getComputedStyle(document.body).color;
    context.lineWidth = 1.5;
    if (chosen) context.strokeRect(chosen[1] * cell + 0.75, chosen[0] * ROW + 1.5, Math.max(cell - 1.5, 1), ROW - 3);
  };
  const at = (event) => {
    const box = event.currentTarget.getBoundingClientRect();
    choose(Math.min(rows - 1, Math.floor((event.clientY - box.top) / ROW)), Math.min(width - 1, Math.floor((event.clientX - box.left) / cell)));
  };
  return html`<${Canvas} width=${STRIP} height=${rows * ROW} draw=${draw} role="img" aria-label=${name} data-cells=${rows * width}
    onclick=${at} onmousemove=${at} />`;
}

function largest(values) {
  let most = 1e-9;
  for (const value of values) if (Math.abs(value) > most) most = Math.abs(value);
  return most;
}

export function Neuron({ scene }) {
  const { attention, query, key, store, number } = scene;
  const head = scene.oneHead;
  const found = store.head(number, attention, head);
  const may = store.mask(number, attention, head);
  const ready = found !== null && may !== null;
  const about = "For the chosen token: its query q, the key k of each token it could look at, what their features contribute to the score, and the softmax over all scores. Blue is positive, orange negative.";
  if (!ready) return html`<${View} name="neuron" ready=${false} title="Neuron view" about=${about} />`;
  const { keys, width } = attention;
  const q = found.q.subarray(query * width, (query + 1) * width);
  const terms = termsOf(attention, q, found.k);
  const scores = Array.from({ length: keys }, (_, place) => {
    let sum = 0;
    for (let feature = 0; feature < width; feature += 1) sum += terms[place * width + feature];
    return sum;
  });
  const weights = found.weights.subarray(query * keys, (query + 1) * keys);
  const feature = Math.max(0, Math.min(width - 1, Math.round(scene.chosen.feature)));
  const choose = (row, column) => select({ key: row, feature: column });
  const ofKey = found.k[key * width + feature];
  const term = terms[key * width + feature];
  const typed = (event) => {
    if (scene.turn(event.key)) return event.preventDefault();
    const place = moved(event, key, feature, keys, width);
    if (place === null) return undefined;
    event.preventDefault();
    return choose(...place);
  };
  const tokens = scene.keySide.tokens.map(face);
  const name = quoted(face(scene.querySide.tokens[query]));
  const termName = attention.v ? "v · tanh(q + k)" : "q × k, scaled";
  const features = () => html`<table class="numbers"><thead><tr><th scope="col">feature</th><th scope="col">q</th>
    <th scope="col">k</th><th scope="col">${termName}</th></tr></thead><tbody>
    ${Array.from(q, (value, place) => html`<tr class=${place === feature ? "chosen" : ""}><th scope="row">${place}</th><td>${shown(value)}</td>
      <td>${shown(found.k[key * width + place])}</td><td>${shown(terms[key * width + place])}</td></tr>`)}
    <tr><th scope="row">sum</th><td></td><td></td><td>${shown(scores[key])}</td></tr></tbody></table>`;
  return html`<${View} name="neuron" ready=${true} title="Neuron view" about=${about}>
    <label class="slider">token that looks <select onchange=${(event) => select({ query: Number(event.currentTarget.value) })}>
      ${scene.querySide.tokens.map((text, place) => html`<option value=${place} selected=${place === query}>${place} ${isolated(face(text))}</option>`)}
    </select></label>
    <p class="formula">${formula(attention)} <span class="quiet">layer ${attention.layer}, head ${head}${scene.head < 0 ? " (a mean has no query; this is its first head)" : ""}</span></p>
    <${Readout}>${name} → ${quoted(tokens[key])}, feature ${feature}: q <output>${shown(q[feature])}</output>, k <output>${shown(ofKey)}</output>, term <output data-value=${term}>${shown(term)}</output>; score <output>${may(query, key) ? shown(scores[key]) : "masked"}</output>, weight <output data-value=${weights[key]}>${shown(weights[key])}</output><//>
    <div class="wide" tabindex="0" role="application" aria-label="Neuron view. Up and down choose the key, left and right the feature." onkeydown=${typed}>
    <table class="neuron"><thead>
      <tr><th scope="col">q of ${name}</th><td><${Strip} name="query" values=${q} rows=${1} width=${width} most=${largest(q)} chosen=${[0, feature]} choose=${(_, column) => choose(key, column)} /></td><td colspan="3"></td></tr>
      <tr><th scope="col">token looked at</th><th scope="col">k</th><th scope="col">${termName}</th><th scope="col">score</th><th scope="col">softmax</th></tr>
    </thead><tbody>${tokens.map((text, place) => html`<tr class=${place === key ? "chosen" : ""} onclick=${() => select({ key: place })}>
      <th scope="row" title=${short(text, 300)}><bdi>${short(text, 20)}</bdi></th>
      ${place === 0 && html`<td rowspan=${keys}><${Strip} name="keys" values=${found.k} rows=${keys} width=${width} most=${largest(found.k)} chosen=${[key, feature]} choose=${choose} /></td>
        <td rowspan=${keys}><${Strip} name="terms" values=${terms} rows=${keys} width=${width} most=${largest(terms)} chosen=${[key, feature]} choose=${choose} /></td>`}
      <td class="number" data-score=${scores[place]}>${may(query, place) ? shown(scores[place], 3) : "masked"}</td>
      <td class="bar" data-weight=${weights[place]}><span style=${{ "--share": weights[place] }}>${shown(weights[place])}</span></td>
    </tr>`)}</tbody></table></div>
    <${Unfolded} title=${`The features of “${short(tokens[key])}” as a table`} content=${features} />
  <//>`;
}
