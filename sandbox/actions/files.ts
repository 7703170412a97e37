import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

const NAMES = ['GITHUB_OUTPUT', 'GITHUB_STATE', 'GITHUB_ENV', 'GITHUB_PATH', 'GITHUB_STEP_SUMMARY'] as const;
// facts/github.md §17: over 1 MiB the upload fails with an annotation, and the step still passes.
const MAX_SUMMARY = 1024 * 1024;

/** The files through which a step talks to the runner. */
export interface CommandFiles {
  readonly env: Record<(typeof NAMES)[number], string>;
  /** What the step wrote; `summary` is null when it was too large. */
  collect(): Promise<{
    outputs: Record<string, string>;
    env: Record<string, string>;
    paths: string[];
    summary: string | null;
  }>;
}

/** Makes fresh files for one step. */
export async function commandFiles(directory: string, step: number): Promise<CommandFiles> {
  await mkdir(directory, { recursive: true });
  const pairs = NAMES.map((name) => [name, join(directory, `${name.toLowerCase()}_${step}`)] as const);
  for (const [, file] of pairs) await writeFile(file, '');
  const env = Object.fromEntries(pairs) as CommandFiles['env'];
  const read = (name: (typeof NAMES)[number]) => readFile(env[name], 'utf8');
  return {
    env,
    collect: async () => {
      const summary = await read('GITHUB_STEP_SUMMARY');
      return {
        outputs: parsePairs(await read('GITHUB_OUTPUT')),
        env: parsePairs(await read('GITHUB_ENV')),
        paths: (await read('GITHUB_PATH')).split('\n').filter(Boolean),
        summary: Buffer.byteLength(summary) > MAX_SUMMARY ? null : summary,
      };
    },
  };
}

/** Parses `name=value` lines and `name<<DELIMITER` blocks. */
export function parsePairs(text: string): Record<string, string> {
  const pairs: Record<string, string> = {};
  const lines = text.split(/\r?\n/);
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i] ?? '';
    const block = /^([^=]+?)<<(.+)$/.exec(line);
    if (block !== null) {
      const [, name = '', delimiter = ''] = block;
      const end = lines.indexOf(delimiter, i + 1);
      if (end < 0) throw new Error(`Invalid value. Matching delimiter not found '${delimiter}'`);
      pairs[name] = lines.slice(i + 1, end).join('\n');
      i = end;
    } else if (line !== '') {
      const at = line.indexOf('=');
      if (at < 0) throw new Error(`Invalid format '${line}'`);
      pairs[line.slice(0, at)] = line.slice(at + 1);
    }
  }
  return pairs;
}
