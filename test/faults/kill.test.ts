import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Pull } from '../../sandbox/pull.ts';
import { type Ending, endingOf } from '../helpers/ending.ts';
import { type KilledStage, killedStage } from '../helpers/killed-stage.ts';
import type { Statement } from '../helpers/proxy-postgres.ts';

/*
 * SOAK_ROUNDS: how many rounds (npm run soak); eight hold each point before and after. FAULT_SEED: where
 * the kills fall; a failing round says its seed and `FAULT_ROUND` runs it alone.
 */
const ROUNDS = Number(process.env['SOAK_ROUNDS'] ?? 10);
const SEED = Number(process.env['FAULT_SEED'] ?? Date.now() % 1_000_000);
const ONLY = process.env['FAULT_ROUND'];

type Point = 'commit' | 'write';
interface Kill {
  readonly point: Point;
  readonly when: 'before' | 'after';
  /** As a share of how many there are in a round. */
  readonly at: number;
}

/** Numbers in [0, 1) that a seed always gives again. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Round by round before and after, three commits to a write as there are more of them; one round in three is killed twice. */
function killsOf(round: number): Kill[] {
  const next = random(SEED * 1_000 + round);
  const kill = (n: number): Kill => ({
    point: n % 4 === 3 ? 'write' : 'commit',
    when: Math.floor(n / 4) % 2 === n % 2 ? 'before' : 'after',
    at: next(),
  });
  const first = kill(round);
  if (next() >= 1 / 3) return [first];
  // soon after the first: while the app starts, or at what it repeats
  const second = kill(Math.floor(next() * 8));
  return [first, { ...second, at: second.at / 6 }];
}

/** What commits: COMMIT, and a statement outside a transaction that writes. Asking for a job writes too, and is a poll. */
function commits({ sql, place }: Statement): boolean {
  if (place !== 'alone') return place === 'commit';
  return (
    /^\s*(?:insert|update|delete)\b|add_jobs?\(|\b(?:insert into|delete from)\b|^\s*update\b/i.test(sql) &&
    !sql.includes('is_available = true')
  );
}

let stage: KilledStage;
/** How many of each an undisturbed round has, and how it ends. */
const counts: Record<Point, number> = { commit: 0, write: 0 };
let undisturbed: Ending;
const told: string[] = [];

/** A repository, a pull request with a finding, and a push that mends it, killed at these points on the way. */
async function play(name: string, kills: readonly Kill[]): Promise<Ending> {
  const left = kills.map((kill) => ({ ...kill, n: 1 + Math.floor(kill.at * 0.9 * counts[kill.point]) }));
  const seen: Record<Point, number> = { commit: 0, write: 0 };
  /** The strike that falls due with one more of a point. */
  const strike = (point: Point, what: string) => {
    seen[point] += 1;
    const [next] = left;
    if (next === undefined || next.point !== point || seen[point] < next.n) return undefined;
    left.shift();
    told.push(`${name}: killed ${next.when} ${point} ${next.n} of ~${counts[point]}: ${what}`);
    seen.commit = 0;
    seen.write = 0;
    return { when: next.when, act: () => stage.kill() } as const;
  };
  stage.postgres.watch = (statement) =>
    commits(statement) ? strike('commit', statement.sql.replaceAll(/\s+/g, ' ').slice(0, 60)) : undefined;
  stage.github.watch = ({ method, path, write }) =>
    write ? strike('write', `${method} ${path}`) : undefined;

  const ending = await playOut(name);
  if (kills.length === 0) Object.assign(counts, seen);
  else if (left.length > 0) told.push(`${name}: ${left.length} point(s) not reached`);
  return ending;
}

/** The round itself, under whatever the proxies were told. */
async function playOut(name: string): Promise<Ending> {
  const pull = await stage.open(await stage.repository(name));
  const heads = [pull.head.sha];
  const concluded = () => stage.gate(pull)?.status === 'completed';
  await stage.finish(concluded);
  heads.push(await pull.push({ message: 'Mend', files: { 'src/a.ts': 'export const a = 1;\n' } }));
  await stage.finish(async () => concluded() && (await shownAsDecided(pull)));
  const said = await pull.comment(stage.author, '/claim docs/later.md mend\n/status');
  const answers = () => stage.gh.comments(pull).filter((one) => one.viaApp === stage.app);
  await stage.finish(
    async () =>
      concluded() && answers().length > 0 && (await shownAsDecided(pull)) && (await isAnswered(said.id)),
  );
  stage.postgres.watch = () => undefined;
  stage.github.watch = () => undefined;
  return endingOf(stage, pull, heads);
}

/** Both commands of the comment were carried out or refused, and the answer at GitHub is the one we know. */
async function isAnswered(comment: number): Promise<boolean> {
  const [found] = await stage.query<{ done: number; written: boolean }>(
    `select count(*)::int as done, bool_and(s.written is not null) as written
     from command c join sticky s on s.repository_id = c.repository_id where c.comment_id = $1 and c.state in ('done', 'refused')`,
    [String(comment)],
  );
  return found?.done === 2 && found.written;
}

/** Nothing waits to be written to GitHub for this repository any more. */
async function shownAsDecided(pull: Pull): Promise<boolean> {
  const waiting = await stage.query(
    'select from check_run where repository_id = $1 and written is distinct from wanted',
    [String(pull.repository.id)],
  );
  return waiting.length === 0;
}

beforeAll(async () => {
  stage = await killedStage();
  undisturbed = await play('undisturbed', []);
});
afterAll(async () => {
  console.log(`seed ${SEED}, ${stage.starts} starts\n${told.join('\n')}`);
  await stage.close();
});

describe('kill -9 and a start again', () => {
  test('an undisturbed round: red by its finding, then green', () => {
    expect(undisturbed).toMatchObject({
      gate: { conclusion: 'success', reasons: [] },
      tickets: { ended: 4 },
      deliveries: {},
    });
    expect(counts.commit).toBeGreaterThan(20);
    expect(counts.write).toBeGreaterThan(5);
  });

  const rounds = ONLY === undefined ? Array.from({ length: ROUNDS }, (_, round) => round) : [Number(ONLY)];
  test.each(rounds)(
    `PUB-2, LED-5: FAULT_SEED=${SEED} FAULT_ROUND=%i ends as if nothing had happened`,
    async (round) => {
      expect(await play(`round-${round}`, killsOf(round))).toEqual(undisturbed);
    },
    180_000,
  );

  test('attack 8: killed once a delivery is stored and before GitHub hears so: done from the queue, and not again by its redelivery', async () => {
    let opened = false;
    const { starts } = stage;
    stage.gh.webhooks.delay(0, ({ action }) => {
      opened ||= action === 'opened';
      return false;
    });
    stage.postgres.watch = ({ sql }) => {
      if (!opened || !sql.includes('insert into delivery')) return undefined;
      stage.postgres.watch = () => undefined;
      return { when: 'after', act: () => stage.kill() };
    };
    expect(await playOut('unheard')).toEqual(undisturbed);
    expect(stage.starts).toBe(starts + 1);
    const lost = stage.gh.world.deliveries.filter((one) => one.status !== 'OK' && one.action === 'opened');
    const delivery = lost.at(-1);
    if (delivery === undefined) throw new Error('GitHub heard of it');
    const before = await stage.query('select run_id, seq, hash from ledger_head');
    stage.gh.webhooks.redeliver(delivery);
    await stage.finish(() => true);
    expect(await stage.query('select run_id, seq, hash from ledger_head')).toEqual(before);
  });

  test.each([
    [0.2, 0],
    [0.6, 3_000],
  ])(
    'case 71: every connection to Postgres cut at %d of a round and none had for %i ms: the app lives on and ends the same',
    async (share, ms) => {
      const { starts } = stage;
      let left = Math.ceil(share * counts.commit);
      stage.postgres.watch = (statement) => {
        if (commits(statement) && --left === 0) setImmediate(() => stage.postgres.away(ms));
        return undefined;
      };
      expect(await playOut(`away-${ms}`)).toEqual(undisturbed);
      expect(left).toBeLessThan(1);
      expect(stage.starts).toBe(starts);
    },
    180_000,
  );
});
