/**
 * Gives receipts of verify commands to a runner of their pool (VER-1, LSE-1): one conditional statement each, so of two
 * runners one gets it. No row: what counts is the start.
 *
 * Reads: receipt, run, policy, pool, runner, repository. Writes: receipt, its lease. Calls: GitHub: a token that reads
 * the one repository, before anything of it is leased. Queues: nothing. May fail with: nothing of its own.
 */
import { findRepository } from '../../db/store/installation.ts';
import {
  endReceiptLease,
  listReceiptLeasesOfRunner,
  lockOpenReceiptLease,
} from '../../db/store/receipt-lease.ts';
import {
  grantReceipt,
  listReceiptWork,
  type ReceiptWork,
  setPooledReceipt,
} from '../../db/store/receipt-work.ts';
import { findRunner, type Login } from '../../db/store/runner.ts';
import { LIMITS } from '../domain/limits.ts';
import type { PoolCommand } from '../domain/policy/verify.ts';
import { commandDigest } from '../domain/receipt/input-hash.ts';
import { definitionDigest } from '../domain/receipt.ts';
import type { LeasedReceipt } from '../protocol/verify.ts';
import { cloneUrl } from './clone-url.ts';
import type { Deps } from './deps.ts';
import { takeBackUnheard } from './give-back.ts';
import { knownPolicy } from './known-policy.ts';
import { accessTo, noteServed } from './lease/pool.ts';
import { type LeaseOutcome, type LeaseRequest, lease } from './lease.ts';
import { secretHash } from './login.ts';

/** A lease of a receipt with its secret, told once. */
export interface GivenReceipt {
  readonly id: string;
  readonly token: string;
  readonly grant: number;
  readonly expiresAt: Date;
  readonly receipt: LeasedReceipt;
  /** A token that reads its repository and nothing else (AUT-4). */
  readonly access: string;
}

/** What a runner that asks for both gets: receipts first, so that no stream of tickets keeps them waiting. */
export interface WorkOutcome extends LeaseOutcome {
  readonly receipts: readonly GivenReceipt[];
}

/** Leases up to `max` tickets and receipts, at most `verify` of these; it never waits. */
export async function leaseWork(
  deps: Deps,
  input: LeaseRequest & { readonly login: Login; readonly verify: number },
): Promise<WorkOutcome> {
  const { verify, ...request } = input;
  const most = Math.min(request.max, verify);
  const receipts = most === 0 ? [] : await leaseReceipts(deps, { ...request, max: most });
  const max = request.max - receipts.length;
  const tickets = max === 0 ? { leases: [], done: false } : await lease(deps, { ...request, max });
  return { ...tickets, receipts };
}

/** Takes back what a request was granted and whose answer its runner never had (LSE-5). */
export async function takeBackWork(deps: Deps, login: Login, request: string): Promise<void> {
  await takeBackUnheard(deps, login, request);
  await takeBackUnheardReceipts(deps, login, request);
}

/** Leases up to `max` receipts now; it never waits. A runner that confirmed no container runtime gets none. */
export async function leaseReceipts(
  deps: Deps,
  input: LeaseRequest & { readonly login: Login },
): Promise<readonly GivenReceipt[]> {
  const { db } = deps.database;
  const { login, request } = input;
  if (login.held === true || login.poolToken === null) return [];
  if ((await findRunner(db, login.runnerId))?.runtime == null) return [];
  if (input.again && request !== null) await takeBackUnheardReceipts(deps, login, request);
  const { pool } = login.identity;
  const given: GivenReceipt[] = [];
  const served: string[] = [];
  for (const work of await listReceiptWork(db, pool, 2 * input.max)) {
    if (given.length >= input.max) break;
    const one = await give(deps, login, work, request);
    if (one === null) continue;
    given.push(one);
    served.push(work.installationId);
  }
  if (given.length > 0) {
    await noteServed(deps, pool, served);
    deps.log.info({ runner: login.runnerId, pool, receipts: given.length }, 'lease-receipts');
  }
  return given;
}

/** What was started is not taken back: its runner knows of it. */
async function takeBackUnheardReceipts(deps: Deps, login: Login, request: string): Promise<void> {
  const { db } = deps.database;
  for (const one of await listReceiptLeasesOfRunner(db, login.runnerId)) {
    if (one.request !== request || one.state !== 'live') continue;
    await deps.database.transaction(async (tx) => {
      const lease = await lockOpenReceiptLease(tx, one.id);
      if (lease?.state === 'live' && lease.startedAt === null)
        await endReceiptLease(tx, lease, { state: 'returned', result: null });
    });
  }
}

async function give(
  deps: Deps,
  login: Login,
  work: ReceiptWork,
  request: string | null,
): Promise<GivenReceipt | null> {
  const { db } = deps.database;
  const named = await commandOf(deps, work);
  if (named === null) {
    // the policy says something else of it by now: nobody waits for this one
    await deps.database.transaction((tx) => setPooledReceipt(tx, work, { pool: null }));
    return null;
  }
  const access = await accessTo(deps, work.repositoryId, work.installationId);
  const repository = await findRepository(db, work.repositoryId);
  if (access === null || repository === null) return null;
  const token = deps.ids.secret();
  const { name, command } = named;
  const lease = await grantReceipt(db, login.identity.pool, work, {
    id: deps.ids.next(),
    tokenHash: secretHash(token),
    runnerId: login.runnerId,
    request,
    command: commandDigest(command),
    ttlMs: LIMITS.leaseMs.default,
  });
  if (lease === null) return null;
  const { id, grant, expiresAt } = lease;
  return {
    id,
    token,
    grant,
    expiresAt,
    access,
    receipt: {
      block: work.blockId,
      receipt: work.id,
      run: work.runId,
      pull: work.pull,
      repository: {
        id: repository.id,
        owner: repository.owner,
        name: repository.name,
        clone_url: cloneUrl(deps.settings, repository),
      },
      base: work.base,
      head: work.head,
      command: name,
      run_argv: command.run,
      env: command.env,
      ports: command.ports,
      artifacts: command.artifacts,
      timeout_ms: command.timeout,
      image: command.image,
      network: command.network,
    },
  };
}

/** What the policy of the run says of it now, under the first of its names. */
async function commandOf(
  deps: Deps,
  work: ReceiptWork,
): Promise<{ readonly name: string; readonly command: PoolCommand } | null> {
  const policy = await knownPolicy(deps.database.db, work.policyHash);
  for (const name of work.commands) {
    const command = policy?.verify.get(name);
    if (command?.from === 'pool' && definitionDigest(command) === work.definition) return { name, command };
  }
  return null;
}
