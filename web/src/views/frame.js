// What all views have in common: the element that says which view it is and whether it is drawn.
import { html } from "../html.js";

export function View({ name, ready, title, about, children }) {
  return html`<section class="view" data-view=${name} data-ready=${ready ? "true" : "false"} aria-label=${title}>
    <h2>${title}</h2>
    <p class="about">${about}</p>
    ${ready ? children : html`<p role="status">Loading …</p>`}
  </section>`;
}

/** What is chosen, in numbers; read aloud when it changes. */
export function Readout({ children }) {
  return html`<p class="readout" role="status" aria-live="polite">${children}</p>`;
}

export const ARROWS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

/** The place that a key leads to on a grid of `rows` × `columns`; null for any other key. */
export function moved(event, row, column, rows, columns, mirrored = false) {
  const keys = { ...ARROWS, PageUp: [-10, 0], PageDown: [10, 0], Home: [0, -columns], End: [0, columns] };
  const step = keys[event.key];
  if (step === undefined || event.ctrlKey || event.metaKey || event.altKey) return null;
  const across = mirrored ? -step[1] : step[1];
  return [Math.max(0, Math.min(rows - 1, row + step[0])), Math.max(0, Math.min(columns - 1, column + across))];
}
