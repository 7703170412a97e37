/**
 * Holds the receipts of a run's present head against GitHub's jobs on it (VER-1, VER-3, VER-4): level-triggered, so
 * that a delivery that was lost, doubled or late says no more and no less than one that came.
 *
 * Reads: run, policy, repository, pool, receipts by verified rows, reruns asked for. Writes: receipt; rows `receipt.waiting
 * receipt.bound receipt.ended`; texts of what a job told. Calls: GitHub's workflow runs, jobs, annotations, the pull
 * request where nothing runs, and reruns that were asked for; outside of any transaction.
 * Queues: decide-gate, itself where another look was written in between. May fail with: `run_missing`, GitHub's.
 */
import { findRepository } from '../../db/store/installation.ts';
import { clearReruns, listReceipts, type StoredReceipt } from '../../db/store/receipt.ts';
import { findRun, productNow, type Run } from '../../db/store/run.ts';
import type { VerifyCommand } from '../domain/policy/verify.ts';
import type { Policy } from '../domain/policy.ts';
import { definitionDigest, type ReceiptFact } from '../domain/receipt.ts';
import { foldRows } from '../domain/run-state/fold.ts';
import { Fault } from '../errors.ts';
import type { GitHub, RepositoryAddress } from '../github/port.ts';
import { withRun } from './append-rows.ts';
import type { Deps } from './deps.ts';
import { knownPolicy } from './known-policy.ts';
import { lookAtPools, settlePooled } from './settle-receipts/pools.ts';
import { type Followed, type Look, look, readRuns } from './settle-receipts/read.ts';
import { isNews, recordReceipt } from './settle-receipts/record.ts';
import { wholeRows } from './verify-run.ts';

/** Which run's receipts. */
export interface SettleInput {
  readonly run: string;
}

/** What came of it. */
export interface SettleOutcome {
  readonly kind: 'nothing' | 'settled' | 'moved';
  /** Receipts of which GitHub said something new. */
  readonly changed: number;
  /** Workflow runs that were started again. */
  readonly rerun: number;
}

const NOTHING: SettleOutcome = { kind: 'nothing', changed: 0, rerun: 0 };

/** Looks at GitHub and records what it says; running it again changes nothing unless GitHub says something else. */
export async function settleReceipts(deps: Deps, input: SettleInput): Promise<SettleOutcome> {
  const { db } = deps.database;
  const run = await findRun(db, input.run);
  if (run === null) throw new Fault('run_missing', `there is no run ${input.run}`);
  if (run.status === 'closed' || run.status === 'merged' || run.head === null || run.pull === null)
    return NOTHING;
  const stored = await listReceipts(db, run.id, run.head);
  const policy = stored.length === 0 ? null : await knownPolicy(deps.database.db, run.policyHash);
  const known = policy === null ? [] : await follow(deps, run, run.head, policy);
  if (known.length === 0) return NOTHING;
  const followed = known.filter(isOfJob);
  const pooled = await lookAtPools(deps, run, known);
  const repository = await findRepository(db, run.repositoryId);
  if (repository === null) throw new Fault('run_missing', 'the repository of the run is not known');
  const { looks, rerun } =
    followed.length === 0
      ? { looks: [], rerun: 0 }
      : await lookAtJobs(deps, repository, run, run.head, followed, stored);
  const outcome = await withRun(deps, run.id, async (unit): Promise<SettleOutcome> => {
    const { tx, enqueue } = unit;
    // what was read is of another head: looked at again once that one has receipts
    if (unit.run.head !== run.head || unit.broken) return { kind: 'moved', changed: 0, rerun };
    const rows = await wholeRows(deps, unit.run, { reader: tx });
    if (rows === null) return { kind: 'moved', changed: 0, rerun };
    const { receipts } = foldRows(rows);
    let changed = 0;
    let overtaken = false;
    for (const one of looks) {
      const receipt = receipts.get(`${one.receipt.block} ${one.receipt.id}`);
      if (receipt === undefined || !isNews(receipt, one)) continue;
      // another look wrote in between: which of the two saw more, only a third can say
      if (receipt.seq !== one.receipt.seq) overtaken = true;
      else {
        await recordReceipt(deps, unit, receipt, one);
        changed += 1;
      }
    }
    if (overtaken) enqueue('settle-receipts', { run: run.id }, { key: `settle-receipts:${run.id}` });
    changed += await settlePooled(deps, unit, run.head ?? '', pooled, receipts);
    await clearReruns(tx, stored);
    if (changed > 0) enqueue('decide-gate', { run: run.id }, { key: `decide-gate:${run.id}` });
    return { kind: 'settled', changed, rerun };
  });
  deps.log.info({ run: run.id, ...outcome }, 'settle-receipts');
  return outcome;
}

/** The receipts of the head by verified rows, with what the policy says of each now; one of an earlier definition is over. */
async function follow(
  deps: Deps,
  run: Run,
  head: string,
  policy: Policy,
): Promise<{ readonly receipt: ReceiptFact; readonly command: VerifyCommand }[]> {
  const rows = await wholeRows(deps, run);
  if (rows === null) return [];
  const commands = new Map([...policy.verify.values()].map((one) => [definitionDigest(one), one]));
  return [...foldRows(rows).receipts.values()].flatMap((receipt: ReceiptFact) => {
    const command = commands.get(receipt.definition);
    return receipt.head === head && command !== undefined ? [{ receipt, command }] : [];
  });
}

function isOfJob(one: { readonly receipt: ReceiptFact; readonly command: VerifyCommand }): one is Followed {
  return one.command.from !== 'pool';
}

async function lookAtJobs(
  deps: Deps,
  repository: RepositoryAddress,
  run: Run,
  head: string,
  followed: readonly Followed[],
  stored: readonly StoredReceipt[],
): Promise<{ readonly looks: readonly Look[]; readonly rerun: number }> {
  const github = await deps.github.installation(run.installationId);
  const looks = await lookAll(github, repository, run, head, followed, await productNow(deps.database.db));
  return { looks, rerun: await startAgain(deps, github, repository, looks, stored) };
}

async function lookAll(
  github: GitHub,
  repository: RepositoryAddress,
  run: Run,
  head: string,
  followed: readonly Followed[],
  now: Date,
): Promise<Look[]> {
  const runs = await readRuns(github, repository, head, followed);
  const fork = run.headRepositoryId !== run.repositoryId;
  const idle = followed.some(({ command }) => !runs.some((one) => one.workflow === command.workflow));
  // GitHub starts no `pull_request` workflow while there is a conflict, and tells nobody (VER-1)
  const conflict =
    idle && run.pull !== null && (await github.getPull(repository, run.pull)).mergeable === false;
  const looks: Look[] = [];
  for (const one of followed) looks.push(await look(github, repository, one, runs, { fork, conflict }, now));
  return looks;
}

/**
 * Starts again what somebody asked for, where GitHub shows it ended at the attempt they saw: never what runs
 * (VER-3). One that GitHub refuses stays as it ended.
 */
async function startAgain(
  deps: Deps,
  github: GitHub,
  repository: RepositoryAddress,
  looks: readonly Look[],
  stored: readonly StoredReceipt[],
): Promise<number> {
  const asked = new Map(
    stored.flatMap((one) =>
      one.rerunAfter === null ? [] : [[`${one.blockId} ${one.id}`, one.rerunAfter] as const],
    ),
  );
  const byRun = new Map<string, Set<string | null>>();
  for (const { receipt, standing } of looks) {
    const after = asked.get(`${receipt.block} ${receipt.id}`);
    const { run, job, state } = standing;
    if (after === undefined || run === null || state === 'running' || state === 'waiting') continue;
    if ((job?.attempt ?? run.attempt) > after) continue;
    byRun.set(run.id, (byRun.get(run.id) ?? new Set()).add(job?.job ?? null));
  }
  let started = 0;
  for (const [workflowRun, jobs] of byRun) {
    const [only] = jobs;
    try {
      // one call a run: GitHub refuses a second while the first is under way
      if (jobs.size === 1 && only != null) await github.rerunJob(repository, only);
      else await github.rerunWorkflowRun(repository, workflowRun, 'all');
      started += 1;
    } catch (error) {
      if (!(error instanceof Fault) || error.retryable) throw error;
      deps.log.warn({ workflow_run: workflowRun, code: error.code }, 'settle-receipts');
    }
  }
  return started;
}
