// What is looked at: sentence, attention, layer, head, and how tokens are shown.
import { html, isolated } from "./html.js";
import { select } from "./selection.js";

function Choice({ label, value, options, choose }) {
  return html`<label class="choice"><span>${label}</span><select onchange=${(event) => choose(event.currentTarget.value)}>
    ${options.map(([key, text]) => html`<option value=${key} selected=${String(key) === String(value)}>${text}</option>`)}
  </select></label>`;
}

function Tick({ label, value, choose }) {
  return html`<label class="tick"><input type="checkbox" checked=${value} onchange=${(event) => choose(event.currentTarget.checked)} /> ${label}</label>`;
}

export function Controls({ scene, wanted: all }) {
  const wanted = scene.attention === undefined ? [] : all; // a model may have no attention to choose
  const { chosen } = scene;
  const layers = scene.layers.map((attention) => [attention.layer, attention.layer]);
  const several = layers.length > 1 && wanted.includes("head");
  const documents = scene.store.documents.map((doc, number) => [number, `${number + 1}. ${isolated(doc.text, 60)}`]);
  return html`<form class="controls" onsubmit=${(event) => event.preventDefault()} aria-label="What is shown">
    ${documents.length > 1 && html`<${Choice} label="sentence" value=${scene.number} options=${documents} choose=${(value) => select({ doc: Number(value) })} />`}
    ${wanted.includes("block") && html`<${Choice} label="attention" value=${scene.block}
      options=${[...scene.groups.keys()].map((block) => [block, scene.nameOf(block)])} choose=${(block) => select({ block })} />`}
    ${wanted.includes("layer") && html`<${Choice} label="layer" value=${scene.isMean ? -1 : scene.attention.layer}
      options=${several ? [[-1, "mean of all"], ...layers] : layers} choose=${(value) => select({ layer: Number(value) })} />`}
    ${wanted.includes("head") && !scene.isMean && html`<${Choice} label="head" value=${scene.head}
      options=${[[-1, "mean of all"], ...scene.heads.map((head) => [head, head])]} choose=${(value) => select({ head: Number(value) })} />`}
    ${wanted.includes("fold") && html`<${Tick} label="whole words" value=${chosen.words === 1} choose=${(on) => select({ words: on ? 1 : 0 })} />
      <${Tick} label="symbols such as </s>" value=${chosen.symbols === 1} choose=${(on) => select({ symbols: on ? 1 : 0 })} />`}
    ${wanted.includes("fold") && scene.hasPair && html`<${Choice} label="pair" value=${chosen.pair}
      options=${[["", "all"], ["AA", "A → A"], ["AB", "A → B"], ["BA", "B → A"], ["BB", "B → B"]]} choose=${(pair) => select({ pair })} />`}
  </form>`;
}
