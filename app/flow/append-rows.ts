/**
 * The unit of work (RUN-6): one transaction that locks a run, applies a change, appends the signed
 * rows that prove it, and queues what follows. All or nothing. No network call inside it.
 *
 * Reads: the run and the head of its chain. Writes: ledger rows, jobs, whatever `fn` writes.
 * Calls: the signer. May fail with: `run_missing`, `nested_unit_of_work`, `row_invalid`,
 * `database_unreachable` (the answer to COMMIT may be what was lost: look before trying again).
 */
import type { Database, Tx } from '../../db/client.ts';
import { addJobs, type NewJob } from '../../db/store/job.ts';
import {
  appendRows,
  insertHead,
  type LedgerHead,
  lockChain,
  lockRun,
  readHead,
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
  enqueue(
    task: string,
    payload: unknown,
    options?: { readonly key?: string; readonly priority?: number },
  ): void;
}

/** A unit of work on a run: `run` is locked, as it was when the unit began. */
export interface RunUnit extends LedgerUnit {
  readonly run: Run;
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
  return attempt(deps, 'reads', async (tx, work) => {
    const locked = await lockRun(tx, runId);
    if (locked === undefined) throw new Fault('run_missing', `there is no run ${runId}`);
    return fn({ ...work.on(tx, locked.head, locked.now), run: locked.run });
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
  return attempt(deps, 'writes', async (tx, work) => {
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
    const result = await fn({ ...work.on(tx, found.head, found.now), run });
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
  return attempt(deps, 'reads', async (tx, work) => fn(await openInstallation(deps, tx, work, installation)));
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
  await work.write(tx);
}

async function openInstallation(
  deps: UnitDeps,
  tx: Tx,
  work: Work,
  installation: InstallationChain,
): Promise<LedgerUnit> {
  const runId = installationRun(installation.id);
  await lockChain(tx, runId);
  let found = await readHead(tx, runId);
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

async function attempt<T>(
  deps: UnitDeps,
  opening: 'reads' | 'writes',
  fn: (tx: Tx, work: Work) => Promise<T>,
): Promise<T> {
  for (let n = 1; ; n++) {
    const work = new Work(deps.signer);
    try {
      return await deps.database.transaction(
        (tx) => fn(tx, work),
        (tx) => work.write(tx),
        opening,
      );
    } catch (error) {
      if (n >= MOST_ATTEMPTS || !isConflict(error)) throw error;
    }
  }
}

/** The rows and jobs of one attempt: signed as they are appended, written with the commit. */
class Work {
  readonly rows: StoredRow[] = [];
  readonly #jobs: NewJob[] = [];
  readonly #signer: Signer;
  #tip: ChainTip | undefined;

  constructor(signer: Signer) {
    this.#signer = signer;
  }

  on(tx: Tx, head: LedgerHead, now: Date): LedgerUnit {
    const hash = head.hash ?? head.genesis;
    this.#tip = { log: head.log, run: head.runId, repo: head.repositoryId, seq: head.seq, hash };
    return {
      tx,
      now,
      head,
      append: (kind, draft) => this.#append(now, { kind, ...draft } as AnyDraft),
      enqueue: (task, payload, options = {}) => {
        this.#jobs.push({ task, payload, ...options });
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

  /** Sends what closes the unit, all of it before the first await: it travels with COMMIT. */
  write(tx: Tx): Promise<unknown> {
    const sent: Promise<void>[] = [];
    if (this.#tip !== undefined && this.rows.length > 0) sent.push(appendRows(tx, this.#tip.run, this.rows));
    if (this.#jobs.length > 0) sent.push(addJobs(tx, this.#jobs));
    return Promise.all(sent);
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
