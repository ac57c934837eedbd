// Two sentences side by side: where a chosen word looks in each, and which heads change most.
import { html, isolated, quoted, short, shown } from "../html.js";
import { surestBlock, Twins } from "../changes.js";
import { css, inkOn, signedChannels, weightChannels } from "../palette.js";
import { select } from "../selection.js";
import { Readout, View } from "./frame.js";

const MOST_HEADS = 24;

function Strip({ columns, values, best }) {
  return html`<p class="shaded" dir="auto">${columns.map((part, place) => {
    const colour = weightChannels(values[place]);
    return html`<span class=${place === best ? "next" : ""} style=${{ background: css(colour), color: inkOn(colour) }} data-weight=${values[place]}
      title=${shown(values[place])}>${short(part.text, 40)}</span> `;
  })}</p>`;
}

/** What the second has more of than the first, word by word. */
function Difference({ twins, pair }) {
  return html`<p class="shaded" dir="auto">${twins.columnPairs.map(([i, j]) => {
    const [one, two] = [twins.columns[i].text, twins.otherColumns[j].text];
    const value = pair[1].two[j] - pair[0].one[i];
    const colour = signedChannels(value);
    return html`<span style=${{ background: css(colour), color: inkOn(colour) }} data-difference=${value}>${short(one === two ? one : `${one} / ${two}`, 40)}${Math.abs(value) >= 0.005 ? ` ${value > 0 ? "+" : "−"}${Math.abs(value).toFixed(2)}` : ""}</span> `;
  })}</p>`;
}

/** What the view is for: the head that tells the two apart, or the two heads, in a sentence; or where the chosen head looks. */
function Answer({ twins, row, pair, tells }) {
  const name = ({ layer, head }) => `layer ${layer}, head ${head}`;
  const apart = pair[0] !== pair[1];
  const by = (look) => (apart ? ` (${name(look)})` : "");
  const at = (parts, { at: place, weight }) => html`${quoted(parts[place].text)} <output data-value=${weight}>${shown(weight)}</output>`;
  const looks = tells?.looks ?? pair.map(({ one, two, best }, side) => ({ at: best[side], weight: (side ? two : one)[best[side]] }));
  const [one, two] = [twins.rows[row].text, twins.otherRows[twins.otherRow(row)].text];
  const said = html`${quoted(one)} looks ${tells ? "" : "most "}at ${at(twins.columns, looks[0])} in the first sentence${by(pair[0])}, and ${one === two ? "" : html`${quoted(two)} `}at ${at(twins.otherColumns, looks[1])} in the second${by(pair[1])}.`;
  return html`<${Readout}><strong>${tells ? `What tells the two apart: ${apart ? "two heads" : name(pair[0])}.` : `${name(pair[0])}:`}</strong> ${said}<//>`;
}

/** The head that is shown for each sentence: the chosen one, or what tells the two apart, which may be one head or two. */
function headsOf(ranking, turn, chosen) {
  const is = ({ layer, head }) => (each) => each.layer === layer && each.head === head;
  const picked = ranking.find(is(chosen));
  const tells = turn.looks.length && turn.looks.every((look) => !picked || is(look)(picked)) ? turn : null;
  return { tells, pair: tells ? turn.looks.map((look) => ranking.find(is(look))) : Array(2).fill(picked ?? ranking[0]) };
}

export function Compare({ scene }) {
  const { store, chosen } = scene;
  const about = "The same word in two sentences. Heads are listed by how much of their attention goes elsewhere in the second; what tells the two apart most surely is shown: one head, or one for each sentence.";
  const others = store.documents.map((doc, number) => number).filter((number) => number !== scene.number);
  const number = others.includes(chosen.other) ? chosen.other : others[0];
  const doc = store.documents[number];
  const block = chosen.block || chosen.query >= 0 ? scene.block : surestBlock(scene.ofText, number);
  if (block !== null && block !== scene.block) queueMicrotask(() => select({ block }));
  if (block !== scene.block) return html`<${View} name="compare" ready=${false} title="Compare" about=${about} />`;
  const twins = new Twins(scene, number);
  const asked = twins.rows.findIndex((part) => part.tokens.includes(chosen.query));
  const row = asked >= 0 ? asked : twins.mostTurned()?.row ?? null;
  const ranking = row === null ? null : twins.ranking(row);
  const ready = ranking !== null && ranking.length > 0;
  const turn = ready ? twins.turn(row) : null;
  const { tells, pair } = ready ? headsOf(ranking, turn, chosen) : {};
  if (ranking !== null && !ready) return html`<${View} name="compare" ready=${true} title="Compare" about=${about}><p>The other sentence has no attention of this kind.</p><//>`;
  const cell = (parts, values, best) => html`<td><bdi>${short(parts[best].text, 30)}</bdi> ${shown(values[best], 2)}</td>`;
  return html`<${View} name="compare" ready=${ready} title="Compare" about=${about}>
    ${ready && html`<div class="controls">
      <label class="choice"><span>with</span><select onchange=${(event) => select({ other: Number(event.currentTarget.value) })}>
        ${others.map((each) => html`<option value=${each} selected=${each === number}>${short(store.documents[each].text, 60)}</option>`)}</select></label>
      <label class="choice"><span>word that looks</span><select onchange=${(event) => select({ query: Number(event.currentTarget.value), head: -1 })}>
        ${twins.rows.map((part, place) => html`<option value=${part.tokens[0]} selected=${place === row}>${place + 1}. ${isolated(part.text)}</option>`)}</select></label>
    </div>
    <${Answer} twins=${twins} row=${row} pair=${pair} tells=${tells} />
    <h3 dir="auto">${short(scene.doc.text, 120)}</h3><${Strip} columns=${twins.columns} values=${pair[0].one} best=${pair[0].best[0]} />
    <h3 dir="auto">${short(doc.text, 120)}</h3><${Strip} columns=${twins.otherColumns} values=${pair[1].two} best=${pair[1].best[1]} />
    <h3>The difference <span class="quiet">blue: more in the second; orange: less</span></h3><${Difference} twins=${twins} pair=${pair} />
    <h3>Heads by how much they change <span class="quiet">${scene.nameOf()}</span></h3>
    <div class="wide" tabindex="0" role="region" aria-label="Heads by how much they change"><table class="numbers ranking"><thead><tr><th scope="col">layer</th><th scope="col">head</th><th scope="col">change</th><th scope="col">looks most at</th><th scope="col">in the other</th></tr></thead>
    <tbody>${ranking.slice(0, MOST_HEADS).map((each) => html`<tr class=${pair.includes(each) ? "chosen" : ""}><td>${each.layer}</td>
      <td><button type="button" onclick=${() => select({ layer: each.layer, head: each.head, query: twins.rows[row].tokens[0] })} aria-label=${`layer ${each.layer}, head ${each.head}`}>${each.head}</button></td>
      <td class="bar" data-change=${each.change}><span style=${{ "--share": each.change }}>${shown(each.change)}</span></td>
      ${cell(twins.columns, each.one, each.best[0])}${cell(twins.otherColumns, each.two, each.best[1])}</tr>`)}</tbody></table></div>`}
  <//>`;
}
