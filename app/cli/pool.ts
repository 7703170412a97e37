/** `countersign pool`: resident pools and their tokens (POOL-1, AUT-2). A token is printed once, alone on standard output. */
import { parseArgs } from 'node:util';
import { loadDataConfig } from '../config.ts';
import { residentName } from '../domain/policy/values.ts';
import { changePool, listPoolViews, type PoolChange, type PoolView } from '../flow/change-pool.ts';
import { createIds } from '../server/ids.ts';
import { openBeside } from '../server/read-only.ts';
import { type Entry, read, Usage } from './entry.ts';

/** The command `pool`. */
export const poolCommand: Entry = {
  usage: [
    'pool add NAME --installation ID[,ID…] [--repository ID…]',
    'pool list [--json]',
    'pool token NAME',
    'pool revoke NAME [--token ID]',
    'pool remove NAME',
  ],
  what: 'register a pool of long-lived runners, list what there is and lives, make and revoke the tokens its runners prove themselves with, or take it away',
  options: [
    ['--installation ID', 'installations whose repositories it may serve; several by commas'],
    ['--repository ID', 'only these repositories, by id; several by commas or by saying it again'],
    ['--token ID', 'the token to revoke, as pool list names it; by default all of the pool'],
    ['--json', 'the list as one JSON document'],
  ],
  run: pool,
};

const OPTIONS = {
  installation: { type: 'string', multiple: true },
  repository: { type: 'string', multiple: true },
  token: { type: 'string' },
  json: { type: 'boolean', default: false },
} as const;

async function pool(args: readonly string[]): Promise<number> {
  const { values, positionals } = read(() =>
    parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true }),
  );
  const [verb, name, ...rest] = positionals;
  if (rest.length > 0) throw new Usage(`one pool at a time: ${rest.join(' ')}`);
  if (verb === 'list' && name === undefined) return list(values.json);
  const change = changeOf(verb, values);
  if (name === undefined || !residentName.safeParse(name).success)
    throw new Usage('NAME is lower-case letters, digits and -, at most 40');
  const store = await openBeside(loadDataConfig(), { readOnly: false });
  try {
    const done = await changePool({ ...store, ids: createIds() }, name, change);
    if (done.secret !== null) {
      console.error(`token ${done.token} of ${name}, shown this once:`);
      console.log(done.secret);
    } else console.log(saidOf(name, change, done.revoked));
    return 0;
  } finally {
    await store.close();
  }
}

function changeOf(
  verb: string | undefined,
  values: { readonly installation?: string[]; readonly repository?: string[]; readonly token?: string },
): PoolChange {
  const ids = (given: readonly string[] | undefined, what: string) => {
    const all = (given ?? []).flatMap((one) => one.split(',')).map((one) => one.trim());
    if (all.some((one) => !/^[0-9]{1,19}$/.test(one))) throw new Usage(`${what} takes numeric ids`);
    return all;
  };
  switch (verb) {
    case 'add': {
      const installations = ids(values.installation, '--installation');
      if (installations.length === 0) throw new Usage('--installation is needed: whose tickets it serves');
      const repositories = values.repository === undefined ? null : ids(values.repository, '--repository');
      return { change: 'add', installations, repositories };
    }
    case 'token':
      return { change: 'token' };
    case 'revoke':
      return { change: 'revoke', token: values.token ?? null };
    case 'remove':
      return { change: 'remove' };
    default:
      throw new Usage('pool add, list, token, revoke or remove');
  }
}

function saidOf(name: string, change: PoolChange, revoked: readonly string[]): string {
  if (change.change === 'add')
    return `${name} is registered; name it under pools of a policy, and make a token: countersign pool token ${name}`;
  if (change.change === 'revoke') return `revoked: ${revoked.join(', ')}; their runners have ended`;
  return `${name} is removed, its tokens are revoked`;
}

async function list(json: boolean): Promise<number> {
  const store = await openBeside(loadDataConfig(), { readOnly: true });
  try {
    const views = await listPoolViews(store);
    if (json) console.log(JSON.stringify(views, null, 2));
    else for (const line of views.flatMap(linesOf)) console.log(line);
    if (!json && views.length === 0) console.log('no resident pool is registered');
    return 0;
  } finally {
    await store.close();
  }
}

function linesOf(view: PoolView): string[] {
  return [
    `${view.name}: ${view.runners} runner(s), ${view.leased} of ${view.capacity} tickets at once; serves ${view.serves.join(', ')}${view.containers === 0 ? '' : `, and verify commands on ${view.containers} of them`}`,
    ...view.scopes.map(
      ({ installation, repositories }) =>
        `  installation ${installation}: ${repositories === null ? 'all repositories' : repositories.join(', ')}`,
    ),
    `  tokens: ${view.tokens.join(', ') || 'none'}`,
  ];
}
