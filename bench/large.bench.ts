/** LARGE: the biggest pull request of the scale rules on the whole road, and a merge queue's batch after it. */
import type { SandboxGitHub } from '../sandbox/github.ts';
import type { Pull } from '../sandbox/pull.ts';
import { actorCommitter } from '../sandbox/render/pushes.ts';
import { type Bench, versionsOf } from './bench.ts';
import { type Road, withRoad } from './road/stage.ts';

const COMMITS = 300;
const FILES = 4_000;
const BATCH = 3;
const MUST = 20;
/** A stuck road ends with its last check run in the error. */
const PATIENCE_MS = 30 * 60_000;

/** One repetition: it takes minutes, and what it counts (calls and writes) is exact. */
export const bench: Bench = {
  id: 'LARGE',
  what: `a pull request of ${COMMITS} commits and ${FILES} files from open to green, then a merge queue's batch of ${BATCH}`,
  must: MUST,
  aim: 100,
  unit: 'tickets/s',
  run: () =>
    withRoad(async (road) => {
      const pull = await openLarge(road);
      const whole = await watched(road.gh, async () => {
        const gate = await road.check(
          pull.head.sha,
          'countersign',
          (one) => one.status === 'completed',
          PATIENCE_MS,
        );
        if (gate.conclusion !== 'success') throw new Error(`the gate: ${gate.title}\n${gate.summary}`);
      });
      await road.settle();
      const counted = await countedFiles(road, pull);
      if (counted !== FILES) throw new Error(`${counted} of ${FILES} files were counted`);
      const batch = await queueBatch(road);
      const rate = FILES / whole.seconds;
      return {
        value: rate,
        peer: null,
        ok: rate >= MUST,
        reps: 1,
        versions: versionsOf([], { postgres: road.postgres }),
        figures: {
          'files counted': String(counted),
          'large: open to green': told(whole),
          [`queue: batch of ${BATCH} to merged`]: told(batch),
        },
      };
    }),
};

const path = (n: number) => `packages/p${n % 80}/src/d${n % 7}/file${n}.ts`;

/** Every commit changes its share of the files that the base has; one push brings all of them. */
async function openLarge({ repository, author }: Road): Promise<Pull> {
  const all = Array.from({ length: FILES }, (_, n) => n);
  const files = (of: readonly number[], add: number) =>
    Object.fromEntries(of.map((n) => [path(n), `export const value = ${n + add};\n`]));
  let head = await repository.commit({ message: 'Add packages', files: files(all, 0) });
  for (let n = 0; n < COMMITS; n++) {
    head = await repository.git.commit({
      ref: 'refs/heads/large',
      parents: [head],
      message: `Change number ${n + 1}`,
      author: actorCommitter(author),
      date: repository.world.now(),
      files: files(
        all.filter((file) => file % COMMITS === n),
        1,
      ),
    });
  }
  return repository.openPull({ head: 'large', user: author });
}

/** Changed paths with a ticket that ended counted, as the ledger's own tables have them. */
async function countedFiles({ query }: Road, pull: Pull): Promise<number> {
  const [found] = await query<{ n: number }>(
    `select count(distinct f.path)::int as n from file f join run r on r.id = f.run_id
     join ticket t on t.run_id = f.run_id and t.path = f.path
     where r.pull = $1 and t.state = 'ended' and t.end_code = 'reviewed' and not t.partial`,
    [String(pull.number)],
  );
  return found?.n ?? 0;
}

/** Pull requests that are green go into the queue together; measured from there until all are merged. */
async function queueBatch({ gh, app, repository, author, check, settle }: Road): Promise<Spent> {
  repository.requireCheck('countersign', app);
  const queue = repository.useQueue();
  const pulls: Pull[] = [];
  for (let n = 1; n <= BATCH; n++) {
    const branch = `queued-${n}`;
    await repository.commit({ branch, author, message: branch, files: { [`queued/${n}.ts`]: `${n}\n` } });
    const pull = await repository.openPull({ head: branch, user: author });
    const gate = await check(pull.head.sha, 'countersign', (one) => one.status === 'completed');
    if (gate.conclusion !== 'success') throw new Error(`${branch}: ${gate.title}`);
    pulls.push(pull);
  }
  await settle();
  return watched(gh, async () => {
    for (const pull of pulls) await queue.enqueue(pull, author);
    for (const end = performance.now() + 120_000; !pulls.every((pull) => pull.merged); ) {
      if (performance.now() > end) throw new Error('the batch was not merged');
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  });
}

interface Spent {
  readonly seconds: number;
  readonly calls: number;
  readonly writes: number;
  /** How often each operation was called, most often first. */
  readonly by: readonly (readonly [string, number])[];
}

/** Time and what GitHub was asked for meanwhile; REST alone, git apart. */
async function watched(gh: SandboxGitHub, work: () => Promise<void>): Promise<Spent> {
  const from = gh.requests.length;
  const start = performance.now();
  await work();
  const seconds = (performance.now() - start) / 1_000;
  const asked = gh.requests.slice(from).filter(({ operation }) => operation !== 'git');
  const by = new Map<string, number>();
  for (const { operation } of asked) by.set(operation, (by.get(operation) ?? 0) + 1);
  return {
    seconds,
    calls: asked.length,
    writes: asked.filter((one) => one.content).length,
    by: [...by].sort((a, b) => b[1] - a[1]),
  };
}

const told = ({ seconds, calls, writes, by }: Spent): string =>
  `${seconds.toFixed(1)} s, ${calls} REST calls, ${writes} content writes (${by.map(([name, n]) => `${name} ${n}`).join(', ')})`;
