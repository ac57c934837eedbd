// What is chosen, made whole: the sentence, the attention, its sides, and what of them is shown.
import { clamp } from "./html.js";
import { folded, pairParts, placeOf, shownParts } from "./fold.js";
import { select, selection } from "./selection.js";

const NAMES = {
  "encoder.self": "Encoder self-attention",
  "decoder.self": "Decoder self-attention",
  "decoder.cross": "Encoder–decoder attention",
  "decoder.copy": "Copying",
  "decoder.pointer": "Pointing",
};

/** A block's name for people. `source` is what it looks at, where the model reads several: "Attention over image". */
function nameOf(block, source) {
  const [side, kind] = block.split(".");
  if (source && kind.startsWith("cross")) return `Attention over ${source}`;
  if (source && side.startsWith("encoder")) return `${NAMES["encoder.self"]}, ${source}`;
  return NAMES[block] ?? `${side} ${kind}`;
}

/** Of a sentence, the attentions by block without their layers. */
export function groupsOf(doc) {
  const groups = new Map();
  for (const attention of doc.attentions) {
    if (!groups.has(attention.group)) groups.set(attention.group, []);
    groups.get(attention.group).push(attention);
  }
  return groups;
}

/** Which block is shown first: attention over the source, where there is one; to compare, what both sentences share. */
function usual(groups, view) {
  const wanted = view === "compare" ? "encoder.self" : "decoder.cross";
  return groups.has(wanted) ? wanted : [...groups.keys()][0];
}

export class Scene {
  constructor(store, block = selection().block) {
    const chosen = selection();
    this.store = store;
    this.number = clamp(Math.round(chosen.doc), 0, store.documents.length - 1);
    this.doc = store.documents[this.number];
    this.groups = groupsOf(this.doc);
    this.block = this.groups.has(block) ? block : usual(this.groups, chosen.view);
    this.layers = this.groups.get(this.block) ?? [];
    this.isMean = chosen.layer < 0 && this.layers.length > 1;
    const found = this.layers.find((attention) => attention.layer === chosen.layer);
    this.attention = found ?? this.layers[0];
    this.chosen = chosen;
    if (this.attention === undefined) return;
    const { attention } = this;
    this.heads = attention.shown;
    this.head = this.isMean || !this.heads.includes(chosen.head) ? -1 : chosen.head;
    this.query = clamp(Math.round(chosen.query), 0, attention.queries - 1);
    this.key = clamp(Math.round(chosen.key), 0, attention.keys - 1);
    this.querySide = this.doc.sides[attention.query_side];
    this.keySide = this.doc.sides[attention.key_side];
    this.hasPair = Boolean(this.querySide.parts && this.keySide.parts);
    const { from, to } = pairParts(this.hasPair ? chosen.pair : "");
    this.rows = shownParts(this.querySide, { ...chosen, part: from });
    this.columns = shownParts(this.keySide, { ...chosen, part: to });
    this.row = placeOf(this.rows, this.query);
    this.column = placeOf(this.columns, this.key);
  }

  /** Itself, and the same for every other block that looks at the text. */
  get ofText() {
    const others = [...this.groups].filter(([block, [first]]) => block !== this.block && first.key_side === 0);
    return [this, ...others.map(([block]) => new Scene(this.store, block))];
  }

  /** The name of a block for people. */
  nameOf(block = this.block) {
    const [first] = this.groups.get(block);
    return nameOf(block, this.several && this.doc.sides[first.key_side].name);
  }

  /** Whether the model read more than the text. */
  get several() {
    return this.doc.also.length > 0;
  }

  /** A head to look into where the mean is chosen, which has no queries and keys of its own. */
  get oneHead() {
    return this.head < 0 ? this.heads[0] : this.head;
  }

  /** Weights by token: of the chosen head, or the mean. Null while they are on their way. */
  weights(head = this.head) {
    if (head >= 0) return this.store.head(this.number, this.attention, head)?.weights ?? null;
    return this.store.mean(this.number, this.isMean ? this.layers : [this.attention]);
  }

  /** Weights as they are shown. */
  shownWeights(head = this.head) {
    const { words, symbols, pair } = this.chosen;
    const layer = this.isMean ? "all" : this.attention.layer;
    return this.store.memo([this.doc.id, this.block, layer, head, words, symbols, this.hasPair && pair].join("/"), () => {
      const weights = this.weights(head);
      return weights === null ? null : folded(weights, this.attention.keys, this.rows, this.columns);
    });
  }

  get headName() {
    if (this.isMean) return "all layers, mean of all heads";
    const layer = `layer ${this.attention.layer}`;
    return this.head < 0 ? `${layer}, mean of ${this.heads.length} heads` : `${layer}, head ${this.head}`;
  }

  chooseRow(row) {
    const part = this.rows[clamp(row, 0, this.rows.length - 1)];
    if (part) select({ query: part.tokens[0] });
  }

  chooseCell(row, column) {
    const one = this.rows[clamp(row, 0, this.rows.length - 1)];
    const two = this.columns[clamp(column, 0, this.columns.length - 1)];
    if (one && two) select({ query: one.tokens[0], key: two.tokens[0] });
  }

  /** [ and ] go through the heads, { and } through the layers, in every view that has the focus. */
  turn(key) {
    const heads = [-1, ...this.heads];
    const layers = this.layers.map((attention) => attention.layer);
    const next = (list, now, by) => list[(list.indexOf(now) + by + list.length) % list.length];
    if (key === "[" || key === "]") select({ head: next(heads, this.head, key === "]" ? 1 : -1) });
    else if (key === "{" || key === "}") select({ layer: next(layers, this.attention.layer, key === "}" ? 1 : -1) });
    else return false;
    return true;
  }
}
