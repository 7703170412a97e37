/** S1: sync of a large pull request with a warm git cache, its tickets cut, against what git and Postgres need at least. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type pg from 'pg';
import { openRun } from '../app/flow/append-rows.ts';
import { cutTickets } from '../app/flow/cut-tickets.ts';
import type { Deps } from '../app/flow/deps.ts';
import { syncRun } from '../app/flow/sync-run.ts';
import { createGitReader } from '../app/github/git.ts';
import type { GitHub } from '../app/github/port.ts';
import type { Database } from '../db/client.ts';
import { upsertInstallation, upsertRepository } from '../db/store/installation.ts';
import { type Bench, interleave, versionsOf } from './bench.ts';
import { withBenchDatabase } from './database.ts';
import { benchSigner, draft } from './ledger.ts';
import { type LargePull, makeLargePull } from './s1/repository.ts';

const REPS = 7;
const MUST = 3;

/** Each repetition syncs a run of its own: the same content, nothing of it known. */
export const bench: Bench = {
  id: 'S1',
  what: 'sync of 300 commits and 4,000 files, warm cache, tickets cut, vs git log --raw and raw INSERTs of the same rows',
  must: MUST,
  aim: 1.5,
  unit: 'ms',
  async run() {
    const folder = mkdtempSync(join(tmpdir(), 'countersign-s1-'));
    try {
      return await withBenchDatabase(4, async ({ url, database, version }) => {
        const large = makeLargePull(folder);
        const deps = depsFor(database, large, folder);
        await database.transaction(async (tx) => {
          await upsertInstallation(tx, { id: '5' });
          await upsertRepository(tx, {
            id: '74',
            installationId: '5',
            ownerId: '1',
            owner: 'o',
            name: 'large',
            defaultBranch: 'main',
            private: false,
          });
        });
        let serial = 0;
        const ours = async () => {
          const run = await open(deps, ++serial, large);
          return timed(async () => {
            const synced = await syncRun(deps, { run });
            if (synced.kind !== 'synced' || synced.files !== 4_000) throw new Error('the sync is not whole');
            const { opened } = await cutTickets(deps, { run });
            if (opened !== 4_000) throw new Error(`${opened} tickets were cut`);
          });
        };
        await ours();
        const raw = await rawPeer(url, database.pool, large);
        const sides = await interleave(REPS, { ours, peer: raw });
        const ratio = sides.ours / sides.peer;
        const git = execFileSync('git', ['--version'], { encoding: 'utf8' }).trim();
        return {
          value: sides.ours,
          peer: sides.peer,
          ratio,
          ok: ratio <= MUST,
          reps: REPS,
          versions: versionsOf(['pg'], { postgres: version, git: git.replace('git version ', '') }),
        };
      });
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
};

async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

/** REST answers at once: the network is not what is measured. */
function depsFor(database: Database, large: LargePull, folder: string): Deps {
  const github: Partial<GitHub> = {
    listCommitAccounts: async (_, { commits }) =>
      new Map(commits.map((commit) => [commit, { author: '9', committer: '9' }])),
    getPull: async (_, number) => ({
      number,
      state: 'open',
      merged: false,
      draft: false,
      title: 'Large',
      body: '',
      author: { id: '9', login: 'alice' },
      head: large.head,
      headRef: 'topic',
      headRepositoryId: '74',
      baseRef: 'main',
      base: large.base,
      commits: 300,
      changedFiles: 4_000,
      updatedAt: new Date().toISOString(),
      pushedAt: null,
    }),
    getBranchHead: async () => large.base,
    getMergeBase: async () => large.base,
    readToken: async () => '',
  };
  const git = createGitReader({ directory: join(folder, 'cache') });
  const silent = { info() {}, warn() {}, error() {} };
  return {
    database,
    signer: benchSigner(),
    github: { appId: '1', installation: async () => github as GitHub } as Partial<
      Deps['github']
    > as Deps['github'],
    // every pull request number reads the same ref of the one repository on disk
    git: {
      ...git,
      readPull: (input) => git.readPull({ ...input, pull: '1' }),
    },
    log: silent,
    ids: { next: () => 'id', secret: () => 'secret' },
    settings: { publicUrl: 'https://cs.test', serverUrl: `file://${folder}`, version: '0' },
  };
}

async function open(deps: Deps, n: number, large: LargePull): Promise<string> {
  const now = new Date();
  const id = `s1-${n}`;
  const record = {
    id,
    installationId: '5',
    repositoryId: '74',
    pull: String(n),
    epoch: 1,
    status: 'open',
    toldHead: large.head,
    baseRef: 'main',
    headAt: now,
    openedAt: now,
  } as const;
  await openRun(deps, record, async (unit) =>
    unit.append('run.opened', {
      block: null,
      actor: draft.actor,
      cause: draft.cause,
      data: { pull: String(n), group_head: null, epoch: 1, author: null, reason: 'opened' },
    }),
  );
  return id;
}

/** The same bytes that the first run left, into tables with the same columns and primary keys and nothing else. */
async function rawPeer(url: string, pool: pg.Pool, large: LargePull): Promise<() => Promise<number>> {
  const owner = new (pool.constructor as typeof pg.Pool)({ connectionString: url, max: 1 });
  const tables = ['file', 'ticket', 'ledger_row'];
  for (const table of tables) {
    await owner.query(`create table raw_${table} (like ${table} including defaults)`);
    const keys = { file: 'run_id, path', ticket: 'id', ledger_row: 'run_id, seq' }[table];
    await owner.query(`alter table raw_${table} add primary key (${keys})`);
    await owner.query(`grant all on raw_${table} to countersign_app`);
  }
  await owner.end();
  const rows = new Map<string, string>();
  for (const table of tables) {
    const found = await pool.query<{ rows: string }>(
      `select json_agg(t)::text as rows from ${table} t where run_id = 's1-1'`,
    );
    rows.set(table, found.rows[0]?.rows ?? '[]');
  }
  const work = async () => {
    execFileSync(
      'git',
      ['-C', large.bare, 'log', '--raw', '-z', '--no-renames', '--no-abbrev', `${large.base}..${large.head}`],
      { maxBuffer: 1e9 },
    );
    const client = await pool.connect();
    try {
      await client.query('begin');
      for (const table of tables) {
        await client.query(
          `insert into raw_${table} select * from json_populate_recordset(null::raw_${table}, $1::json)`,
          [rows.get(table)],
        );
      }
      await client.query('commit');
    } finally {
      client.release();
    }
  };
  return async () => {
    for (const table of tables) await pool.query(`delete from raw_${table}`);
    return timed(work);
  };
}
