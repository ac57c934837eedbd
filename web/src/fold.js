// From tokens to what is shown: symbols hidden, tokens of a word joined, one part of a sentence pair.
import { face, range } from "./html.js";

/** Rows or columns of a side: each with its text and the tokens that it stands for. */
export function shownParts(side, { words, symbols, part }) {
  const parts = [];
  side.tokens.forEach((text, token) => {
    const word = side.word_of[token];
    if (!symbols && word < 0) return;
    if (part !== undefined && side.parts && side.parts[token] !== part) return;
    const last = parts[parts.length - 1];
    if (words && word >= 0 && last && last.word === word) last.tokens.push(token);
    else parts.push({ text: words && word >= 0 ? side.words[word] : face(text), word, tokens: [token] });
  });
  return parts;
}

/**
 * Weights of what is shown. Of the tokens of a word, what is looked at is summed and what looks is averaged, so that a
 * row still sums to 1.
 */
export function folded(weights, keys, rows, columns) {
  const all = (parts) => parts.every((part, place) => part.tokens.length === 1 && part.tokens[0] === place);
  const whole = columns.length === keys && rows.length * keys === weights.length;
  if (whole && all(rows) && all(columns)) return weights; // every token by itself: the long texts
  const values = new Float32Array(rows.length * columns.length);
  rows.forEach((row, r) => {
    columns.forEach((column, c) => {
      let sum = 0;
      for (const query of row.tokens) for (const key of column.tokens) sum += weights[query * keys + key];
      values[r * columns.length + c] = sum / row.tokens.length;
    });
  });
  return values;
}

/** The place of the row or column that holds a token; the nearest where it is hidden. */
export function placeOf(parts, token) {
  const found = parts.findIndex((part) => part.tokens.includes(token));
  if (found >= 0) return found;
  const nearest = (part) => Math.abs(part.tokens[0] - token);
  return range(parts.length).sort((one, two) => nearest(parts[one]) - nearest(parts[two]))[0] ?? 0;
}

/** What is chosen of a sentence pair: the part of the query and that of the key. */
export function pairParts(pair) {
  return pair ? { from: pair.charCodeAt(0) - 65, to: pair.charCodeAt(1) - 65 } : { from: undefined, to: undefined };
}
