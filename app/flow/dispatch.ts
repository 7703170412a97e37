/**
 * Starts runners for a repository (POOL-1, POOL-2, POOL-4): the plan and the intents commit, then each
 * call is made, then its effect commits. A dispatch is a wake-up, never an assignment.
 *
 * Reads: run, ticket, policy, spend, provider, slot, pool, registered pools, runner, dispatch. Writes: dispatch, pool, `dispatch_stalled`;
 * row `pool.changed`.
 * Calls: GitHub (workflow_dispatch, never twice for one intent). Queues: dispatch, decide-gate, end-unaffordable.
 * May fail with: `github_rate_limited` (retryable).
 */
import type { Tx } from '../../db/client.ts';
import {
  addDispatch,
  countRecentDispatches,
  type Dispatch,
  endDispatch,
  findDispatch,
  listOpenDispatches,
  markDispatch,
  WAITING_DISPATCH,
} from '../../db/store/dispatch.ts';
import { findInstallation, findRepository, type Repository } from '../../db/store/installation.ts';
import { addJobs } from '../../db/store/job.ts';
import { listRegistered, listResidentRooms } from '../../db/store/pool.ts';
import { countSlots, findPool, listProviders } from '../../db/store/provider.ts';
import { findRun, productNow } from '../../db/store/run.ts';
import { listLiveRunners } from '../../db/store/runner.ts';
import { findKill } from '../../db/store/setting.ts';
import { listWaiting, listWaitingGroups, lockPlan, type Waiting } from '../../db/store/waiting.ts';
import { LIMITS } from '../domain/limits.ts';
import { isOut, type Plan, type PlanPool, plan } from '../domain/plan.ts';
import { DEFAULT_POOL, type PoolEntry, poolName, servesReviews } from '../domain/policy/pool.ts';
import { Fault } from '../errors.ts';
import { readShort } from './budget-counts.ts';
import type { Deps } from './deps.ts';
import { knownPolicy } from './known-policy.ts';
import { secretHash } from './login.ts';
import { missPool, sayStalled } from './stall-pool.ts';

/** Over which `dispatchesMinute` counts. */
export const MINUTE_MS = 60_000;

/** What came of it. */
export interface DispatchOutcome {
  readonly plan: Plan['kind'];
  readonly sent: number;
}

interface Intent {
  readonly id: string;
  readonly nonce: string;
  readonly run: string;
  /** The run's generation that it was planned under (CTL-2). */
  readonly generation: number;
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
  // CTL-5: who was started would be given nothing
  if ((await findKill(tx, installation.id)) !== null) return null;
  if (repository.setupCause !== null) {
    // nothing that is started would come to anything, and the gate says what is to be done (RUN-9)
    await sayStalled(tx, repository.id, null);
    return null;
  }
  await lockPlan(tx, repositoryId);
  const waiting = await affordable(tx, repository, await listWaiting(tx, repositoryId));
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
  const stalled = pools.length > 0 && pools.every(isOut);
  await sayStalled(tx, repository.id, stalled ? stallDetail(pools) : null);
  const intents: Intent[] = [];
  const run = first === undefined ? null : await findRun(tx, first.runId);
  if (decided.kind === 'start' && run !== null && run.status === 'open') {
    // what is over the rate is planned again by the sweep
    const recent = await countRecentDispatches(tx, repository.id, MINUTE_MS);
    const room = Math.max(0, LIMITS.dispatchesMinute.default - recent);
    for (const { pool, n } of decided.starts) {
      for (let i = 0; i < n && intents.length < room; i++) {
        const { id, generation } = run;
        const intent = { id: deps.ids.next(), nonce: deps.ids.secret(), run: id, generation, workflow: pool };
        await addDispatch(
          tx,
          {
            id: intent.id,
            installationId: repository.installationId,
            repositoryId: repository.id,
            runId: run.id,
            pool,
            workflow: pool,
            generation,
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

/**
 * ADM-2: a runner that is started for files which no admission would take is started for nothing. They count for
 * nothing here; those that nothing under way can bring back are ended.
 */
async function affordable(
  tx: Tx,
  repository: Repository,
  waiting: readonly Waiting[],
): Promise<readonly Waiting[]> {
  const runs = [...new Set(waiting.filter((one) => one.ready > 0).map((one) => one.runId))];
  const short = await readShort(tx, repository.installationId, await listWaitingGroups(tx, runs));
  const over = new Set([...short].filter(([, why]) => why.final).map(([group]) => group.runId));
  await addJobs(
    tx,
    [...over].map((run) => ({ task: 'end-unaffordable', payload: { run }, key: `end-unaffordable:${run}` })),
  );
  return waiting.map((one) => {
    const mine = [...short.keys()].filter(
      (group) => group.runId === one.runId && group.provider === one.provider,
    );
    return { ...one, ready: one.ready - mine.reduce((sum, group) => sum + group.ready, 0) };
  });
}

type KnownPool = PlanPool & { readonly detail: string | null };

function stallDetail(pools: readonly KnownPool[]): string {
  return pools.map((pool) => `${pool.name}: ${pool.detail ?? 'no runner came'}`).join('; ');
}

async function providersOf(tx: Tx, installationId: string) {
  const slots = await countSlots(tx, installationId);
  return (await listProviders(tx, installationId)).map((one) => ({
    name: one.name,
    free: slots.get(one.name)?.free ?? 0,
    busy: (slots.get(one.name)?.all ?? 0) - (slots.get(one.name)?.free ?? 0),
    settledUntilMs: one.settledUntil?.getTime() ?? null,
  }));
}

/** Pools that the policies of the waiting runs name, without doubles; the largest capacity named for one counts. */
async function poolsOf(
  tx: Tx,
  repository: Repository,
  waiting: readonly Waiting[],
): Promise<readonly KnownPool[]> {
  const named = new Map<string, PoolEntry>();
  for (const hash of new Set(waiting.map((one) => one.policyHash))) {
    const policy = await knownPolicy(tx, hash);
    for (const pool of (policy?.pools ?? [DEFAULT_POOL]).filter(servesReviews)) {
      const known = named.get(poolName(pool));
      if (known === undefined || known.capacity < pool.capacity) named.set(poolName(pool), pool);
    }
  }
  const runners = await listLiveRunners(tx, repository.id, LIMITS.runnerFreshMs.default);
  const open = await listOpenDispatches(tx, repository.id);
  const residents = await residentsOf(tx, repository, [...named.values()]);
  const pools: KnownPool[] = [];
  for (const pool of named.values()) {
    if (pool.kind === 'resident') {
      const { registered, free } = residents(pool.name);
      const detail = registered ? 'no runner of it is alive' : 'not registered for this repository';
      pools.push({ kind: 'resident', name: pool.name, capacity: pool.capacity, free, detail });
      continue;
    }
    const name = pool.workflow;
    const state = await findPool(tx, repository.id, name);
    pools.push({
      kind: 'workflow',
      name,
      capacity: pool.capacity,
      running: runners.filter((one) => one.pool === name).length,
      pending: open.filter((one) => one.pool === name && isWaiting(one)).length,
      settledUntilMs: state?.settledUntil?.getTime() ?? null,
      detail: state?.detail ?? null,
    });
  }
  return pools;
}

/** What is to be had of the resident pools: capacity is what lives, and nothing of a pool that is not registered here. */
async function residentsOf(tx: Tx, repository: Repository, pools: readonly PoolEntry[]) {
  const names = pools.flatMap((pool) => (pool.kind === 'resident' ? pool.name : []));
  const registered = new Set(
    await listRegistered(tx, names, {
      installationId: repository.installationId,
      repositoryId: repository.id,
    }),
  );
  const rooms = await listResidentRooms(tx, [...registered], LIMITS.runnerFreshMs.default);
  return (name: string) => ({
    registered: registered.has(name),
    free: rooms.filter((one) => one.pool === name).map((one) => Math.max(0, one.capacity - one.leased)),
  });
}

function isWaiting(dispatched: Dispatch): boolean {
  return (WAITING_DISPATCH as readonly string[]).includes(dispatched.state);
}

/** CTL-2: a control, or the kill switch, came between the plan and its call: nothing was started, and the pool missed nothing. */
async function isFenced(deps: Deps, { id, run, generation }: Intent): Promise<boolean> {
  const now = await findRun(deps.database.db, run);
  if (now !== null && now.status === 'open' && now.generation === generation) return false;
  await deps.database.transaction((tx) => endDispatch(tx, id, 'failed', 'fenced'));
  return true;
}

/** One call for one intent. An answer that may have been lost is `ambiguous` and waits for the reaper (POOL-4). */
async function send(deps: Deps, repository: Repository, intent: Intent): Promise<boolean> {
  const { db } = deps.database;
  try {
    const github = await deps.github.installation(repository.installationId);
    if (await isFenced(deps, intent)) return false;
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
