// The views by name, in the order of their buttons; `fits` says whether there is something to show.
import { Compare } from "./compare.js";
import { Embedding } from "./embedding.js";
import { Heads } from "./heads.js";
import { Heatmap } from "./heatmap.js";
import { Model } from "./model.js";
import { Neuron } from "./neuron.js";
import { Positions } from "./positions.js";
import { Search } from "./search.js";
import { Steps } from "./steps.js";

const attends = (scene) => scene.attention !== undefined;

export const VIEWS = {
  heatmap: { title: "Heat map", view: Heatmap, fits: attends, controls: ["block", "layer", "head", "fold"] },
  heads: { title: "Heads", view: Heads, fits: attends, controls: ["block", "layer", "fold"] },
  model: { title: "Model", view: Model, fits: attends, controls: ["block"] },
  neuron: { title: "Neurons", view: Neuron, fits: attends, controls: ["block", "layer", "head"] },
  steps: { title: "Steps", view: Steps, fits: (scene) => scene.doc.steps.length > 0, controls: ["block", "layer", "head"] },
  search: { title: "Search", view: Search, fits: (scene) => Boolean(scene.doc.tree), controls: [] },
  compare: { title: "Compare", view: Compare, fits: (scene) => attends(scene) && scene.store.documents.length > 1, controls: ["block", "fold"] },
  embedding: { title: "Embedding", view: Embedding, fits: (scene) => scene.store.words.length > 0, controls: [] },
  positions: { title: "Positions", view: Positions, fits: (scene) => scene.doc.positions.length > 0, controls: [] },
};
