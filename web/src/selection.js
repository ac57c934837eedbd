// The one selection that all views share. It is in the address, so that a view can be linked and survives a reload.

const DEFAULTS = {
  view: "heatmap", // which view is shown
  doc: 0, // which sentence
  other: 1, // the one beside it, in the comparison
  block: "", // which attention, without its layer: encoder.self, decoder.cross …
  layer: 0, // −1: the mean of all
  head: -1, // −1: the mean of all
  heads: "", // of the head view: "0.2.3"; empty: all
  query: -1, // the chosen token that looks; −1: none is chosen yet
  key: 0, // the chosen token that is looked at
  feature: 0, // of the neuron view
  follow: 0, // of the head view: only the chosen token's lines
  words: 0, // tokens of a word are one
  symbols: 1, // symbols such as </s> are shown
  pair: "", // of a sentence pair: AA, AB, BA, BB
  least: 0.1, // of the head view: weights below it have no line
  node: 0, // of the search view
  word: "", // of the embedding view
};

let current = { ...DEFAULTS };
let listener = () => {};

export function selection() {
  return current;
}

/** From `#view=neuron&layer=2`; what is missing or of another kind has its default. */
export function parse(address) {
  const found = { ...DEFAULTS };
  for (const [name, text] of new URLSearchParams(address.replace(/^#/, ""))) {
    if (!(name in DEFAULTS)) continue;
    if (typeof DEFAULTS[name] === "number") {
      if (Number.isFinite(Number(text)) && text.trim()) found[name] = Number(text);
    } else found[name] = text;
  }
  return found;
}

/** The address of a selection: what differs from the defaults. */
export function formatted(chosen) {
  const parts = new URLSearchParams();
  for (const [name, value] of Object.entries(chosen)) {
    if (value !== DEFAULTS[name]) parts.set(name, value);
  }
  return `#${parts}`;
}

export function select(patch) {
  current = { ...current, ...patch };
  try {
    window.history.replaceState(null, "", formatted(current));
  } catch {
    // in a notebook's frame the address cannot be changed
  }
  listener();
}

export function watchSelection(act) {
  listener = act;
  current = parse(window.location.hash);
  window.addEventListener("hashchange", () => {
    current = parse(window.location.hash);
    act();
  });
}
