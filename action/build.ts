/**
 * Bundles the Action into action/dist (ACT-1): a first file of a few hundred bytes and the rest in
 * chunks that are loaded when needed. The same sources give the same bytes, so that CI can compare.
 */
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { type BuildOptions, build, type Plugin } from 'esbuild';
import { englishOnly, requireBanner } from './build/packages.ts';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
// another folder by argument: CI compares what it builds there with what is committed
const out = path.resolve(root, process.argv[2] ?? 'action/dist');

/** The first file finds the rest by this name, in the folder of the chunks. */
const startBeside: Plugin = {
  name: 'start-beside',
  setup({ onResolve }) {
    onResolve({ filter: /^\.\/start\.ts$/ }, () => ({ path: './chunks/start.js', external: true }));
  },
};

await rm(out, { recursive: true, force: true });
await mkdir(path.join(out, 'chunks'), { recursive: true });
const shared: BuildOptions = {
  absWorkingDir: root,
  bundle: true,
  platform: 'node',
  target: 'node20',
  minify: true,
  legalComments: 'none',
  logLevel: 'warning',
};
await build({
  ...shared,
  entryPoints: { index: 'action/main.ts' },
  outdir: out,
  format: 'cjs',
  plugins: [startBeside],
});
const result = await build({
  ...shared,
  entryPoints: { start: 'action/start.ts' },
  outdir: path.join(out, 'chunks'),
  entryNames: '[name]',
  chunkNames: '[name]-[hash]',
  splitting: true,
  format: 'esm',
  metafile: true,
  banner: { js: requireBanner },
  plugins: [englishOnly],
});
// the package around says `module`: the first file is not one, the chunks are
await writeFile(path.join(out, 'package.json'), '{ "type": "commonjs" }\n');
await writeFile(path.join(out, 'chunks/package.json'), '{ "type": "module" }\n');
await writeFile(path.join(out, 'LICENSES.txt'), await notices(Object.keys(result.metafile.inputs)));

/** The licence texts of every package whose code is in the bundle, by name. */
async function notices(inputs: readonly string[]): Promise<string> {
  const folders = new Set<string>();
  for (const input of inputs) {
    const match = /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(input);
    if (match?.[1] !== undefined) folders.add(match[1]);
  }
  const parts = await Promise.all(
    [...folders].sort().map(async (folder) => {
      const manifest: { name: string; version: string; license?: string } = JSON.parse(
        await readFile(path.join(root, folder, 'package.json'), 'utf8'),
      );
      const file = (await readdir(path.join(root, folder)))
        .filter((name) => /^(licen[cs]e|copying|notice)/i.test(name))
        .sort()[0];
      const text =
        file !== undefined && existsSync(path.join(root, folder, file))
          ? (await readFile(path.join(root, folder, file), 'utf8')).replaceAll('\r\n', '\n').trim()
          : `Licensed under ${manifest.license ?? 'unknown terms'}.`;
      return `${manifest.name} ${manifest.version} (${manifest.license ?? 'see text'})\n\n${text}\n`;
    }),
  );
  const rule = `\n${'-'.repeat(80)}\n\n`;
  return `The files in this folder hold code of these packages.\n${rule}${parts.join(rule)}`;
}
