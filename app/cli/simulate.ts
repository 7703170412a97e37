/** `countersign simulate`: the pure gate over a pull request, or over recorded runs under a proposed policy (GAT-1, OPS-9). */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { loadConfig, loadDataConfig } from '../config.ts';
import { policyCheck } from '../domain/policy/check.ts';
import { type Policy, parsePolicy } from '../domain/policy.ts';
import { countRuns, exitOf, runsText } from '../domain/simulate/runs-text.ts';
import { simulateRuns } from '../flow/simulate-runs.ts';
import { openReadOnly } from '../server/read-only.ts';
import { checkLines } from './config.ts';
import { type Entry, read, Usage } from './entry.ts';
import { printLines } from './print.ts';

/** The command `simulate`. */
export const simulateCommand: Entry = {
  usage: [
    'simulate OWNER/REPO#N [--policy FILE] [--json]',
    'simulate --runs --policy FILE [--since DATE | --last N] [--json]',
  ],
  what: 'say what would become of a pull request, or which recorded verdicts another policy would change; by the same gate and the verified rows, and nothing is written',
  options: [
    [
      '--policy FILE',
      "the policy to decide by, - for standard input; by default, for a pull request, its base's",
    ],
    [
      '--runs',
      'recorded runs: each verdict is had again from its rows, then the last one decided under the policy',
    ],
    ['--since DATE', 'runs opened since, such as 2026-11-01 or 2026-11-01T08:00:00Z'],
    ['--last N', 'the newest N runs, 1 to 10000; 100 when neither is given'],
    ['--json', 'the same as one JSON object'],
  ],
  exits: [
    [0, 'nothing would change, or there is nothing to compare with'],
    [
      1,
      'a fault: a policy that is not valid, rows that do not verify, a recorded verdict that cannot be had again',
    ],
    [2, 'a wrong call'],
    [3, 'something would change'],
  ],
  run: simulate,
};

/** 3 says that something would change, so a wrong call is 2 here. */
const WRONG = 2;
const DEFAULT_RUNS = 100;
const MOST_RUNS = 10_000;

async function simulate(args: readonly string[]): Promise<number> {
  const options = {
    policy: { type: 'string' },
    runs: { type: 'boolean', default: false },
    since: { type: 'string' },
    last: { type: 'string' },
    json: { type: 'boolean', default: false },
  } as const;
  const { values, positionals } = read(
    () => parseArgs({ args: [...args], options, allowPositionals: true }),
    WRONG,
  );
  if (values.runs) {
    if (positionals.length > 0) throw new Usage('--runs takes no pull request', WRONG);
    if (values.policy === undefined)
      throw new Usage('--runs needs --policy: the policy to hold against them', WRONG);
    if (values.since !== undefined && values.last !== undefined)
      throw new Usage('--since or --last, not both', WRONG);
    const given = readPolicy(values.policy);
    if (given === null) return 1;
    const most =
      values.last === undefined
        ? values.since === undefined
          ? DEFAULT_RUNS
          : MOST_RUNS
        : numberOf(values.last);
    return runs({ ...given, since: dateOf(values.since), most, json: values.json });
  }
  if (values.since !== undefined || values.last !== undefined)
    throw new Usage('--since and --last go with --runs', WRONG);
  const place = /^([\w.-]{1,100})\/([\w.-]{1,100})#([1-9][0-9]{0,18})$/.exec(positionals[0] ?? '');
  if (place === null || positionals.length > 1)
    throw new Usage('one pull request as OWNER/REPO#N, or --runs', WRONG);
  const [, owner = '', name = '', pull = ''] = place;
  const given = values.policy === undefined ? undefined : readPolicy(values.policy);
  if (given === null) return 1;
  // git and GitHub take a second to load, and recorded runs need neither
  const { showPull } = await import('./simulate-pull.ts');
  return showPull(loadConfig(), {
    owner,
    name,
    pull,
    policy: given === undefined ? null : { bytes: given.bytes, file: given.file },
    json: values.json,
  });
}

interface Given {
  readonly file: string;
  readonly bytes: Buffer;
  readonly policy: Policy;
}

/** The policy of a file; null where it is not valid, which is then told as `config check` does. */
function readPolicy(path: string): Given | null {
  const bytes = read(() => readFileSync(path === '-' ? 0 : path), WRONG);
  const file = path === '-' ? 'standard input' : path;
  const reading = parsePolicy(bytes);
  if (reading.ok) return { file, bytes, policy: reading.policy };
  for (const line of checkLines(file, policyCheck(bytes))) console.error(line);
  return null;
}

function numberOf(text: string): number {
  const n = /^[0-9]{1,6}$/.test(text) ? Number(text) : 0;
  if (n < 1 || n > MOST_RUNS)
    throw new Usage(`--last is a number from 1 to ${MOST_RUNS}, not ${text}`, WRONG);
  return n;
}

function dateOf(text: string | undefined): Date | null {
  if (text === undefined) return null;
  const date = new Date(text);
  if (
    !/^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?(Z|[+-]\d{2}:\d{2}))?$/.test(text) ||
    Number.isNaN(date.getTime())
  )
    throw new Usage(
      `--since is a day such as 2026-11-01, or a moment such as 2026-11-01T08:00:00Z, not ${text}`,
      WRONG,
    );
  return date;
}

async function runs(
  input: Given & { readonly since: Date | null; readonly most: number; readonly json: boolean },
): Promise<number> {
  const { database, signer, close } = await openReadOnly(loadDataConfig());
  try {
    const hash = createHash('sha256').update(input.bytes).digest('hex');
    const proposed = { policy: input.policy, hash };
    const { since, most } = input;
    const found = await simulateRuns({ database, signer }, { since, most, proposed });
    const counts = countRuns(found);
    if (input.json)
      console.log(
        JSON.stringify(
          { version: 1, kind: 'runs', policy: { file: input.file, hash }, counts, runs: found },
          null,
          2,
        ),
      );
    else printLines(runsText(found, input.file));
    return exitOf(counts);
  } finally {
    await close();
  }
}
