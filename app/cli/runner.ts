/** `countersign runner`: a long-lived runner of a resident pool (POOL-1), with the Action's own work. */
import { parseArgs } from 'node:util';
import { residentName } from '../domain/policy/values.ts';
import { type Entry, read, Usage } from './entry.ts';

/** The command `runner`. */
export const runnerCommand: Entry = {
  usage: [
    'runner --pool NAME [--parallel N] [--server URL] [--token-file FILE] [--providers FILE] [--commands LIST] [--images LIST] [--containers N] [--network none|open] [--memory MB] [--processes N]',
  ],
  what: 'work tickets and verify commands of a resident pool until SIGTERM; the server and the token come from COUNTERSIGN_URL and COUNTERSIGN_POOL_TOKEN',
  options: [
    ['--pool NAME', 'the pool, as pool add registered it'],
    ['--parallel N', 'tickets at once, 1 to 64; 4 by default'],
    ['--server URL', 'the server, instead of COUNTERSIGN_URL'],
    [
      '--token-file FILE',
      'a file with the pool token, read anew for each login, instead of COUNTERSIGN_POOL_TOKEN',
    ],
    [
      '--providers FILE',
      'where models are asked and which variables hold their keys, see docs/operations.md',
    ],
    [
      '--commands LIST',
      'programs that command reviewers may start here, by commas; any: all; by default none',
    ],
    [
      '--images LIST',
      'images that verify commands may run in here, by commas; any: all that are here; by default none, and no verify command runs',
    ],
    ['--containers N', 'verify commands at once, of what --parallel allows; 1 by default'],
    ['--network WORD', 'open: a verify command whose policy says so too gets a network; none by default'],
    ['--memory MB', 'memory of each container, 2048 by default'],
    ['--processes N', 'processes of each container, 512 by default'],
  ],
  exits: [
    [0, 'told to stop, and everything was given back'],
    [1, 'refused, or not ended in time'],
    [3, 'a wrong call'],
  ],
  run: runner,
};

async function runner(args: readonly string[]): Promise<number> {
  const options = {
    pool: { type: 'string' },
    parallel: { type: 'string' },
    server: { type: 'string' },
    'token-file': { type: 'string' },
    providers: { type: 'string' },
    commands: { type: 'string' },
    images: { type: 'string' },
    containers: { type: 'string' },
    network: { type: 'string' },
    memory: { type: 'string' },
    processes: { type: 'string' },
  } as const;
  const { values } = read(() => parseArgs({ args: [...args], options }));
  const { pool, 'token-file': tokenFile, ...rest } = values;
  if (pool === undefined || !residentName.safeParse(pool).success)
    throw new Usage('--pool is needed: a name of lower-case letters, digits and -');
  // a second to load, and no other command needs it
  const { runResident } = await import('../../action/resident/resident.ts');
  return runResident(process, { ...rest, pool, tokenFile });
}
