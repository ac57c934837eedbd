// The page as one script and one style, written into the package. Each says which sources it was built from, so that a
// test can tell, without Node, whether they are the present ones (tests/unit/test_inspection_page.py).
import { createHash } from "node:crypto";
import { readFileSync, readdirSync } from "node:fs";
import { join, relative, sep } from "node:path";
import { defineConfig } from "vite";

const HERE = import.meta.dirname;
const OTHERS = ["package.json", "package-lock.json", "vite.config.js"];

/** SHA-256 over the names and bytes of all sources, by name. */
function digest() {
  const own = readdirSync(join(HERE, "src"), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(HERE, join(entry.parentPath, entry.name)).split(sep).join("/"));
  const hash = createHash("sha256");
  for (const name of [...own, ...OTHERS].sort()) hash.update(`${name}\n`).update(readFileSync(join(HERE, name)));
  return hash.digest("hex");
}

/** Puts the hash of the sources in front of what was built. */
const signed = {
  name: "signed",
  enforce: "post",
  generateBundle(_, bundle) {
    const note = `/* regard; built by web/ from sources ${digest()} */\n`;
    for (const file of Object.values(bundle)) {
      if (file.type === "chunk") file.code = note + file.code;
      else file.source = note + file.source;
    }
  },
};

export default defineConfig({
  root: HERE,
  logLevel: "warn",
  plugins: [signed],
  build: {
    outDir: "../regard/inspect/built",
    emptyOutDir: false,
    target: "es2022",
    lib: { entry: "src/main.js", formats: ["iife"], name: "regardPage", fileName: () => "page.js", cssFileName: "page" },
  },
});
