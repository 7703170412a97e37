/**
 * Starts runners for a repository (POOL-1, POOL-2, POOL-4): the plan and the intents commit, then each
 * call is made, then its effect commits. A dispatch is a wake-up, never an assignment.
 *
 * Reads: run, ticket, policy, provider, slot, pool, runner, dispatch. Writes: dispatch, pool, `dispatch_stalled`;
 * row `pool.changed`.
 * Calls: GitHub (workflow_dispatch, never twice for one intent). Queues: dispatch, decide-gate.
 * May fail with: `github_rate_limited` (retryable).
 */
import type { Tx } from '../../db/client.ts';
import {
  addDispatch,
  type Dispatch,
  endDispatch,
  findDispatch,
  listOpenDispatches,
  markDispatch,
  WAITING_DISPATCH,
} from '../../db/store/dispatch.ts';
import { findInstallation, findRepository, type Repository } from '../../db/store/installation.ts';
import { loadPolicy } from '../../db/store/policy.ts';
import { countSlots, findPool, listProviders } from '../../db/store/provider.ts';
import { findRun, productNow } from '../../db/store/run.ts';
import { listLiveRunners } from '../../db/store/runner.ts';
import { listWaiting, lockPlan, type Waiting } from '../../db/store/waiting.ts';
import { LIMITS } from '../domain/limits.ts';
import { type Plan, plan } from '../domain/plan.ts';
import { type Policy, parsePolicy } from '../domain/policy.ts';
import { Fault } from '../errors.ts';
import type { Deps } from './deps.ts';
import { secretHash } from './login.ts';
import { missPool, sayStalled } from './stall-pool.ts';

/** The file of the pool a policy does not name. */
const DEFAULT_WORKFLOW = 'countersign.yml';

/** What came of it. */
export interface DispatchOutcome {
  readonly plan: Plan['kind'];
  readonly sent: number;
}

interface Intent {
  readonly id: string;
  readonly nonce: string;
  readonly run: string;
  readonly workflow: string;
}

/** Plans for one repository and starts what the plan says. Running it twice starts nothing twice. */
export async function dispatch(deps: Deps, input: { readonly repository: string }): Promise<DispatchOutcome> {
  const planned = await deps.database.transaction((tx) => planFor(deps, tx, input.repository));
  if (planned === null) return { plan: 'none', sent: 0 };
  const { repository, intents } = planned;
  let sent = 0;
  for (const intent of intents) if (await send(deps, repository, intent)) sent++;
  if (planned.plan.kind !== 'none')
    deps.log.info({ repository: repository.id, plan: planned.plan, sent }, 'dispatch');
  return { plan: planned.plan.kind, sent };
}

async function planFor(
  deps: Deps,
  tx: Tx,
  repositoryId: string,
): Promise<{ plan: Plan; repository: Repository; intents: Intent[] } | null> {
  const repository = await findRepository(tx, repositoryId);
  if (repository === null || repository.status !== 'active') return null;
  const installation = await findInstallation(tx, repository.installationId);
  if (installation === null || installation.status !== 'active') return null;
  if (repository.setupCause !== null) {
    // nothing that is started would come to anything, and the gate says what is to be done (RUN-9)
    await sayStalled(tx, repository.id, null);
    return null;
  }
  await lockPlan(tx, repositoryId);
  const waiting = await listWaiting(tx, repositoryId);
  const first = waiting.find((one) => one.ready > 0);
  const pools = await poolsOf(tx, repository, waiting);
  const decided = plan({
    nowMs: (await productNow(tx)).getTime(),
    perRunner: LIMITS.actionParallel.default,
    pools,
    providers: await providersOf(tx, repository.installationId),
    work: waiting.map((one) => ({
      run: one.runId,
      provider: one.provider,
      ready: one.ready,
      nextMs: one.nextAt?.getTime() ?? null,
      leased: one.leased,
      parallel: one.parallel,
    })),
  });
  const stalled = pools.length > 0 && pools.every((pool) => pool.settledUntilMs !== null);
  await sayStalled(tx, repository.id, stalled ? stallDetail(pools) : null);
  const intents: Intent[] = [];
  const run = first === undefined ? null : await findRun(tx, first.runId);
  if (decided.kind === 'start' && run !== null && run.status === 'open') {
    for (const { pool, n } of decided.starts) {
      for (let i = 0; i < n; i++) {
        const intent = { id: deps.ids.next(), nonce: deps.ids.secret(), run: run.id, workflow: pool };
        await addDispatch(
          tx,
          {
            id: intent.id,
            installationId: repository.installationId,
            repositoryId: repository.id,
            runId: run.id,
            pool,
            workflow: pool,
            generation: run.generation,
            nonceHash: secretHash(intent.nonce),
          },
          LIMITS.dispatchMs.default,
        );
        intents.push(intent);
      }
    }
  }
  return { plan: decided, repository, intents };
}

function stallDetail(pools: readonly { readonly name: string; readonly detail: string | null }[]): string {
  return pools.map((pool) => `${pool.name}: ${pool.detail ?? 'no runner came'}`).join('; ');
}

async function providersOf(tx: Tx, installationId: string) {
  const slots = await countSlots(tx, installationId);
  return (await listProviders(tx, installationId)).map((one) => ({
    name: one.name,
    free: slots.get(one.name)?.free ?? 0,
    settledUntilMs: one.settledUntil?.getTime() ?? null,
  }));
}

/** Pools that the policies of the waiting runs name, without doubles; the largest capacity named for one counts. */
async function poolsOf(tx: Tx, repository: Repository, waiting: readonly Waiting[]) {
  const capacities = new Map<string, number>();
  for (const runId of new Set(waiting.map((one) => one.runId))) {
    const run = await findRun(tx, runId);
    const policy = run?.policyHash == null ? null : await policyOf(tx, run.policyHash);
    const named = policy?.pools ?? [{ workflow: DEFAULT_WORKFLOW, capacity: 4 }];
    for (const pool of named)
      capacities.set(pool.workflow, Math.max(pool.capacity, capacities.get(pool.workflow) ?? 0));
  }
  const runners = await listLiveRunners(tx, repository.id, LIMITS.runnerFreshMs.default);
  const open = await listOpenDispatches(tx, repository.id);
  const pools = [];
  for (const [name, capacity] of capacities) {
    const state = await findPool(tx, repository.id, name);
    pools.push({
      name,
      capacity,
      running: runners.filter((one) => one.pool === name).length,
      pending: open.filter((one) => one.pool === name && isWaiting(one)).length,
      settledUntilMs: state?.settledUntil?.getTime() ?? null,
      detail: state?.detail ?? null,
    });
  }
  return pools;
}

function isWaiting(dispatched: Dispatch): boolean {
  return (WAITING_DISPATCH as readonly string[]).includes(dispatched.state);
}

async function policyOf(tx: Tx, hash: string): Promise<Policy | null> {
  const bytes = await loadPolicy(tx, hash);
  const reading = bytes === null ? null : parsePolicy(bytes);
  return reading?.ok === true ? reading.policy : null;
}

/** One call for one intent. An answer that may have been lost is `ambiguous` and waits for the reaper (POOL-4). */
async function send(deps: Deps, repository: Repository, intent: Intent): Promise<boolean> {
  const { db } = deps.database;
  try {
    const github = await deps.github.installation(repository.installationId);
    const answer = await github.dispatchWorkflow(repository, intent.workflow, repository.defaultBranch, {
      server: deps.settings.publicUrl,
      run: intent.run,
      nonce: intent.nonce,
    });
    await markDispatch(db, intent.id, { state: 'sent', workflowRun: answer.workflowRunId, detail: null });
    return true;
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    deps.log.warn({ repository: repository.id, dispatch: intent.id, code: error.code }, 'dispatch');
    if (error.code === 'github_unavailable') {
      await markDispatch(db, intent.id, { state: 'ambiguous', workflowRun: null, detail: error.code });
      return false;
    }
    // GitHub said no: nothing was started
    await deps.database.transaction(async (tx) => {
      const failed = await endDispatch(tx, intent.id, 'failed', error.code);
      const found = failed ? await findDispatch(tx, intent.id) : null;
      // being asked to slow down says nothing of the pool
      if (found !== null && error.code !== 'github_rate_limited')
        await missPool(deps, tx, found, { detail: error.code, via: 'schedule' });
    });
    if (error.code === 'github_rate_limited') throw error;
    return false;
  }
}
