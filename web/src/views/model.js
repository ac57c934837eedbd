// Every layer and head as a small map.
import { Canvas, clamp, html } from "../html.js";
import { drawImage, image } from "../palette.js";
import { select } from "../selection.js";
import { View } from "./frame.js";

const LEAST = 56; // pixels of a map
const MOST = 148;

function Thumbnail({ scene, attention, head, number, bytes, size }) {
  const [rows, columns] = attention.overview;
  const cells = bytes.subarray(number * rows * columns, (number + 1) * rows * columns);
  const chosen = attention.layer === scene.attention.layer && head === scene.head;
  const scale = size / Math.max(rows, columns);
  const width = Math.max(8, Math.round(columns * scale));
  const height = Math.max(8, Math.round(rows * scale));
  const mirrored = scene.keySide.direction === "rtl";
  const draw = (context) => drawImage(
    context, image(cells, rows, columns, { most: 255, mirrored }), 0, 0, width, height,
  );
  return html`<button type="button" class="thumbnail" aria-current=${chosen ? "true" : undefined}
    aria-label=${`layer ${attention.layer}, head ${head}`} title=${`layer ${attention.layer}, head ${head}`}
    onclick=${() => select({ view: "heatmap", layer: attention.layer, head })}>
    <${Canvas} width=${width} height=${height} draw=${draw} />
  </button>`;
}

export function Model({ scene }) {
  const maps = scene.layers.map((attention) => scene.store.bytes(scene.number, `${attention.block}/overview`));
  const ready = maps.every((each) => each !== null);
  const heads = [...new Set(scene.layers.flatMap((attention) => attention.shown))].sort((a, b) => a - b);
  const size = clamp(Math.floor((Math.min(window.innerWidth, 1240) - 140) / heads.length) - 18, LEAST, MOST);
  return html`<${View} name="model" ready=${ready} title="Model view"
    about=${`${scene.nameOf()}: every layer (down) and head (across) at a glance. Choose one to enlarge it.`}>
    <div class="wide"><table class="model"><thead><tr><td></td>
      ${heads.map((head) => html`<th scope="col">head ${head}</th>`)}
    </tr></thead><tbody>${scene.layers.map((attention, row) => html`<tr>
      <th scope="row">layer ${attention.layer}</th>
      ${heads.map((head) => html`<td>${attention.shown.includes(head) && ready && html`<${Thumbnail} scene=${scene}
        attention=${attention} head=${head} number=${attention.shown.indexOf(head)} size=${size} bytes=${maps[row]} />`}</td>`)}
    </tr>`)}</tbody></table></div>
  <//>`;
}
