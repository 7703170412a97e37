/** `countersign operator`: tokens that throw the kill switch by the API (CTL-5). A token is printed once, alone on standard output. */
import { parseArgs } from 'node:util';
import { loadDataConfig } from '../config.ts';
import { residentName } from '../domain/policy/values.ts';
import { changeOperator, listOperators, type OperatorChange } from '../flow/change-operator.ts';
import { createIds } from '../server/ids.ts';
import { openBeside } from '../server/read-only.ts';
import { type Entry, read, Usage } from './entry.ts';
import { printLines } from './print.ts';
import { installationOf } from './settings.ts';

/** The command `operator`. */
export const operatorCommand: Entry = {
  usage: ['operator add NAME --installation ID|all', 'operator list [--json]', 'operator revoke NAME'],
  what: 'make a token that throws the kill switch by the API for an installation or for the whole app, list whose there are, or revoke one',
  options: [
    ['--installation ID', 'the installation that it speaks for, by its number, or all: the whole app'],
    ['--json', 'the list as one JSON document'],
  ],
  run: operator,
};

const options = {
  installation: { type: 'string' },
  json: { type: 'boolean', default: false },
} as const;

async function operator(args: readonly string[]): Promise<number> {
  const { values, positionals } = read(() => parseArgs({ args: [...args], options, allowPositionals: true }));
  const [verb, name, ...rest] = positionals;
  if (rest.length > 0) throw new Usage(`one name at a time: ${rest.join(' ')}`);
  if (verb === 'list' && name === undefined) return list(values.json);
  const change = changeOf(verb, values.installation);
  if (name === undefined || !residentName.safeParse(name).success)
    throw new Usage('NAME is lower-case letters, digits and -, at most 40');
  const store = await openBeside(loadDataConfig(), { readOnly: false });
  try {
    const secret = await changeOperator({ ...store, ids: createIds() }, name, change);
    if (secret === null) printLines([`the token of ${name} is revoked`]);
    else {
      console.error(`token of ${name}, shown this once:`);
      console.log(secret);
    }
    return 0;
  } finally {
    await store.close();
  }
}

function changeOf(verb: string | undefined, installation: string | undefined): OperatorChange {
  if (verb === 'add') return { change: 'add', installation: installationOf(installation) };
  if (verb === 'revoke') return { change: 'revoke' };
  throw new Usage('operator add, list or revoke');
}

async function list(json: boolean): Promise<number> {
  const store = await openBeside(loadDataConfig(), { readOnly: true });
  try {
    const all = await listOperators(store);
    if (json) console.log(JSON.stringify(all, null, 2));
    else
      printLines(
        all.length === 0
          ? ['nobody has an operator token']
          : all.map((one) => `${one.name}: ${one.installation}, since ${one.since.toISOString()}`),
      );
    return 0;
  } finally {
    await store.close();
  }
}
