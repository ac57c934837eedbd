// The search as a tree: every hypothesis that the beam kept or dropped, with its scores.
import { face, html, short, shown } from "../html.js";
import { select } from "../selection.js";
import { Unfolded } from "../table.js";
import { Readout, View } from "./frame.js";

const STEP = 118;
const LINE = 30;
const FATES = { open: "went on", dropped: "fell out of the beam", finished: "ended", cut: "cut at the length limit" };

/** Where each node stands: a column for each step, in it the nodes in the order of their parents, the best first. */
export function layout(nodes, path) {
  const places = nodes.map((node) => ({ x: node.step, y: 0 }));
  const steps = [];
  nodes.forEach((node, place) => { (steps[node.step] ??= []).push(place); });
  const above = (place) => (nodes[place].parent < 0 ? 0 : places[nodes[place].parent].y);
  for (const step of steps) {
    step.sort((one, two) => path.has(two) - path.has(one) || above(one) - above(two) || nodes[two].total - nodes[one].total);
    step.forEach((place, line) => { places[place].y = line; });
  }
  return { places, lines: Math.max(...steps.map((step) => step.length)) };
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
  const { places, lines } = layout(first, path);
  const steps = Math.max(...first.map((node) => node.step));
  const chosen = Math.max(0, Math.min(first.length - 1, Math.round(scene.chosen.node)));
  const node = first[chosen];
  const x = (place) => 12 + places[place].x * STEP;
  const y = (place) => 18 + places[place].y * LINE;
  const typed = (event) => {
    const children = first.map((_, place) => place).filter((place) => first[place].parent === chosen);
    const beside = first.map((_, place) => place).filter((place) => first[place].step === node.step).sort((a, b) => places[a].y - places[b].y);
    const at = beside.indexOf(chosen);
    const to = { ArrowLeft: node.parent, ArrowRight: children.sort((a, b) => places[a].y - places[b].y)[0], ArrowUp: beside[at - 1], ArrowDown: beside[at + 1] }[event.key];
    if (to === undefined || to < 0) return;
    event.preventDefault();
    select({ node: to });
  };
  const table = () => html`<table class="numbers"><thead><tr><th scope="col">step</th><th scope="col">token</th><th scope="col">after</th><th scope="col">probability</th><th scope="col">log-probability so far</th><th scope="col">fate</th></tr></thead>
    <tbody>${first.map((each, place) => html`<tr class=${path.has(place) ? "chosen" : ""}><td>${each.step}</td><th scope="row"><bdi>${short(face(each.token), 40)}</bdi></th>
      <td><bdi>${each.parent < 0 ? "" : short(face(first[each.parent].token), 40)}</bdi></td><td>${shown(Math.exp(each.log_prob))}</td><td>${shown(each.total)}</td><td>${FATES[each.fate]}</td></tr>`)}</tbody></table>`;
  return html`<${View} name="search" ready=${true} title="Search"
    about="The beam as a tree, from left to right. Bold is the path that won; a dashed end fell out of the beam. Under each token stands its probability.">
    <${Readout}>“${short(face(node.token), 60)}” at step ${node.step}: probability <output data-value=${Math.exp(node.log_prob)}>${shown(Math.exp(node.log_prob))}</output>, log-probability so far <output data-value=${node.total}>${shown(node.total)}</output>; ${FATES[node.fate]}<//>
    <div class="wide" tabindex="0" role="application" aria-label="Search tree. Arrow keys go from token to token." onkeydown=${typed}>
      <svg class="tree" width=${(steps + 1) * STEP + 40} height=${lines * LINE + 24}>
        <g aria-hidden="true">${first.map((each, place) => each.parent >= 0 && html`<path class=${`${each.fate}${path.has(place) ? " won" : ""}`}
          d=${`M${x(each.parent) + 62} ${y(each.parent)} C${x(each.parent) + 92} ${y(each.parent)} ${x(place) - 34} ${y(place)} ${x(place) - 4} ${y(place)}`} />`)}</g>
        ${first.map((each, place) => html`<g class=${`node ${each.fate}${path.has(place) ? " won" : ""}${place === chosen ? " chosen" : ""}`}
          transform=${`translate(${x(place)} ${y(place)})`} onclick=${() => select({ node: place })} data-node=${place}>
          <rect x="-4" y="-10" width="68" height="21" rx="4" /><title>${short(each.token, 200)}</title>
          <text y="0">${short(face(each.token), 9)}</text><text class="small" y="9">${shown(Math.exp(each.log_prob), 3)}</text></g>`)}
      </svg>
    </div>
    ${tree.groups && html`<p class="quiet">The first of ${tree.groups.length} diverse groups.</p>`}
    <${Unfolded} title=${`All ${first.length} nodes as a table`} content=${table} />
  <//>`;
}
