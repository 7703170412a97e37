/** What a path is (BLK-6), by its name alone: never by what the head or the file says. */
import type * as z from 'zod';
import type { kindSchema } from '../ledger/row-fields.ts';

/** What a path or a block mostly is. */
export type Kind = z.infer<typeof kindSchema>;

const DOC_EXTENSIONS = /\.(?:md|markdown|rst|adoc|asciidoc)$/;
/** Names that are prose whatever they end in; `requirements.txt` and `CMakeLists.txt` are not, so `.txt` alone is no sign. */
const DOC_NAMES =
  /^(?:readme|licen[cs]e|copying|notice|authors|contributors|contributing|changelog|changes|history|security|code_of_conduct)(?:\.txt)?$/;
const DOC_FOLDER_EXTENSIONS = /\.(?:txt|png|jpe?g|gif|webp)$/;
const TEST_FOLDERS = new Set([
  'test',
  'tests',
  '__tests__',
  'spec',
  'specs',
  'testdata',
  '__fixtures__',
  '__snapshots__',
]);
const TEST_NAMES = /(?:^test_.*|[._-](?:test|tests|spec|specs))\.[a-z0-9]+$/;
const CONFIG_EXTENSIONS = /\.(?:jsonc?|json5|ya?ml|toml|ini|cfg|conf|properties|env|lock|editorconfig)$/;

/** The kind of one path. A link or an executable is never docs: what it is called does not make it prose. */
export function kindOf(text: string, mode: string | null): Kind {
  const lower = text.toLowerCase();
  const segments = lower.split('/');
  const name = segments.at(-1) ?? '';
  const plain = mode === null || mode === '100644';
  if (plain && (DOC_EXTENSIONS.test(name) || DOC_NAMES.test(name))) return 'docs';
  if (plain && DOC_FOLDER_EXTENSIONS.test(name) && (segments[0] === 'docs' || segments[0] === 'doc'))
    return 'docs';
  if (TEST_NAMES.test(name) || segments.slice(0, -1).some((folder) => TEST_FOLDERS.has(folder)))
    return 'tests';
  if (CONFIG_EXTENSIONS.test(name) || /^\.[^.]+$/.test(name)) return 'config';
  return 'code';
}

/** The kind of a block from the kinds of what it changes; one that changes nothing is `mixed`. */
export function kindOfBlock(kinds: Iterable<Kind>): Kind {
  const distinct = new Set(kinds);
  const [only] = distinct;
  return distinct.size === 1 && only !== undefined ? only : 'mixed';
}

/** Lock files that package managers write. */
const LOCKFILES = new Set([
  'package-lock.json',
  'npm-shrinkwrap.json',
  'yarn.lock',
  'pnpm-lock.yaml',
  'bun.lock',
  'bun.lockb',
  'deno.lock',
  'cargo.lock',
  'go.sum',
  'go.work.sum',
  'poetry.lock',
  'pdm.lock',
  'uv.lock',
  'pipfile.lock',
  'composer.lock',
  'gemfile.lock',
  'mix.lock',
  'flake.lock',
  'pubspec.lock',
  'package.resolved',
  'podfile.lock',
  'packages.lock.json',
  'gradle.lockfile',
  '.terraform.lock.hcl',
  'chart.lock',
]);

/** Whether a path is a lock file by its well-known name. */
export function isLockfile(text: string): boolean {
  return LOCKFILES.has(text.slice(text.lastIndexOf('/') + 1).toLowerCase());
}
