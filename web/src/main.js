// The page: what was read and written, what is chosen, and the view of it.
import "./page.css";
import { Component, html, render, shown } from "./html.js";
import { Controls } from "./controls.js";
import { Store, embedded, fetched } from "./data.js";
import { watchColours } from "./palette.js";
import { Scene } from "./scene.js";
import { select, selection, watchSelection } from "./selection.js";
import { Ask } from "./ask.js";
import { VIEWS } from "./views/registry.js";

function Sentence({ doc }) {
  const leftward = doc.sides.some((side) => side.name === "output" && side.direction === "rtl");
  const chance = doc.score === null || doc.score === undefined ? "" : `log-probability ${shown(doc.score)}`;
  return html`<div class="sentence">
    <p dir="auto" class="read">${doc.text}</p>
    ${doc.also.map(([name, text]) => html`<p class="read"><span class="quiet">${name}</span> <bdi>${text}</bdi></p>`)}
    ${doc.output && html`<p dir="auto" class="written"><span aria-hidden="true">${leftward ? "←" : "→"} </span>${doc.output}</p>`}
    <p class="quiet">${[doc.given ? "translation as given" : "", chance].filter(Boolean).join(" · ")}</p>
  </div>`;
}

function Views({ scene, name }) {
  return html`<nav aria-label="Views">${Object.entries(VIEWS).map(([key, { title, fits }]) => fits(scene) && html`<button
    type="button" aria-current=${key === name ? "page" : undefined} onclick=${() => select({ view: key })}>${title}</button>`)}</nav>`;
}

class App extends Component {
  constructor(props) {
    super(props);
    this.redraw = () => this.setState({ drawn: {} });
    this.store = new Store(props.data, props.read, this.redraw);
    watchSelection(this.redraw);
    watchColours(this.redraw);
    window.addEventListener("resize", this.redraw);
  }
  render({ serves, title, pairs }) {
    const { store } = this;
    const scene = store.documents.length ? new Scene(store) : null;
    const wanted = selection().view;
    const name = scene && (VIEWS[wanted]?.fits(scene) ? wanted : Object.keys(VIEWS).find((key) => VIEWS[key].fits(scene)));
    const view = name && VIEWS[name];
    return html`<header><h1>regard <span>${title}</span></h1></header>
      <main>
        ${serves && html`<${Ask} pairs=${pairs} found=${(data) => { store.describe(data); select({ doc: 0, other: 1, query: -1, key: 0, node: 0, word: "" }); }} />`}
        ${store.failed && html`<p class="failed" role="alert">${store.failed}</p>`}
        ${scene && html`<${Sentence} doc=${scene.doc} />
          <${Views} scene=${scene} name=${name} />
          ${view ? html`<${Controls} scene=${scene} wanted=${view.controls} /><${view.view} scene=${scene} />`
            : html`<p>This model has no attention, and there is nothing else to show.</p>`}`}
      </main>`;
  }
}

function start() {
  const carried = embedded();
  const root = document.getElementById("page");
  const title = root.getAttribute("data-title") ?? "";
  render(html`<${App} data=${carried?.data ?? { documents: [], words: [] }} read=${carried?.read ?? fetched} serves=${carried === null} title=${title} pairs=${root.hasAttribute("data-pairs")} />`, root);
}

start();
