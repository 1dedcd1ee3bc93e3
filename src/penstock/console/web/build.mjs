// Builds the console's front end into dist/. The same sources and lock file give the same bytes, which a test compares.
import { build } from "esbuild";
import { readFileSync, rmSync, writeFileSync, mkdirSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const home = dirname(fileURLToPath(import.meta.url));
const out = process.argv[2] ?? join(home, "dist");

rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });

const made = await build({
  absWorkingDir: home,
  entryPoints: { app: "src/main.tsx", boot: "src/boot.ts" },
  outdir: out,
  bundle: true,
  splitting: true,
  format: "esm",
  target: ["es2022"],
  minify: true,
  metafile: true,
  charset: "utf8",
  legalComments: "none",
  jsx: "automatic",
  jsxImportSource: "preact",
  entryNames: "[name]-[hash]",
  chunkNames: "[name]-[hash]",
  logLevel: "warning",
});

const outputs = Object.entries(made.metafile.outputs);
const nameOf = (entry, ending) =>
  basename(
    outputs.find(([path, about]) => path.endsWith(ending) && (about.entryPoint === entry || ending === ".css"))[0],
  );

const page = readFileSync(join(home, "src/index.html"), "utf8")
  .replace("{app}", nameOf("src/main.tsx", ".js"))
  .replace("{boot}", nameOf("src/boot.ts", ".js"))
  .replace("{style}", nameOf("src/main.tsx", ".css"));
writeFileSync(join(out, "index.html"), page);
writeFileSync(join(out, "LICENSES.txt"), licences());

// What others wrote and is inside the built files has to carry its licence with it.
function licences() {
  return ["preact", "@preact/signals", "@preact/signals-core", "uplot"]
    .map((name) => {
      const about = JSON.parse(readFileSync(join(home, "node_modules", name, "package.json"), "utf8"));
      return `${name} ${about.version}\n\n${readFileSync(join(home, "node_modules", name, "LICENSE"), "utf8").trim()}\n`;
    })
    .join("\n" + "-".repeat(80) + "\n\n");
}
