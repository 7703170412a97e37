/**
 * The unit of work (RUN-6): one transaction that locks a run, applies a change, appends the signed
 * rows that prove it, and queues what follows. All or nothing. No network call inside it.
 *
 * Reads: the run and the head of its chain. Writes: ledger rows, jobs, whatever `fn` writes.
 * Calls: the signer. May fail with: `run_missing`, `nested_unit_of_work`, `row_invalid`, `ledger_invalid`,
 * `database_unreachable` (the answer to COMMIT may be what was lost: look before trying again).
 */
import type { Answer, Database, Statement, Tx } from '../../db/client.ts';
import { jobStatements, type NewJob } from '../../db/store/job.ts';
import {
  appendRows,
  insertHead,
  type LedgerHead,
  lockChain,
  lockedRun,
  lockRun,
  readHead,
  rowStatements,
} from '../../db/store/ledger.ts';
import { insertRun, type NewRun, type Run } from '../../db/store/run.ts';
import {
  type AnyDraft,
  type ChainSubject,
  genesisOf,
  installationRun,
  type RowDraft,
  type StoredRow,
} from '../domain/ledger/row.ts';
import type { RowKind } from '../domain/ledger/row-kinds.ts';
import { Fault } from '../errors.ts';
import type { ChainTip, Signer } from '../signing/signer.ts';

/** What a unit of work on any chain can do. */
export interface LedgerUnit {
  readonly tx: Tx;
  /** Product time, taken once the lock was had: the one evaluation time of this unit. */
  readonly now: Date;
  /** The chain before this unit. */
  readonly head: LedgerHead;
  /** Signs a row at the end of the chain and gives its `seq`; written with the commit, so nothing reads it back inside. */
  append<K extends RowKind>(kind: K, draft: Omit<RowDraft<K>, 'kind'>): number;
  /** Queues a job with the commit; `key` makes many causes one job. */
  enqueue(task: string, payload: unknown, options?: Pick<NewJob, 'key' | 'priority' | 'afterMs'>): void;
}

/** A unit of work on a run: `run` is locked, as it was when the unit began. */
export interface RunUnit extends LedgerUnit {
  readonly run: Run;
  /** Whether the chain was found cut before (LED-9): a row on top would hide it, and `append` throws `ledger_invalid`. */
  readonly broken: boolean;
}

/** The effects that a unit of work needs. */
export interface UnitDeps {
  readonly database: Database;
  readonly signer: Signer;
}

/** A lost race for the chain, a deadlock, a serialization failure: the whole unit is run again on a fresh head. */
const MOST_ATTEMPTS = 5;

/** Runs `fn` as one unit of work on a run. It may be called again after a conflict, so it keeps nothing outside. */
export function withRun<T>(deps: UnitDeps, runId: string, fn: (unit: RunUnit) => Promise<T>): Promise<T> {
  return attempt(
    deps,
    async (tx, work, opened) => {
      const locked = lockedRun(opened);
      if (locked === undefined) throw new Fault('run_missing', `there is no run ${runId}`);
      const { head, now, run, broken } = locked;
      return fn({ ...work.on(tx, head, now, broken), run, broken });
    },
    lockRun(runId),
  );
}

/**
 * Units of work on several runs in one commit, by run: all of it or none. Runs are locked in the order of
 * their ids, so that two of these never wait for each other. It may be called again after a conflict.
 */
export function withRuns<T>(
  deps: UnitDeps,
  runIds: readonly string[],
  fn: (units: ReadonlyMap<string, RunUnit>, tx: Tx) => Promise<T>,
): Promise<T> {
  const ids = [...new Set(runIds)].sort();
  const locks = lockRun('').length;
  return retried(() => {
    const works = ids.map((id) => ({ id, work: new Work(deps.signer) }));
    return deps.database.transaction(
      async (tx, opened) => {
        const units = new Map<string, RunUnit>();
        for (const [i, { id, work }] of works.entries()) {
          const locked = lockedRun(opened.slice(i * locks, (i + 1) * locks));
          if (locked === undefined) throw new Fault('run_missing', `there is no run ${id}`);
          const { head, now, run, broken } = locked;
          units.set(id, { ...work.on(tx, head, now, broken), run, broken });
        }
        return fn(units, tx);
      },
      // one statement for the jobs of all: their keys' locks are taken in one order everywhere
      () => [
        ...works.flatMap(({ work }) => work.rowStatements()),
        ...jobStatements(works.flatMap(({ work }) => work.jobs)),
      ],
      ids.flatMap(lockRun),
    );
  });
}

/**
 * Opens a run: its record, its chain at the genesis, and what `fn` appends first. Undefined when
 * that pull request or group has a run of that epoch already (a doubled delivery): nothing is done.
 */
export function openRun<T>(
  deps: UnitDeps,
  record: NewRun,
  fn: (unit: RunUnit) => Promise<T>,
): Promise<T | undefined> {
  return attempt(deps, async (tx, work) => {
    const run = await insertRun(tx, record);
    if (run === null) return undefined;
    const log = deps.signer.logOf(run.installationId);
    const genesis = genesisOf(log, subjectOf(run));
    await insertHead(tx, {
      runId: run.id,
      installationId: run.installationId,
      log,
      repositoryId: run.repositoryId,
      genesis,
    });
    const found = await readHead(tx, run.id);
    if (found === undefined) throw new Fault('bug', 'a head that was just inserted is missing');
    const result = await fn({ ...work.on(tx, found.head, found.now), run, broken: false });
    if (work.rows.length === 0) throw new Fault('bug', 'a run was opened without a row');
    return result;
  });
}

/** What an installation's own chain is known by; `epoch` counts only for a chain that begins. */
export interface InstallationChain {
  readonly id: string;
  readonly epoch: number;
}

/** Runs `fn` as one unit of work on an installation's own chain, which begins with its first row (LED-4). */
export function withInstallation<T>(
  deps: UnitDeps,
  installation: InstallationChain,
  fn: (unit: LedgerUnit) => Promise<T>,
): Promise<T> {
  return attempt(deps, async (tx, work) => fn(await openInstallation(deps, tx, work, installation)));
}

/**
 * Appends one row to an installation's chain in a transaction that is under way, for a change that
 * only turns out inside it. The chain's lock is the last one such a transaction takes.
 */
export async function appendToInstallation<K extends RowKind>(
  deps: UnitDeps,
  tx: Tx,
  installation: InstallationChain,
  kind: K,
  draft: Omit<RowDraft<K>, 'kind'>,
): Promise<void> {
  const work = new Work(deps.signer);
  const unit = await openInstallation(deps, tx, work, installation);
  unit.append(kind, draft);
  await appendRows(tx, installationRun(installation.id), work.rows);
}

async function openInstallation(
  deps: UnitDeps,
  tx: Tx,
  work: Work,
  installation: InstallationChain,
): Promise<LedgerUnit> {
  const runId = installationRun(installation.id);
  let found = await lockChain(tx, runId);
  if (found === undefined) {
    const log = deps.signer.logOf(installation.id);
    const genesis = genesisOf(log, { kind: 'installation', epoch: installation.epoch });
    await insertHead(tx, { runId, installationId: installation.id, log, repositoryId: null, genesis });
    found = await readHead(tx, runId);
  }
  if (found === undefined) throw new Fault('bug', 'a head that was just inserted is missing');
  return work.on(tx, found.head, found.now);
}

/** What a run's chain is of (LED-3). */
export function subjectOf(run: Pick<Run, 'repositoryId' | 'pull' | 'groupHead' | 'epoch'>): ChainSubject {
  const { repositoryId, epoch } = run;
  if (run.pull !== null) return { kind: 'pull', repositoryId, name: run.pull, epoch };
  if (run.groupHead !== null) return { kind: 'group', repositoryId, name: run.groupHead, epoch };
  throw new Fault('bug', 'a run of neither a pull request nor a group');
}

function attempt<T>(
  deps: UnitDeps,
  fn: (tx: Tx, work: Work, opened: readonly Answer[]) => Promise<T>,
  first?: readonly Statement[],
): Promise<T> {
  return retried(() => {
    const work = new Work(deps.signer);
    return deps.database.transaction(
      (tx, opened) => fn(tx, work, opened),
      () => work.statements(),
      first,
    );
  });
}

/** Runs a transaction again after a lost race for a chain, a deadlock or a serialization failure. */
export async function retried<T>(unit: () => Promise<T>): Promise<T> {
  for (let n = 1; ; n++) {
    try {
      return await unit();
    } catch (error) {
      if (n >= MOST_ATTEMPTS || !isConflict(error)) throw error;
    }
  }
}

/** The rows and jobs of one attempt: signed as they are appended, written with the commit. */
class Work {
  readonly rows: StoredRow[] = [];
  readonly jobs: NewJob[] = [];
  readonly #signer: Signer;
  #tip: ChainTip | undefined;

  constructor(signer: Signer) {
    this.#signer = signer;
  }

  on(tx: Tx, head: LedgerHead, now: Date, broken = false): LedgerUnit {
    const hash = head.hash ?? head.genesis;
    this.#tip = { log: head.log, run: head.runId, repo: head.repositoryId, seq: head.seq, hash };
    return {
      tx,
      now,
      head,
      append: (kind, draft) => {
        // the last line of defence: who appends asks `isWhole` or `broken` first
        if (broken)
          throw new Fault('ledger_invalid', `run ${head.runId} was found cut and gets no row on top`);
        return this.#append(now, { kind, ...draft } as AnyDraft);
      },
      enqueue: (task, payload, options = {}) => {
        this.jobs.push({ task, payload, ...options });
      },
    };
  }

  #append(now: Date, draft: AnyDraft): number {
    if (this.#tip === undefined) throw new Fault('bug', 'a row before its chain was locked');
    const row = this.#signer.signRow(this.#tip, now, draft);
    this.rows.push(row);
    this.#tip = { ...this.#tip, seq: row.seq, hash: row.hash };
    return row.seq;
  }

  /** What closes the unit: it travels with COMMIT. */
  statements(): Statement[] {
    return [...this.rowStatements(), ...jobStatements(this.jobs)];
  }

  /** The rows alone, for a commit that has the jobs of several. */
  rowStatements(): Statement[] {
    return this.#tip === undefined ? [] : rowStatements(this.#tip.run, this.rows);
  }
}

const CONFLICTS = new Set(['40001', '40P01', 'CSL02']);
const CHAIN_KEYS = new Set(['ledger_row_run_id_seq_pk', 'ledger_row_prev']);

/** Told by the server's code and constraint, through drizzle's wrapping; never by a message. */
function isConflict(error: unknown): boolean {
  for (let found: unknown = error; found instanceof Error; found = found.cause) {
    const { code, constraint } = found as { code?: unknown; constraint?: unknown };
    if (found instanceof Fault) continue;
    if (CONFLICTS.has(String(code))) return true;
    if (code === '23505') return CHAIN_KEYS.has(String(constraint));
  }
  return false;
}
