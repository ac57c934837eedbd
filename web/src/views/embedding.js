// The same word in several places: how alike its vectors are, layer by layer.
import { html, quoted, short, shown } from "../html.js";
import { css, inkOn, weightChannels } from "../palette.js";
import { select } from "../selection.js";
import { Readout, View } from "./frame.js";

/** A place in its sentence: the word with some around it. */
function Context({ store, place: [number, word] }) {
  const doc = store.documents[number];
  const side = doc.sides.find((each) => each.name !== "output" && each.words[word] !== undefined);
  const around = side.words.slice(Math.max(0, word - 4), word);
  const after = side.words.slice(word + 1, word + 5);
  return html`<span dir=${side.direction}>${word > 4 ? "… " : ""}${short(around.join(" "), 60)} <strong>${short(side.words[word], 40)}</strong> ${short(after.join(" "), 60)}${word + 5 < side.words.length ? " …" : ""}</span>`;
}

function Cosines({ matrix, layer }) {
  return html`<table class="cosines"><caption>${layer === 0 ? "before the first layer" : `after layer ${layer - 1}`}</caption>
    <thead><tr><td></td>${matrix.map((_, place) => html`<th scope="col">${place + 1}</th>`)}</tr></thead>
    <tbody>${matrix.map((row, place) => html`<tr><th scope="row">${place + 1}</th>${row.map((value) => {
      const colour = weightChannels(Math.max(0, value));
      return html`<td style=${{ background: css(colour), color: inkOn(colour) }} data-value=${value}>${shown(value, 3)}</td>`;
    })}</tr>`)}</tbody></table>`;
}

/** The mean cosine of all pairs of places, at a layer. */
function meanCosine({ places, cosines }, layer) {
  let [sum, count] = [0, 0];
  places.forEach((_, one) => places.forEach((_, two) => {
    if (one < two) { sum += cosines[layer][one][two]; count += 1; }
  }));
  return sum / count;
}

/** What is shown first: the word that its company changes most. */
function mostChanged(words) {
  const change = (each) => meanCosine(each, 0) - meanCosine(each, each.cosines.length - 1);
  return words.reduce((best, each) => (change(each) > change(best) ? each : best));
}

export function Embedding({ scene }) {
  const { words } = scene.store;
  const chosen = words.find((each) => each.word === scene.chosen.word) ?? mostChanged(words);
  const last = chosen.cosines.length - 1;
  const mean = (layer) => meanCosine(chosen, layer);
  return html`<${View} name="embedding" ready=${true} title="Embedding"
    about="A word begins with one vector wherever it stands (but for its position); each layer mixes in what is around it, so the same word in other company becomes another vector. Cosine 1 means the same direction.">
    <label class="slider">word <select onchange=${(event) => select({ word: event.currentTarget.value })}>
      ${words.map((each) => html`<option value=${each.word} selected=${each === chosen}>${short(each.word, 40)} (${each.places.length})</option>`)}</select></label>
    <${Readout}>mean cosine of ${quoted(chosen.word)}: before the first layer <output data-value=${mean(0)}>${shown(mean(0), 3)}</output>, after the last <output data-value=${mean(last)}>${shown(mean(last), 3)}</output><//>
    <ol class="places">${chosen.places.map((place) => html`<li><${Context} store=${scene.store} place=${place} /></li>`)}</ol>
    <div class="layers">${chosen.cosines.map((matrix, layer) => html`<${Cosines} matrix=${matrix} layer=${layer} />`)}</div>
  <//>`;
}
