// What the model adds to tell positions apart, and how alike two positions are.
import { Canvas, html, shown } from "../html.js";
import { drawImage, image } from "../palette.js";
import { select } from "../selection.js";
import { moved, Readout, View } from "./frame.js";

function Picture({ values, rows, columns, width, height, most, row, column, choose, name }) {
  const draw = (context) => {
    drawImage(context, image(values, rows, columns, { most, signed: true }), 0, 0, width, height);
    context.strokeStyle = getComputedStyle(document.body).color;
    context.strokeRect((column * width) / columns + 0.5, (row * height) / rows + 0.5, Math.max(width / columns - 1, 2), Math.max(height / rows - 1, 2));
  };
  const at = (event) => {
    const box = event.currentTarget.getBoundingClientRect();
    choose(Math.min(rows - 1, Math.floor(((event.clientY - box.top) * rows) / height)), Math.min(columns - 1, Math.floor(((event.clientX - box.left) * columns) / width)));
  };
  const typed = (event) => {
    const place = moved(event, row, column, rows, columns);
    if (place === null) return;
    event.preventDefault();
    choose(...place);
  };
  return html`<div class="wide"><div class="cells picture" tabindex="0" role="application" aria-label=${name} onkeydown=${typed}>
    <${Canvas} width=${width} height=${height} draw=${draw} onclick=${at} onmousemove=${at} data-cells=${rows * columns} /></div></div>`;
}

function products(table, rows, width) {
  const found = new Float32Array(rows * rows);
  for (let one = 0; one < rows; one += 1) {
    for (let two = 0; two <= one; two += 1) {
      let sum = 0;
      for (let feature = 0; feature < width; feature += 1) sum += table[one * width + feature] * table[two * width + feature];
      found[one * rows + two] = sum;
      found[two * rows + one] = sum;
    }
  }
  return found;
}

function peak(values) {
  let most = 1e-9;
  for (const value of values) most = Math.max(most, Math.abs(value));
  return most;
}

function Table({ scene, number }) {
  const { name, shape: [rows, width] } = scene.doc.positions[number];
  const bytes = scene.store.bytes(scene.number, `positions/${number}`);
  if (bytes === null) return null;
  const table = new Float32Array(bytes.buffer, bytes.byteOffset, rows * width);
  const dots = products(table, rows, width);
  const row = Math.min(rows - 1, Math.max(0, Math.round(scene.chosen.query)));
  const feature = Math.min(width - 1, Math.max(0, Math.round(scene.chosen.feature)));
  const other = Math.min(rows - 1, Math.max(0, Math.round(scene.chosen.key)));
  const value = table[row * width + feature];
  const dot = dots[row * rows + other];
  return html`<h3>${name}</h3><div class="side">
    <div><p class="quiet">the table: positions down, features across</p>
      <${Picture} values=${table} rows=${rows} columns=${width} width=${560} height=${Math.max(rows * 5, 200)} most=${peak(table)} row=${row} column=${feature}
        choose=${(r, c) => select({ query: r, feature: c })} name="Position table" />
      <${Readout}>position ${row}, feature ${feature}: <output data-value=${value}>${shown(value)}</output><//></div>
    <div><p class="quiet">dot products of two positions</p>
      <${Picture} values=${dots} rows=${rows} columns=${rows} width=${Math.max(rows * 5, 320)} height=${Math.max(rows * 5, 320)} most=${peak(dots)} row=${row} column=${other}
        choose=${(r, c) => select({ query: r, key: c })} name="Dot products of positions" />
      <${Readout}>positions ${row} and ${other}: <output data-value=${dot}>${shown(dot)}</output><//></div>
  </div>`;
}

export function Positions({ scene }) {
  const { positions } = scene.doc;
  const ready = positions.every((_, number) => scene.store.bytes(scene.number, `positions/${number}`) !== null);
  return html`<${View} name="positions" ready=${ready} title="Positions"
    about="The vector that this model adds to a token's for its position. Near positions have larger dot products than far ones, so that attention can tell distances.">
    ${positions.map((_, number) => html`<${Table} scene=${scene} number=${number} />`)}
  <//>`;
}
