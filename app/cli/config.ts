/** `countersign config`: a policy file checked as the server reads it, and the schema it is read by (POL-1, POL-3). */
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { type PolicyCheck, policyCheck } from '../domain/policy/check.ts';
import { policySchemaJson } from '../domain/policy/schema.ts';
import { heldWords } from '../domain/setting/hold.ts';
import { type Entry, read, Usage } from './entry.ts';
import { heldBy, installationOf } from './settings.ts';

/** The command `config`. */
export const configCommand: Entry = {
  usage: ['config check FILE [--installation ID|all] [--json]', 'config schema'],
  what: 'say whether a policy file is valid, where it is not, and what of it a person may want to know; or print the JSON Schema of the policy, for editors',
  options: [
    ['FILE', 'the policy; - reads standard input'],
    [
      '--installation ID',
      'say also which keys the settings of that installation, or of the whole app (all), hold; needs the database',
    ],
    ['--json', 'the same as one JSON object: file, valid, errors, notes, defaults'],
  ],
  exits: [
    [0, 'valid, with or without notes'],
    [1, 'not valid, or the file cannot be read'],
    [3, 'a wrong call'],
  ],
  run: config,
};

async function config(args: readonly string[]): Promise<number> {
  const options = { json: { type: 'boolean', default: false }, installation: { type: 'string' } } as const;
  const { values, positionals } = read(() => parseArgs({ args: [...args], options, allowPositionals: true }));
  const [action, file, ...rest] = positionals;
  if (action === 'schema' && file === undefined && !values.json) {
    console.log(JSON.stringify(policySchemaJson(), null, 2));
    return 0;
  }
  if (action !== 'check' || file === undefined || rest.length > 0)
    throw new Usage('config check FILE or config schema');
  const name = file === '-' ? 'standard input' : file;
  const bytes = readFileSync(file === '-' ? 0 : file);
  const own = policyCheck(bytes);
  const held =
    own.valid && values.installation !== undefined
      ? await heldBy(installationOf(values.installation), bytes)
      : [];
  const found = {
    ...own,
    notes: [...own.notes, ...held.map((one) => ({ line: 1, path: one.key, message: heldWords(one) }))],
    defaults: own.defaults.filter(({ key }) => !held.some((one) => one.key === key)),
  };
  if (values.json) console.log(JSON.stringify({ file: name, ...found }, null, 2));
  else for (const line of checkLines(name, found)) console.log(line);
  return found.valid ? 0 : 1;
}

/** A checked policy as lines that editors and CI find their way by: `file:line: …`. */
export function checkLines(name: string, { valid, errors, notes, defaults }: PolicyCheck): string[] {
  const faults = errors.map(
    (error) =>
      `${name}:${error.line}: ${error.path === '' ? '' : `${error.path}: `}${error.message}; accepted: ${error.accepted}`,
  );
  if (!valid) return [...faults, `${name}: not valid, ${errors.length} fault(s)`];
  return [
    `${name}: valid`,
    ...notes.map((note) => `${name}:${note.line}: note: ${note.message}`),
    ...(defaults.length === 0 ? [] : ['defaults in force:']),
    ...defaults.map(({ key, value }) => `  ${key}: ${value}`),
  ];
}
