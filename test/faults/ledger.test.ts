import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import type { UnitDeps } from '../../app/flow/append-rows.ts';
import { verifyRun } from '../../app/flow/verify-run.ts';
import { newKeys } from '../../app/signing/keys.ts';
import { createSigner } from '../../app/signing/signer.ts';
import { connect, type Database } from '../../db/client.ts';
import { type Embedded, startEmbedded } from '../../db/embedded.ts';
import { migrateDatabase } from '../../db/migrate.ts';
import { findRun } from '../../db/store/run.ts';
import { testDatabase } from '../helpers/database.ts';
import { openTestRun } from '../helpers/ledger.ts';
import { type Child, startChild } from '../helpers/process.ts';

const folders: string[] = [];
function folder(): string {
  const made = mkdtempSync(join(tmpdir(), 'countersign-faults-'));
  folders.push(made);
  return made;
}
afterEach(() => {
  for (const made of folders.splice(0)) rmSync(made, { recursive: true, force: true });
});

function withKeys(): { file: string; signer: UnitDeps['signer'] } {
  const keys = newKeys('ledger.test');
  const file = join(folder(), 'keys.json');
  writeFileSync(file, JSON.stringify(keys), { mode: 0o600 });
  return { file, signer: createSigner(keys) };
}

/** Verified rows of a run, in full; fails the test when the chain is not intact. */
async function verified(deps: UnitDeps, id: string) {
  const run = await findRun(deps.database.db, id);
  if (run === null) throw new Error(`no run ${id}`);
  const { verdict, rows } = await verifyRun(deps, run, { full: true });
  expect(verdict).toMatchObject({ kind: 'intact' });
  return rows;
}

const codesOf = (rows: Awaited<ReturnType<typeof verified>>) =>
  rows.flatMap((row) => (row.kind === 'command.refused' ? [row.data.code] : []));

test('case 62: six processes append 50 rows each to one chain and to 20 others: intact, counted, none lost', async () => {
  const one = await testDatabase();
  const { file, signer } = withKeys();
  const deps = { database: one.database, signer };
  const shared = 'shared';
  const others = Array.from({ length: 20 }, (_, i) => `other-${i}`);
  for (const [i, id] of [shared, ...others].entries()) await openTestRun(deps, id, String(i + 1));
  const children = Array.from({ length: 6 }, (_, i) =>
    startChild('append', [one.url, file, `p${i}`, '50', shared, ...others.slice(i * 3, i * 3 + 3)]),
  );
  expect(await Promise.all(children.map((child) => child.ended))).toEqual(Array(6).fill(0));
  const codes = codesOf(await verified(deps, shared));
  expect(codes).toHaveLength(300);
  expect(new Set(codes).size).toBe(300);
  // each process's own rows are in the order in which it was answered
  for (let p = 0; p < 6; p++) {
    const own = codes.filter((code) => code.startsWith(`p${p}-`));
    expect(own).toEqual(Array.from({ length: 50 }, (_, i) => `p${p}-${i}`));
  }
  for (const id of others.slice(0, 18)) expect(codesOf(await verified(deps, id))).toHaveLength(50);
  await one.drop();
});

interface Round {
  readonly deps: UnitDeps;
  readonly children: readonly Child[];
}

/** What every writer was told is there, once, at the place it was told; the change that goes with each row too. */
async function checkRound(round: Round, runs: readonly string[]): Promise<void> {
  const told = round.children.flatMap((child) => child.lines.map((line) => line.split(' ')));
  for (const id of runs) {
    const rows = await verified(round.deps, id);
    const place = new Map(
      rows.flatMap((row) => (row.kind === 'command.refused' ? [[row.data.code, row.seq]] : [])),
    );
    expect(place.size).toBe(rows.length - 1);
    for (const [run, seq, code] of told) {
      if (run === id) expect(place.get(code ?? '')).toBe(Number(seq));
    }
    const { rows: changes } = await round.deps.database.pool.query<{ code: string }>(
      'select code from reason where run_id = $1 order by code',
      [id],
    );
    expect(changes.map((change) => change.code)).toEqual([...place.keys()].sort());
  }
}

const ROUNDS = Number(process.env['SOAK_ROUNDS'] ?? 4);

test(
  'attack 36: writers on one run, killed with kill -9: no acknowledged row is lost, no gap, no fork, each effect once',
  async () => {
    const one = await testDatabase();
    const { file, signer } = withKeys();
    const deps = { database: one.database, signer };
    await openTestRun(deps, 'run', '1');
    const children: Child[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const now = Array.from({ length: 3 }, (_, i) =>
        startChild('append', [one.url, file, `r${round}-p${i}`, '100000', 'run']),
      );
      children.push(...now);
      await Promise.all(now.map((child) => child.line()));
      await new Promise((done) => setTimeout(done, 20 + ((round * 37) % 150)));
      for (const child of now) child.kill();
      await Promise.all(now.map((child) => child.ended));
      // a killed client's last transaction may still be ending: a unit of work waits for its lock
      await checkRound({ deps, children }, []);
    }
    await one.database.transaction((tx) => tx.$client.query(`select from run where id = 'run' for update`));
    await checkRound({ deps, children }, ['run']);
    await one.drop();
  },
  Math.max(240_000, ROUNDS * 10_000),
);

const WRITERS = 50;
const PROCESSES = 5;

test(
  'attack 36: 50 writers at once on one run, each answered, then killed with kill -9: one chain, each row once',
  async () => {
    const one = await testDatabase();
    const { file, signer } = withKeys();
    const deps = { database: one.database, signer };
    await openTestRun(deps, 'run', '1');
    const children: Child[] = [];
    for (let round = 0; round < Math.max(1, ROUNDS / 8); round++) {
      const each = Array.from({ length: WRITERS / PROCESSES }, () => 'run');
      const now = Array.from({ length: PROCESSES }, (_, i) =>
        startChild('append', [one.url, file, `r${round}-p${i}`, '100000', ...each]),
      );
      children.push(...now);
      await Promise.all(now.map((child) => everyWriter(child, each.length)));
      await new Promise((done) => setTimeout(done, (round * 37) % 150));
      for (const child of now) child.kill();
      await Promise.all(now.map((child) => child.ended));
      await one.database.transaction((tx) => tx.$client.query(`select from run where id = 'run' for update`));
      await checkRound({ deps, children }, ['run']);
    }
    await one.drop();
  },
  Math.max(240_000, ROUNDS * 10_000),
);

/** Waits until so many writers of a process had a row acknowledged: from then on all of them are under way. */
async function everyWriter(child: Child, count: number): Promise<void> {
  const answered = new Set<string>();
  while (answered.size < count) {
    const [, , code = ''] = (await child.line()).split(' ');
    answered.add(code.slice(0, code.lastIndexOf('-')));
  }
}

test(
  'attack 36: Postgres itself killed with kill -9 under writers, fsync on: every acknowledged row is there',
  async () => {
    const home = folder();
    const { file, signer } = withKeys();
    const children: Child[] = [];
    let server: Embedded = await startEmbedded({ folder: home });
    await migrateDatabase(server.url());
    let database: Database = await connect(server.url(), { max: 2 });
    await openTestRun({ database, signer }, 'run', '1');
    for (let round = 0; round < Math.max(2, ROUNDS / 2); round++) {
      await database.close();
      const now = Array.from({ length: 3 }, (_, i) =>
        startChild('append', [server.url(), file, `r${round}-p${i}`, '100000', 'run']),
      );
      children.push(...now);
      await Promise.all(now.map((child) => child.line()));
      await new Promise((done) => setTimeout(done, 50 + ((round * 53) % 200)));
      killServer(server);
      await Promise.all(now.map((child) => child.ended));
      await server.stop();
      server = await startEmbedded({ folder: home });
      database = await connect(server.url(), { max: 2 });
      await checkRound({ deps: { database, signer }, children }, ['run']);
    }
    await database.close();
    await server.stop();
  },
  Math.max(240_000, ROUNDS * 10_000),
);

/** kill -9 of the server and, where /proc tells them, all its backends at once: nothing gets to flush. */
function killServer(server: Embedded): void {
  let backends: number[] = [];
  try {
    const listed = readFileSync(`/proc/${server.pid}/task/${server.pid}/children`, 'utf8');
    backends = listed
      .split(' ')
      .map(Number)
      .filter((pid) => pid > 0);
  } catch {
    // not Linux: backends end by themselves once their parent is gone
  }
  for (const pid of [server.pid, ...backends]) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // ended with the one before
    }
  }
}
