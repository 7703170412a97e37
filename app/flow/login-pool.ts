/**
 * A pool token becomes a login of one process of that pool (AUT-2, RID-1). What it may lease is asked of the
 * registration each time; who it is stays frozen.
 *
 * Reads: pool, token, runner. Writes: runner, login. Calls: nothing. Queues: dispatch, where work waits for it.
 * May fail with: `protocol_version`, `unauthorized` (the same for every token that does not hold), `owner_invalid`,
 * `rate_limited` (too many runners).
 */
import type { Tx } from '../../db/client.ts';
import { addJobs } from '../../db/store/job.ts';
import { findPoolToken, findResidentPool, listPoolPlaces, lockResidentPool } from '../../db/store/pool.ts';
import {
  addLogin,
  addRunner,
  countResidents,
  findResident,
  revokeLogins,
  setRuntime,
} from '../../db/store/runner.ts';
import { LIMITS } from '../domain/limits.ts';
import { Refusal } from '../errors.ts';
import { PROTOCOL_VERSION } from '../protocol/runner.ts';
import type { Deps } from './deps.ts';
import { type LoginOutcome, secretHash } from './login.ts';

/** A login request of a resident runner. */
export interface PoolLoginInput {
  readonly protocol: string;
  readonly pool: string;
  readonly token: string;
  /** The process's own name of itself: a second login of it is the same runner and keeps its leases. */
  readonly instance: string;
  readonly version: string;
  readonly capacity: number;
  readonly keys: readonly string[] | null;
  /** Its container runtime, where it takes verify commands (VER-1). */
  readonly runtime?: string | null | undefined;
}

/** Repositories whose planner hears of a runner that came or went; the sweep finds the others. */
const TOLD = 200;

/** Exchanges a pool token for a login token. */
export async function loginPool(deps: Deps, input: PoolLoginInput): Promise<LoginOutcome> {
  if (input.protocol.split('.')[0] !== PROTOCOL_VERSION.split('.')[0])
    throw new Refusal(
      'protocol_version',
      `this server speaks protocol ${PROTOCOL_VERSION}`,
      `protocol ${PROTOCOL_VERSION}: use the version of countersign that fits the server`,
    );
  const hash = secretHash(input.token);
  const outcome = await deps.database.transaction(async (tx) => {
    const held = await findPoolToken(tx, hash);
    const pool = held === null || held.pool !== input.pool ? null : await findResidentPool(tx, held.pool);
    // one answer for a pool that is not there, a token that never was, one of another pool and a revoked one
    if (held === null || pool === null)
      throw new Refusal(
        'unauthorized',
        'the pool token was refused',
        'a token of this pool that was not revoked: countersign pool token NAME',
      );
    // registering and counting under one lock (LSE-6)
    await lockResidentPool(tx, pool.name);
    if ((await findPoolToken(tx, hash)) === null)
      throw new Refusal('unauthorized', 'the pool token was refused', 'a token that was not revoked');
    const runner = await runnerOf(deps, tx, input);
    const token = deps.ids.secret();
    const id = deps.ids.next();
    const expiresAt = await addLogin(
      tx,
      {
        id,
        runnerId: runner,
        tokenHash: secretHash(token),
        claims: hash.toString('hex'),
        poolToken: held.id,
        identity: {
          role: 'worker',
          installation: null,
          repository: null,
          run: null,
          workflowRun: null,
          attempt: null,
          job: null,
          pool: pool.name,
          serves: pool.serves,
        },
      },
      LIMITS.loginMs.default,
    );
    await wakePlanners(tx, pool.name);
    return { token, expiresAt, runner, login: id, run: null };
  });
  deps.log.info({ runner: outcome.runner, pool: input.pool }, 'login-pool');
  return outcome;
}

/** Plans again where work waits for a pool: a runner of it came or went. */
export async function wakePlanners(tx: Tx, pool: string): Promise<void> {
  const { places } = await listPoolPlaces(tx, pool, new Map(), TOLD);
  await addJobs(
    tx,
    places.map(({ repositoryId: repository }) => ({
      task: 'dispatch',
      payload: { repository },
      key: `dispatch:${repository}`,
    })),
  );
}

async function runnerOf(deps: Deps, tx: Tx, input: PoolLoginInput): Promise<string> {
  const known = await findResident(tx, input.pool, input.instance);
  const runtime = input.runtime ?? null;
  if (known !== null) {
    await revokeLogins(tx, known.id);
    if (known.runtime !== runtime) await setRuntime(tx, known.id, runtime);
    return known.id;
  }
  if ((await countResidents(tx, input.pool)) >= LIMITS.poolRunners.default)
    throw new Refusal(
      'rate_limited',
      `${input.pool} has ${LIMITS.poolRunners.default} runners`,
      'fewer runners: one that is gone is forgotten after five minutes',
    );
  const id = deps.ids.next();
  await addRunner(tx, {
    id,
    installationId: null,
    repositoryId: null,
    pool: input.pool,
    instance: input.instance,
    workflowRun: null,
    attempt: null,
    job: null,
    version: input.version,
    capacity: input.capacity,
    runtime,
    keys: input.keys === null ? null : [...input.keys],
  });
  return id;
}
