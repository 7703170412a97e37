/**
 * What the command line does to resident pools (POOL-1, AUT-2): each change is a row of every installation
 * that the pool is registered for, in the transaction that makes it. A token is told once and kept as its hash.
 *
 * Reads: installation, repository, pool, tokens. Writes: pool, its registration, tokens, logins, runners; rows
 * `pool.registered`. Calls: nothing. Queues: enrol, dispatch.
 * May fail with: `not_found`, `bad_request`, `conflict`.
 */
import type { Tx } from '../../db/client.ts';
import { findInstallation, listInstallations, listRepositories } from '../../db/store/installation.ts';
import { addJobs } from '../../db/store/job.ts';
import {
  addPoolToken,
  addResidentPool,
  findResidentPool,
  listPoolTokens,
  listResidentPools,
  listResidentRooms,
  listScopes,
  listUnready,
  lockResidentPool,
  type PoolKind,
  putScope,
  removeResidentPool,
  revokePoolTokens,
} from '../../db/store/pool.ts';
import type { RowData } from '../domain/ledger/row-kinds.ts';
import { LIMITS } from '../domain/limits.ts';
import { Refusal } from '../errors.ts';
import { appendToInstallation, type UnitDeps } from './append-rows.ts';
import type { Ids } from './deps.ts';
import { secretHash } from './login.ts';

/** What it needs: no GitHub, no git. */
export interface PoolDeps extends UnitDeps {
  readonly ids: Ids;
}

/** A pool as `pool list` shows it. */
export interface PoolView {
  readonly name: string;
  readonly serves: readonly PoolKind[];
  /** Its live runners that take verify commands (VER-1). */
  readonly containers: number;
  readonly scopes: readonly {
    readonly installation: string;
    readonly repositories: readonly string[] | null;
  }[];
  /** Ids of the tokens that hold. */
  readonly tokens: readonly string[];
  /** Runners that are alive, what they can work at once, and what they work. */
  readonly runners: number;
  readonly capacity: number;
  readonly leased: number;
}

/** What is done to a pool. */
export type PoolChange =
  | {
      readonly change: 'add';
      readonly installations: readonly string[];
      /** Null: all repositories of the installations. */
      readonly repositories: readonly string[] | null;
    }
  | { readonly change: 'token' }
  /** Of one token, or of all (null). */
  | { readonly change: 'revoke'; readonly token: string | null }
  | { readonly change: 'remove' };

/** What came of it; `secret` is a new token's, told here and never again. */
export interface PoolOutcome {
  readonly token: string | null;
  readonly secret: string | null;
  readonly revoked: readonly string[];
}

/** Changes one pool. */
export async function changePool(deps: PoolDeps, name: string, change: PoolChange): Promise<PoolOutcome> {
  return deps.database.transaction(async (tx) => {
    await lockResidentPool(tx, name);
    if (change.change !== 'add' && (await findResidentPool(tx, name)) === null)
      throw new Refusal('not_found', `there is no pool ${name}`, await namesOf(tx));
    switch (change.change) {
      case 'add':
        return add(deps, tx, name, change);
      case 'token': {
        const made = { id: deps.ids.next(), secret: deps.ids.secret() };
        if ((await listPoolTokens(tx, name)).length >= LIMITS.poolTokens.default)
          throw new Refusal(
            'conflict',
            `${name} has ${LIMITS.poolTokens.default} tokens`,
            'revoke one first',
          );
        await addPoolToken(tx, { id: made.id, pool: name, tokenHash: secretHash(made.secret) });
        await note(deps, tx, name, { change: 'token', tokens: [made.id] });
        return { token: made.id, secret: made.secret, revoked: [] };
      }
      case 'revoke': {
        const revoked = await revokePoolTokens(tx, name, change.token);
        if (revoked.length === 0)
          throw new Refusal('not_found', `${name} has no such token`, 'an id that pool list shows');
        await note(deps, tx, name, { change: 'revoked', tokens: revoked });
        return { token: null, secret: null, revoked };
      }
      case 'remove': {
        const tokens = (await listPoolTokens(tx, name)).map((one) => one.id);
        const scopes = await listScopes(tx, name);
        await removeResidentPool(tx, name);
        await append(
          deps,
          tx,
          name,
          scopes.map((one) => one.installationId),
          { change: 'removed', tokens },
        );
        return { token: null, secret: null, revoked: tokens };
      }
    }
  });
}

/** Every resident pool with what is alive of it. */
export async function listPoolViews(deps: Pick<PoolDeps, 'database'>): Promise<PoolView[]> {
  const { db } = deps.database;
  const rooms = await listResidentRooms(db, null, LIMITS.runnerFreshMs.default);
  const views: PoolView[] = [];
  for (const { name, serves } of await listResidentPools(db)) {
    const alive = rooms.filter((one) => one.pool === name);
    views.push({
      name,
      serves,
      scopes: (await listScopes(db, name)).map((one) => ({
        installation: one.installationId,
        repositories: one.repositories,
      })),
      tokens: (await listPoolTokens(db, name)).map((one) => one.id),
      runners: alive.length,
      containers: alive.filter((one) => one.runtime !== null).length,
      capacity: alive.reduce((sum, one) => sum + one.capacity, 0),
      leased: alive.reduce((sum, one) => sum + one.leased, 0),
    });
  }
  return views;
}

async function add(
  deps: PoolDeps,
  tx: Tx,
  name: string,
  of: Extract<PoolChange, { change: 'add' }>,
): Promise<PoolOutcome> {
  const installations = [...new Set(of.installations)];
  const known = new Map<string, ReadonlySet<string>>();
  for (const id of installations) {
    if ((await findInstallation(tx, id)) === null)
      throw new Refusal('not_found', `no installation ${id} is known here`, await installationsOf(tx));
    known.set(id, new Set((await listRepositories(tx, id)).map((one) => one.id)));
  }
  const unknown = of.repositories?.find((id) => ![...known.values()].some((those) => those.has(id)));
  if (unknown !== undefined)
    throw new Refusal('not_found', `none of these installations has a repository ${unknown}`);
  await addResidentPool(tx, name, ['review']);
  for (const id of installations) {
    const mine = of.repositories?.filter((one) => known.get(id)?.has(one)) ?? null;
    if (mine?.length === 0)
      throw new Refusal('bad_request', `none of the repositories is of installation ${id}`, 'leave it out');
    await putScope(tx, name, id, mine);
  }
  // what waited for the pool to be registered looks again
  await addJobs(
    tx,
    (await listUnready(tx, name)).map(({ repositoryId, baseRef }) => ({
      task: 'enrol',
      payload: { repository: repositoryId, baseRef },
      key: `enrol:${repositoryId}:${baseRef}`,
    })),
  );
  for (const one of await listScopes(tx, name)) {
    if (!known.has(one.installationId)) continue;
    const { repositories } = one;
    await append(deps, tx, name, [one.installationId], { change: 'added', repositories, serves: ['review'] });
  }
  return { token: null, secret: null, revoked: [] };
}

type Said = Omit<RowData<'pool.registered'>, 'pool'>;

async function note(deps: PoolDeps, tx: Tx, name: string, said: Said): Promise<void> {
  const scopes = await listScopes(tx, name);
  await append(
    deps,
    tx,
    name,
    scopes.map((one) => one.installationId),
    said,
  );
}

/** Chains are locked in the order of their ids, so that two changes never wait for each other; last in the transaction. */
async function append(
  deps: PoolDeps,
  tx: Tx,
  name: string,
  installations: readonly string[],
  said: Said,
): Promise<void> {
  for (const id of installations) {
    const installation = await findInstallation(tx, id);
    if (installation === null) continue;
    await appendToInstallation(deps, tx, installation, 'pool.registered', {
      block: null,
      actor: { kind: 'app', id: 'countersign', via: 'command_line' },
      cause: { kind: 'command_line', id: `pool ${said.change}`, sha256: null },
      data: { pool: name, ...said },
    });
  }
}

async function namesOf(tx: Tx): Promise<string> {
  const names = (await listResidentPools(tx)).map((one) => one.name);
  return names.length === 0 ? 'none is registered yet' : names.join(', ');
}

async function installationsOf(tx: Tx): Promise<string> {
  const all = (await listInstallations(tx)).slice(0, 50);
  return all.length === 0
    ? 'an installation that the server has heard of'
    : all.map((one) => `${one.id} (${one.accountLogin})`).join(', ');
}
