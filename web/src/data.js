// Where the numbers come from: blocks in the page itself, or the server. Each is decoded, or fetched, on first use.
// A head's block: weights (T×K), queries (T×H), keys (K×H), little-endian floats, one behind the other.

const KEPT = 128 * 2 ** 20; // bytes of blocks that are held decoded
const MADE = 24; // matrices that are held as they are shown
const FACTS = 4000; // small things that are held: a row, a ranking

export class Store {
  /** `data` describes what was inspected; `read(doc, name)` gives the bytes of a block, or a promise of them. */
  constructor(data, read, changed) {
    this.describe(data);
    this.read = read;
    this.changed = changed;
    this.blocks = new Map();
    this.held = 0;
    this.made = new Map();
    this.facts = new Map();
    this.sums = new Map();
    this.failed = "";
  }

  describe({ documents, words }) {
    this.documents = documents;
    this.words = words;
  }

  /** What `make` gives, made once as long as it is among the latest; null is made again. */
  memo(key, make, table = this.made, most = MADE) {
    if (table.has(key)) return table.get(key);
    const found = make();
    if (found === null) return null;
    table.set(key, found);
    if (table.size > most) table.delete(table.keys().next().value);
    return found;
  }

  /** The same for what is small, so that a block can be let go once something was made of it. */
  fact(key, make) {
    return this.memo(key, make, this.facts, FACTS);
  }

  /** The bytes of a block, or null while they are on their way. */
  bytes(doc, name) {
    const key = `${this.documents[doc].id}/${name}`;
    const held = this.blocks.get(key);
    if (held !== undefined) {
      this.blocks.delete(key); // what is used last is kept longest
      this.blocks.set(key, held);
      return held;
    }
    const found = this.read(this.documents[doc], name);
    if (found instanceof Promise) {
      this.blocks.set(key, null);
      found.then(
        (bytes) => { this.keep(key, bytes); this.changed(); },
        (error) => { this.blocks.delete(key); this.failed = String(error.message || error); this.changed(); },
      );
      return null;
    }
    return this.keep(key, found);
  }

  keep(key, bytes) {
    this.blocks.set(key, bytes);
    this.held += bytes.length;
    for (const [old, held] of this.blocks) {
      if (this.held <= KEPT) break;
      if (old === key || held === null) continue;
      this.blocks.delete(old);
      this.held -= held.length;
    }
    return bytes;
  }

  /** One head of one attention: { weights, q, k } as arrays; null while it is on its way. */
  head(doc, attention, head) {
    const bytes = this.bytes(doc, `${attention.block}/${head}`);
    if (bytes === null) return null;
    const { queries, keys, width } = attention;
    const cells = queries * keys;
    const all = new Float32Array(bytes.buffer, bytes.byteOffset, cells + (queries + keys) * width);
    return {
      weights: all.subarray(0, cells),
      q: all.subarray(cells, cells + queries * width),
      k: all.subarray(cells + queries * width),
    };
  }

  /** Whether a query may look at a key; everywhere, where there is no mask. Null while it is on its way. */
  mask(doc, attention, head) {
    if (!attention.mask) return () => true;
    const bytes = this.bytes(doc, `${attention.block}/mask`);
    if (bytes === null) return null;
    const first = attention.mask === "heads" ? head * attention.queries * attention.keys : 0;
    return (query, key) => {
      const cell = first + query * attention.keys + key;
      return ((bytes[cell >> 3] >> (7 - (cell & 7))) & 1) === 1;
    };
  }

  /** The mean of some heads: of a layer's, or of all layers'. Null while something is on its way. */
  mean(doc, attentions) {
    const { queries, keys } = attentions[0];
    const name = `${this.documents[doc].id}/${attentions.map((each) => each.block)}`;
    const begun = () => ({ sum: new Float64Array(queries * keys), added: new Set() });
    const { sum, added } = this.memo(name, begun, this.sums, 2); // heads are added as they come, and may then be let go
    let waiting = false;
    for (const attention of attentions) {
      for (const head of attention.shown) {
        const own = `${attention.block}/${head}`;
        if (added.has(own)) continue;
        const found = this.head(doc, attention, head);
        if (found === null) { waiting = true; continue; }
        added.add(own);
        for (let cell = 0; cell < sum.length; cell += 1) sum[cell] += found.weights[cell];
      }
    }
    if (waiting) return null;
    return Float32Array.from(sum, (value) => value / added.size);
  }
}

/** Bytes of base64 text. */
export function decoded(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text); // of newer browsers, and faster
  const binary = window.atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let place = 0; place < binary.length; place += 1) bytes[place] = binary.charCodeAt(place);
  return bytes;
}

/** What the page carries: a description as JSON, and a script element of base64 for each block. */
export function embedded() {
  const element = document.getElementById("inspection");
  if (element === null) return null;
  const data = JSON.parse(element.textContent);
  const read = (doc, name) => {
    const block = document.getElementById(`${doc.id}/${name}`);
    if (block === null) throw new Error(`the page has no block ${name}`);
    return decoded(block.textContent);
  };
  return { data, read };
}

/** From the server: one request for each block, as bytes. */
export async function fetched(doc, name) {
  const answer = await window.fetch(`api/inspections/${doc.id}/${name}`);
  if (!answer.ok) throw new Error(`the server no longer has this sentence; inspect it again (${answer.status})`);
  return new Uint8Array(await answer.arrayBuffer());
}
