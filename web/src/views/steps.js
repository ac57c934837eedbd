// The decoder at work: what it has read so far, where it looks, its best next tokens.
import { face, html, quoted, short, shown } from "../html.js";
import { css, inkOn, weightChannels } from "../palette.js";
import { select } from "../selection.js";
import { Readout, View } from "./frame.js";

/** Tokens, shaded by how much is looked at each. */
function Shaded({ side, weights }) {
  return html`<p class="shaded" dir=${side.direction}>${side.tokens.map((text, place) => {
    const colour = weightChannels(weights[place]);
    return html`<span style=${{ background: css(colour), color: inkOn(colour) }} title=${`${short(text, 200)}: ${shown(weights[place])}`}
      data-weight=${weights[place]}>${short(face(text), 40)}</span> `;
  })}</p>`;
}

export function Steps({ scene }) {
  const { steps } = scene.doc;
  const place = Math.max(0, Math.min(steps.length - 1, Math.round(scene.chosen.query)));
  const step = steps[place];
  const decodes = scene.attention !== undefined && scene.block.startsWith("decoder");
  const weights = decodes ? scene.weights() : new Float32Array();
  const ready = weights !== null;
  const row = decodes && ready ? weights.subarray(place * scene.attention.keys, (place + 1) * scene.attention.keys) : null;
  const read = scene.doc.sides.find((side) => side.name === "target") ?? { tokens: [], direction: "auto" };
  const go = (to) => select({ query: Math.max(0, Math.min(steps.length - 1, to)) });
  const typed = (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1, Home: -steps.length, End: steps.length }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    go(place + by);
  };
  return html`<${View} name="steps" ready=${ready} title="Step by step"
    about="At each step the decoder reads what is written so far, looks, and gives every possible next token a probability.">
    <div class="stepper" role="group" aria-label="Steps" onkeydown=${typed}>
      <button type="button" onclick=${() => go(place - 1)} disabled=${place === 0}>← back</button>
      <label class="slider">step <input type="range" min="0" max=${steps.length - 1} value=${place} oninput=${(event) => go(Number(event.currentTarget.value))} /> <span>${place + 1} of ${steps.length}</span></label>
      <button type="button" onclick=${() => go(place + 1)} disabled=${place === steps.length - 1}>forward →</button>
    </div>
    <${Readout}>writes ${quoted(face(step.token), 60)} with probability <output data-value=${step.probability}>${shown(step.probability)}</output><//>
    <h3>What it has read</h3>
    <p class="shaded" dir=${read.direction}>${read.tokens.slice(0, place + 1).map((text) => html`<span class="written">${short(face(text), 40)}</span> `)}<span class="next">${short(face(step.token), 40)}</span></p>
    ${row && html`<h3>Where it looks${scene.several ? ` in ${scene.keySide.name}` : ""} <span class="quiet">${scene.headName}</span></h3><${Shaded} side=${scene.keySide} weights=${row} />`}
    ${!decodes && scene.attention !== undefined && html`<p class="quiet">Choose an attention of the decoder to see where it looks.</p>`}
    <h3>Its best next tokens</h3>
    <table class="best"><tbody>${step.best.map(([token, chance]) => html`<tr class=${token === step.token ? "chosen" : ""}>
      <th scope="row"><bdi>${short(face(token), 40)}</bdi></th><td class="bar" data-chance=${chance}><span style=${{ "--share": chance }}>${shown(chance)}</span></td></tr>`)}</tbody></table>
  <//>`;
}
