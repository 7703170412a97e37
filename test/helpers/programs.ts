/**
 * The programs that tests start as processes, bundled once a run with the packages they use: from a bundle
 * a start costs a fraction of the processor time that finding and compiling a thousand files on the way
 * costs, and the suite starts a hundred.
 */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build, type Plugin } from 'esbuild';
import { englishOnly, requireBanner } from '../../action/build/packages.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** A module's own address stays that of its source: it finds the files of this repository from there. */
const sourceAddress: Plugin = {
  name: 'source-address',
  setup({ onLoad }) {
    onLoad({ filter: /\.tsx?$/ }, ({ path }) => ({
      contents: readFileSync(path, 'utf8').replaceAll(
        'import.meta.url',
        JSON.stringify(pathToFileURL(path).href),
      ),
      loader: path.endsWith('x') ? 'tsx' : 'ts',
    }));
  },
};

/**
 * Bundles them into a folder of their own, `<name>.mjs` each. Where the sources do not go
 * together, `failure` says so to the tests that start one. Remove the folder afterwards.
 */
export async function buildPrograms(): Promise<{
  readonly folder: string;
  readonly failure: string | null;
  remove(): void;
}> {
  // below node_modules, from where packages are found and where nothing is checked or committed
  const cache = join(root, 'node_modules/.cache');
  mkdirSync(cache, { recursive: true });
  const folder = mkdtempSync(join(cache, 'countersign-programs-'));
  const processes = readdirSync(join(root, 'test/processes')).map((name) => [
    name.replace(/\.ts$/, ''),
    `test/processes/${name}`,
  ]);
  const failure = await build({
    absWorkingDir: root,
    entryPoints: { ...Object.fromEntries(processes), main: 'app/main.ts', cli: 'app/cli.ts' },
    outdir: folder,
    bundle: true,
    splitting: true,
    minifyWhitespace: true,
    legalComments: 'none',
    banner: { js: requireBanner },
    platform: 'node',
    format: 'esm',
    target: 'node20',
    outExtension: { '.js': '.mjs' },
    plugins: [sourceAddress, englishOnly],
    logLevel: 'silent',
  }).then(
    () => null,
    (error: Error) => error.message,
  );
  const remove = () => rmSync(folder, { recursive: true, force: true });
  // a run that is interrupted calls nobody
  process.once('exit', remove);
  return { folder, failure, remove };
}
