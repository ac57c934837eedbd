// The numbers as a table, for those who do not look at pictures, and to copy.
import { Component, html, short, shown } from "./html.js";

const MOST_CELLS = 4000;

/** Unfolds into `content()`, which is made only then. */
export class Unfolded extends Component {
  render({ title, content }) {
    const toggled = (event) => this.setState({ open: event.currentTarget.open });
    return html`<details class="table" ontoggle=${toggled}>
      <summary>${title}</summary>
      ${this.state.open && html`<div class="wide" tabindex="0" role="region" aria-label=${title}>${content()}</div>`}
    </details>`;
  }
}

/** Every weight that is shown; of a long text the chosen row alone. */
export function WeightTable({ scene, values }) {
  const { rows, columns } = scene;
  const all = rows.length * columns.length <= MOST_CELLS;
  const title = all ? "The same as a table" : `The row of “${short(rows[scene.row].text)}” as a table`;
  const row = (part, place) => html`<tr class=${place === scene.row ? "chosen" : ""}>
    <th scope="row"><bdi>${short(part.text, 60)}</bdi></th>
    ${columns.map((_, column) => html`<td>${shown(values[place * columns.length + column])}</td>`)}
  </tr>`;
  const content = () => all
    ? html`<table class="numbers">
        <thead><tr><td></td>${columns.map((part) => html`<th scope="col"><bdi>${short(part.text, 60)}</bdi></th>`)}</tr></thead>
        <tbody>${rows.map(row)}</tbody>
      </table>`
    : html`<table class="numbers"><tbody>
        ${columns.map((part, column) => html`<tr>
          <th scope="row">${part.tokens[0]} <bdi>${short(part.text, 60)}</bdi></th>
          <td>${shown(values[scene.row * columns.length + column])}</td>
        </tr>`)}
      </tbody></table>`;
  return html`<${Unfolded} title=${title} content=${content} />`;
}
