import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';

/** The tree that `uses: OWNER/countersign@REF` stands for: this one. */
export const TREE = fileURLToPath(new URL('../..', import.meta.url));

// facts/github.md §17: what the runner accepts for JavaScript actions.
const NODE = new Set(['node12', 'node16', 'node20', 'node24']);

/** This tree's action as its action.yml declares it. */
export interface ActionFile {
  readonly main: string;
  /** Names in lower case. */
  readonly inputs: readonly string[];
  readonly defaults: Readonly<Record<string, string>>;
}

/** Whether a `uses:` names this tree's action. */
export function isOurs(uses: string): boolean {
  return /^[^/\s]+\/countersign@\S+$/.test(uses);
}

/** Reads action.yml; throws when it is not a JavaScript action. */
export async function readActionFile(): Promise<ActionFile> {
  const file = parse(await readFile(new URL('action.yml', `file://${TREE}`), 'utf8')) as {
    inputs?: Record<string, { default?: unknown } | null>;
    runs?: { using?: unknown; main?: unknown };
  };
  const { using, main } = file.runs ?? {};
  if (!NODE.has(String(using)) || typeof main !== 'string')
    throw new Error(`action.yml: runs.using ${String(using)} is not a JavaScript action`);
  const defaults = Object.entries(file.inputs ?? {}).flatMap(([name, input]) => {
    const value = input?.default;
    return value === undefined || value === null ? [] : [[name, String(value)] as const];
  });
  const inputs = Object.keys(file.inputs ?? {}).map((name) => name.toLowerCase());
  return { main, inputs, defaults: Object.fromEntries(defaults) };
}

/** The environment of an action's inputs: INPUT_ + upper-cased name, spaces as `_` (facts/github.md §17). */
export function inputEnvironment(inputs: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(inputs).map(([name, value]) => [
      `INPUT_${name.replaceAll(' ', '_').toUpperCase()}`,
      value,
    ]),
  );
}
