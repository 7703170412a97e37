/** `countersign settings`: what the operator says above the policies, and the kill switch (POL-2, CTL-5). */
import { userInfo } from 'node:os';
import { parseArgs } from 'node:util';
import { loadDataConfig } from '../config.ts';
import { type HeldKey, holdPolicy } from '../domain/setting/hold.ts';
import { readSettingKey, readSettingValue } from '../domain/setting/key.ts';
import { Refusal } from '../errors.ts';
import { changeSetting } from '../flow/change-setting.ts';
import { readSettings, type SettingLine } from '../flow/read-settings.ts';
import { openBeside, openReadOnly } from '../server/read-only.ts';
import { type Entry, quiet, read, Usage } from './entry.ts';
import { printLines } from './print.ts';

/** The command `settings`. */
export const settingsCommand: Entry = {
  usage: [
    'settings list [--installation ID|all] [--json]',
    'settings get KEY [--installation ID|all] [--json]',
    'settings set KEY VALUE --installation ID|all --reason TEXT [--by NAME] [--json]',
    'settings unset KEY --installation ID|all --reason TEXT [--by NAME] [--json]',
  ],
  what: 'show or change what holds for an installation above the policies of its repositories: provider slots, the ceiling of a month, defaults and bounds of policy keys, and the kill switch; docs/settings.md lists the keys',
  options: [
    ['KEY', 'kill, slots, slots.PROVIDER, ceiling.tokens, ceiling.usd, policy.KEY'],
    ['VALUE', 'a word or a number as the policy has it, or JSON for lists'],
    [
      '--installation ID',
      'the installation by its number, or all: the whole app; list and get take all by default',
    ],
    ['--reason TEXT', 'why; kept with the signed row, and shown on the gates that a kill switch holds'],
    ['--by NAME', 'who changes it, by default the user that runs this'],
    ['--json', 'the answer as one JSON document'],
  ],
  run: settings,
};

const options = {
  installation: { type: 'string' },
  reason: { type: 'string' },
  by: { type: 'string' },
  json: { type: 'boolean', default: false },
} as const;

async function settings(args: readonly string[]): Promise<number> {
  const { values, positionals } = read(() => parseArgs({ args: [...args], options, allowPositionals: true }));
  const [action, key, value, ...rest] = positionals;
  const count = { list: 1, get: 2, set: 3, unset: 2 }[action ?? ''];
  if (count === undefined || positionals.length !== count || rest.length > 0)
    throw new Usage('settings list, settings get KEY, settings set KEY VALUE or settings unset KEY');
  const installation = installationOf(
    values.installation ?? (count === 1 || action === 'get' ? 'all' : undefined),
  );
  if (action === 'list') return list(installation, values.json, null);
  const named = readSettingKey(key ?? '');
  if (action === 'get') return list(installation, values.json, named);
  const reason = values.reason?.trim() ?? '';
  if (reason === '' || reason.length > 500) throw new Usage('--reason is needed: up to 500 characters');
  const by = (values.by ?? userInfo().username).trim();
  if (!/^[^\p{Cc}]{1,60}$/u.test(by)) throw new Usage('--by is a name of up to 60 characters');
  const given = action === 'unset' ? undefined : readSettingValue(named, value ?? '');
  return change({ installation, key: named, value: given, by, reason, via: 'command_line' }, values.json);
}

/** The number of an installation; null: the whole app. */
export function installationOf(text: string | undefined): string | null {
  if (text === 'all') return null;
  if (text === undefined || !/^[1-9][0-9]{0,18}$/.test(text))
    throw new Usage('--installation is needed: the number of an installation, or all');
  return text;
}

/** The keys that the settings of an installation hold of a policy file, asked of the database that is configured. */
export async function heldBy(installation: string | null, file: Uint8Array): Promise<readonly HeldKey[]> {
  const lines = await withStore(true, (store) => readSettings(store, installation));
  return holdPolicy(file, new Map(lines.map((line) => [line.key, line.value]))).held;
}

async function list(installation: string | null, json: boolean, key: string | null): Promise<number> {
  const all = await withStore(true, (store) => readSettings(store, installation));
  const lines = all.filter((line) => key === null || line.key === key);
  // what is said of this installation goes before what is said of all, but for the kill switch
  const counts = key === 'kill' ? lines[0] : lines.at(-1);
  if (key !== null && counts === undefined)
    throw new Refusal(
      'not_found',
      `${key} is not set for ${installation ?? 'all'}`,
      'settings list shows what is',
    );
  const shown = key === null ? lines : counts === undefined ? [] : [counts];
  if (json) console.log(JSON.stringify(key === null ? shown : shown[0], null, 2));
  else printLines(shown.length === 0 ? ['nothing is set'] : shown.map(lineOf));
  return 0;
}

function lineOf({ installation, key, value, by, reason, at }: SettingLine): string {
  const when = at.toISOString().slice(0, 16).replace('T', ' ');
  return `${installation}  ${key} = ${JSON.stringify(value)}  (${by}, ${when} UTC: ${reason ?? 'the reason was erased'})`;
}

async function change(input: Parameters<typeof changeSetting>[1], json: boolean): Promise<number> {
  const outcome = await withStore(false, (store) => changeSetting({ ...store, log: quiet() }, input));
  const of = input.installation ?? 'all';
  const said = input.value === undefined ? 'is unset' : `= ${JSON.stringify(input.value)}`;
  if (json) console.log(JSON.stringify({ installation: of, key: input.key, ...outcome }, null, 2));
  else if (!outcome.changed) printLines([`${of}  ${input.key} ${said} already: nothing was changed`]);
  else
    printLines([
      `${of}  ${input.key} ${said}, recorded in ${outcome.installations} chain(s)`,
      ...(input.key === 'kill' && input.value !== undefined
        ? [`${outcome.revoked} lease(s) were revoked`]
        : []),
    ]);
  return 0;
}

type Opened = Awaited<ReturnType<typeof openBeside>>;

async function withStore<T>(readOnly: boolean, work: (store: Opened) => Promise<T>): Promise<T> {
  const config = loadDataConfig();
  const store = await (readOnly ? openReadOnly(config) : openBeside(config, { readOnly }));
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}
