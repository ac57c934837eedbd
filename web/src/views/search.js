// The search as a tree: every hypothesis that the beam kept or dropped, with its scores.
import { linkHorizontal } from "d3-shape";
import { face, html, quoted, short, shown } from "../html.js";
import { select } from "../selection.js";
import { Unfolded } from "../table.js";
import { Readout, View } from "./frame.js";

const STEP = 124;
const LINE = 33;
const NODE = 88; // pixels of a node
const CURVE = linkHorizontal();
const FATES = { open: "went on", dropped: "fell out of the beam", finished: "ended", cut: "cut at the length limit" };

/**
 * Where each node stands: a column for each step. A node's best child goes on in its line, so that a hypothesis is a
 * straight line; the others begin one below, in the first line that is free as long as they last. The path that won is on top.
 */
export function layout(nodes, path) {
  const children = nodes.map(() => []);
  nodes.forEach((node, place) => { if (node.parent >= 0) children[node.parent].push(place); });
  const order = (one, two) => path.has(two) - path.has(one) || children[two].length - children[one].length || nodes[two].total - nodes[one].total;
  children.forEach((own) => own.sort(order));
  const lines = []; // of each line, from which step on it is free
  const place = nodes.map(() => null);
  const begin = (first, above) => {
    let last = first;
    while (children[last].length) [last] = children[last];
    let line = above + 1;
    while (lines[line]?.some(([from, to]) => from <= nodes[last].step && nodes[first].step <= to)) line += 1;
    (lines[line] ??= []).push([nodes[first].step, nodes[last].step]);
    for (let at = first; at !== undefined; [at] = children[at]) place[at] = { x: nodes[at].step * STEP, y: line * LINE };
    return line;
  };
  const begun = [];
  nodes.forEach((node, at) => { if (node.parent < 0) begun.push([at, begin(at, -1)]); });
  for (const [first, line] of begun) {
    for (let at = first; at !== undefined; [at] = children[at]) {
      for (const other of children[at].slice(1)) begun.push([other, begin(other, line)]);
    }
  }
  return { places: place, height: (lines.length - 1) * LINE, width: Math.max(...place.map(({ x }) => x)) };
}

/** The hypothesis that was returned: of those that ended, the one whose tokens are the output's. */
function winner(nodes, output) {
  const tokensOf = (place) => {
    const found = [];
    for (let at = place; nodes[at].parent >= 0; at = nodes[at].parent) found.unshift(nodes[at].token);
    return found;
  };
  const ended = nodes.map((_, place) => place).filter((place) => nodes[place].fate === "finished" || nodes[place].fate === "cut");
  const same = (place) => {
    const tokens = tokensOf(place);
    return tokens.length === output.length && tokens.every((token, at) => token === output[at]);
  };
  const path = new Set();
  for (let at = ended.find(same) ?? -1; at >= 0; at = nodes[at].parent) path.add(at);
  return path;
}

export function Search({ scene }) {
  const { tree } = scene.doc;
  const nodes = tree.groups ? tree.groups.flatMap((group) => group.nodes) : tree.nodes;
  const first = tree.groups ? tree.groups[0].nodes : nodes;
  const output = (scene.doc.sides.find((side) => side.name === "output") ?? { tokens: [] }).tokens;
  const path = winner(first, output);
  const { places, width, height } = scene.store.fact(`${scene.doc.id}/tree`, () => layout(first, path));
  const chosen = Math.max(0, Math.min(first.length - 1, Math.round(scene.chosen.node)));
  const node = first[chosen];
  const x = (place) => 8 + places[place].x;
  const y = (place) => 20 + places[place].y;
  const typed = (event) => {
    const children = first.map((_, place) => place).filter((place) => first[place].parent === chosen);
    const beside = first.map((_, place) => place).filter((place) => first[place].step === node.step).sort((a, b) => places[a].y - places[b].y);
    const at = beside.indexOf(chosen);
    const to = { ArrowLeft: node.parent, ArrowRight: children.sort((a, b) => places[a].y - places[b].y)[0], ArrowUp: beside[at - 1], ArrowDown: beside[at + 1] }[event.key];
    if (to === undefined || to < 0) return;
    event.preventDefault();
    select({ node: to });
    const { currentTarget } = event;
    window.requestAnimationFrame(() => currentTarget.querySelector(".node.chosen")?.scrollIntoView({ block: "nearest", inline: "nearest" }));
  };
  const table = () => html`<table class="numbers"><thead><tr><th scope="col">step</th><th scope="col">token</th><th scope="col">after</th><th scope="col">probability</th><th scope="col">log-probability so far</th><th scope="col">fate</th></tr></thead>
    <tbody>${first.map((each, place) => html`<tr class=${path.has(place) ? "chosen" : ""}><td>${each.step}</td><th scope="row"><bdi>${short(face(each.token), 40)}</bdi></th>
      <td><bdi>${each.parent < 0 ? "" : short(face(first[each.parent].token), 40)}</bdi></td><td>${shown(Math.exp(each.log_prob))}</td><td>${shown(each.total)}</td><td>${FATES[each.fate]}</td></tr>`)}</tbody></table>`;
  return html`<${View} name="search" ready=${true} title="Search"
    about="The beam as a tree, from left to right. Bold is the path that won; a dashed end fell out of the beam. Under each token stands its probability.">
    <${Readout}>${quoted(face(node.token), 60)} at step ${node.step}: probability <output data-value=${Math.exp(node.log_prob)}>${shown(Math.exp(node.log_prob))}</output>, log-probability so far <output data-value=${node.total}>${shown(node.total)}</output>; ${FATES[node.fate]}<//>
    <div class="wide" tabindex="0" role="application" aria-label="Search tree. Arrow keys go from token to token." onkeydown=${typed}>
      <svg class="tree" width=${width + NODE + 16} height=${height + 40} viewBox=${`0 0 ${width + NODE + 16} ${height + 40}`}>
        <g aria-hidden="true">${first.map((each, place) => each.parent >= 0 && html`<path class=${`${each.fate}${path.has(place) ? " won" : ""}`}
          d=${CURVE({ source: [x(each.parent) + NODE, y(each.parent)], target: [x(place), y(place)] })} />`)}</g>
        ${first.map((each, place) => html`<g class=${`node ${each.fate}${path.has(place) ? " won" : ""}${place === chosen ? " chosen" : ""}`}
          transform=${`translate(${x(place)} ${y(place)})`} onclick=${() => select({ node: place })} data-node=${place}>
          <rect y="-14" width=${NODE} height="28" rx="5" /><title>${short(each.token, 200)}</title>
          <text x="7" y="-1">${short(face(each.token), 11)}</text><text class="small" x="7" y="10">${shown(Math.exp(each.log_prob), 3)}</text></g>`)}
      </svg>
    </div>
    ${tree.groups && html`<p class="quiet">The first of ${tree.groups.length} diverse groups.</p>`}
    <${Unfolded} title=${`All ${first.length} nodes as a table`} content=${table} />
  <//>`;
}
