#!/bin/sh
# Bundles viewer.js with the parts of d3 that it uses into viewer.min.js, and their licenses into
# LICENSES, at the versions of package-lock.json. Needs Node.js and npm.
set -eu
cd "$(dirname "$0")"
npm ci --no-audit --no-fund --ignore-scripts
npx --no-install esbuild viewer.js --bundle --minify --format=iife --target=chrome100,firefox113,safari16.4 --charset=ascii \
	--legal-comments=none --metafile=node_modules/meta.json --outfile=node_modules/viewer.min.js
node - <<'NODE'
const fs = require("fs");
const used = Object.keys(JSON.parse(fs.readFileSync("node_modules/meta.json")).inputs)
  .map(f => /^node_modules\/([^/]+)\//.exec(f)?.[1]).filter(Boolean);
const texts = new Map();
for (const p of [...new Set(used)].sort()) {
  const text = fs.readFileSync(`node_modules/${p}/LICENSE`, "utf8").trim();
  const version = JSON.parse(fs.readFileSync(`node_modules/${p}/package.json`)).version;
  texts.set(text, [...(texts.get(text) ?? []), `${p} ${version}`]);
}
let out = "";
for (const [text, list] of texts) out += `${list.join(", ")}:\n\n${text}\n\n\n`;
out = out.trimEnd() + "\n";
fs.writeFileSync("LICENSES", out);
const hash = require("crypto").createHash("sha256");
for (const f of ["viewer.js", "package-lock.json"]) hash.update(fs.readFileSync(f));
// The licenses go with every page, and nothing in the script may end the element that it stands in.
const js = fs.readFileSync("node_modules/viewer.min.js", "utf8");
fs.writeFileSync("viewer.min.js", `/*\nviewer.js of gputrace: Copyright The puregpu Authors, Apache License 2.0, source ${hash.digest("hex")}. It contains\n\n${out}*/\n` + js.replaceAll("</script", "<\\/script"));
NODE
ls -l viewer.min.js
