// What changes between two sentences: words that correspond, and by how much a head looks elsewhere.
// regard/inspect/comparing.py says the same in Python, and a test compares the two.
import { folded, shownParts } from "./fold.js";

const MOST_CELLS = 4_000_000; // beyond, no word is looked for, and the first is taken
const SURE = 0.5; // half of a head's attention: what goes elsewhere as surely as this is an answer
const NEARLY = 0.1; // by so much two heads, one for each sentence, must be surer than one for both
const LEAST = 0.01;

/** Pairs [place in one, place in other] of equal texts in order: the longest common subsequence. */
export function matched(one, other) {
  const table = Array.from({ length: one.length + 1 }, () => new Uint16Array(other.length + 1));
  for (let i = one.length - 1; i >= 0; i -= 1) {
    for (let j = other.length - 1; j >= 0; j -= 1) {
      table[i][j] = one[i] === other[j] ? table[i + 1][j + 1] + 1 : Math.max(table[i + 1][j], table[i][j + 1]);
    }
  }
  const pairs = [];
  for (let i = 0, j = 0; i < one.length && j < other.length;) {
    if (one[i] === other[j]) { pairs.push([i, j]); i += 1; j += 1; }
    else if (table[i + 1][j] >= table[i][j + 1]) i += 1;
    else j += 1;
  }
  return pairs;
}

/** The same, and what stands between two of them side by side, where there is as much of it: "tired" and "wide". */
export function counterparts(one, other) {
  const pairs = [];
  let [i, j] = [0, 0];
  for (const [nextOne, nextOther] of [...matched(one, other), [one.length, other.length]]) {
    if (nextOne - i === nextOther - j) for (let gap = 0; gap < nextOne - i; gap += 1) pairs.push([i + gap, j + gap]);
    if (nextOne < one.length) pairs.push([nextOne, nextOther]);
    [i, j] = [nextOne + 1, nextOther + 1];
  }
  return pairs;
}

/** Half the sum of the differences, 0 … 1: how much of the attention goes elsewhere. What has no counterpart counts whole. */
export function distance(one, other, pairs) {
  let common = 0;
  for (const [i, j] of pairs) common += Math.min(one[i], other[j]);
  return Math.max(0, 1 - common);
}

/** Whether a part is a word's, and not a symbol or punctuation alone. */
export function isSpoken({ word, text }) {
  return word >= 0 && /[\p{L}\p{N}]/u.test(text);
}

/** The places of words, in each, that have an equal one in the other. */
export function commonWords(one, other) {
  const texts = (parts) => new Set(parts.filter(isSpoken).map((part) => part.text));
  const [first, second] = [texts(one), texts(other)];
  const places = (parts) => parts.flatMap(({ text }, place) => (first.has(text) && second.has(text) ? [place] : []));
  return [places(one), places(other)];
}

export function bestOf(values) {
  let best = 0;
  values.forEach((value, place) => { if (value > values[best]) best = place; });
  return best;
}

/** The words of one attention in two sentences, and which correspond. */
export class Twins {
  constructor(scene, number) {
    const { store, chosen } = scene;
    const doc = store.documents[number];
    const fold = { words: chosen.words, symbols: chosen.symbols };
    this.scene = scene;
    this.number = number;
    this.rows = shownParts(scene.querySide, fold);
    this.columns = shownParts(scene.keySide, fold);
    this.layers = scene.layers.flatMap((attention) => {
      const twin = doc.attentions.find((each) => each.block === attention.block);
      return twin ? [{ attention, twin, heads: attention.shown.filter((head) => twin.shown.includes(head)) }] : [];
    });
    const twin = this.layers[0]?.twin;
    this.otherRows = twin ? shownParts(doc.sides[twin.query_side], fold) : [];
    this.otherColumns = twin ? shownParts(doc.sides[twin.key_side], fold) : [];
    const texts = (parts) => parts.map((part) => part.text);
    this.rowPairs = counterparts(texts(this.rows), texts(this.otherRows));
    this.columnPairs = counterparts(texts(this.columns), texts(this.otherColumns));
    this.common = commonWords(this.columns, this.otherColumns);
    this.key = [scene.doc.id, doc.id, fold.words, fold.symbols].join("/");
  }

  /** The row of the other sentence that corresponds to one of this. */
  otherRow(row) {
    const pair = this.rowPairs.find(([place]) => place === row);
    return pair ? pair[1] : Math.min(row, this.otherRows.length - 1);
  }

  /** A head's two rows for a word, with how much they differ; null while they are on their way. */
  look({ attention, twin }, head, row) {
    const { store, number } = this.scene;
    return store.fact(`${this.key}/${attention.block}/${head}/${row}`, () => {
      const first = store.head(number, attention, head);
      const second = store.head(this.number, twin, head);
      if (first === null || second === null) return null;
      return this.compared(attention, twin, head, row, first.weights, second.weights);
    });
  }

  compared(attention, twin, head, row, first, second) {
    const one = folded(first, attention.keys, [this.rows[row]], this.columns);
    const two = folded(second, twin.keys, [this.otherRows[this.otherRow(row)]], this.otherColumns);
    return { layer: attention.layer, head, one, two, best: [bestOf(one), bestOf(two)], change: distance(one, two, this.columnPairs) };
  }

  /** Every head for a word; null while something is on its way. */
  heads(row) {
    const found = this.layers.flatMap((layer) => layer.heads.map((head) => this.look(layer, head, row)));
    return found.includes(null) ? null : found;
  }

  /** The same, what changes most first. */
  ranking(row) {
    return this.heads(row)?.sort((a, b) => b.change - a.change) ?? null;
  }

  /** Of one head, at which word it looks more in each sentence than in the other, and how much more. */
  gained({ layer, head, one, two }) {
    const gains = [Array.from(one), Array.from(two)];
    for (const [i, j] of this.columnPairs) { gains[0][i] -= two[j]; gains[1][j] -= one[i]; }
    return [one, two].map((weights, side) => {
      const at = this.common[side].reduce((best, place) => (gains[side][place] > gains[side][best] ? place : best));
      return { layer, head, at, weight: weights[at], gain: gains[side][at] };
    });
  }

  /** Where a word looks in each sentence, by one head or, where that is surer, by two; null while heads are on their way. */
  turn(row) {
    const nothing = { row, looks: [], sureness: 0, decides: false };
    const heads = this.heads(row);
    if (heads === null) return null;
    if (!heads.length || !this.common.every((places) => places.length)) return nothing;
    const byHead = heads.map((each) => this.gained(each));
    const surer = (a, b) => (sureness(b) > sureness(a) ? b : a);
    const alone = byHead.reduce(surer);
    const two = [0, 1].map((side) => byHead.map((looks) => looks[side]).reduce((a, b) => (b.gain > a.gain ? b : a)));
    const looks = sureness(alone) >= sureness(two) - NEARLY ? alone : two;
    if (sureness(looks) <= LEAST) return nothing;
    const differs = this.rows[row].text !== this.otherRows[this.otherRow(row)].text;
    return { row, looks, sureness: sureness(looks), decides: differs && sureness(looks) >= SURE };
  }

  /** The word that turns most surely from one word to another, first of those in which the sentences part; null while it is
   * on its way. */
  mostTurned() {
    const heads = this.layers.reduce((sum, layer) => sum + layer.heads.length, 0);
    const nothing = { row: 0, looks: [], sureness: 0, decides: false };
    if (this.rows.length * this.columns.length * heads > MOST_CELLS) return nothing;
    const words = this.rowPairs.filter(([i, j]) => isSpoken(this.rows[i]) && isSpoken(this.otherRows[j]));
    const found = words.map(([row]) => this.turn(row));
    return found.includes(null) ? null : found.reduce(moreTelling, nothing);
  }
}

/** Of two turns, the one that decides, or else that is surer. */
function moreTelling(a, b) {
  if (a.decides !== b.decides) return b.decides ? b : a;
  return b.sureness > a.sureness ? b : a;
}

function sureness(looks) {
  return Math.min(...looks.map((look) => look.gain));
}

/** Of all attentions that look at the text, the block that turns a word most surely; null while they are on their way. */
export function surestBlock(scenes, number) {
  const found = scenes.map((scene) => [scene.block, new Twins(scene, number).mostTurned()]);
  if (found.some(([, most]) => most === null)) return null;
  return found.reduce((best, each) => (moreTelling(best[1], each[1]) === each[1] ? each : best))[0];
}
