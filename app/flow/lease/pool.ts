/**
 * The lease of a resident runner (LSE-1): where in its pool there is work is one bounded look; then each place
 * is asked as by a workflow runner of that repository, so caps and order are the same for both.
 */
import { findRepository } from '../../../db/store/installation.ts';
import { listPoolPlaces, listScopes, markServed, type PoolPlace } from '../../../db/store/pool.ts';
import { type Login, renewIdle } from '../../../db/store/runner.ts';
import type { QueuePlace } from '../../../db/store/turn.ts';
import { LIMITS } from '../../domain/limits.ts';
import { shareOut } from '../../domain/pool-share.ts';
import { Fault } from '../../errors.ts';
import type { Deps } from '../deps.ts';
import { askFor, type GivenLease, type LeaseOutcome, type LeaseRequest, tellLeases } from '../lease.ts';
import { takeTurn } from '../take-turn.ts';
import { poolPlace } from '../wake.ts';
import { wishSlots } from '../wish-slots.ts';

/** A place may turn out to have nothing after all: so often others are looked for. */
const ROUNDS = 3;
/** A repository whose token could not be had is left alone for so long, in ms. */
const REST_MS = 30_000;

/** By process: where the last look of a pool was cut short, and repositories that rest. */
const walks = new WeakMap<Deps, Map<string, ReadonlyMap<string, string>>>();
const resting = new WeakMap<Deps, Map<string, number>>();

/** Leases up to `max` tickets over all that the login's pool is registered for; it never waits. */
export async function leaseOfPool(
  deps: Deps,
  login: Login,
  request: LeaseRequest,
  skip: ReadonlySet<string> = new Set(),
): Promise<LeaseOutcome> {
  const { pool } = login.identity;
  const leases: GivenLease[] = [];
  const served: string[] = [];
  const dry = new Set(skip);
  let again = request.again;
  for (let round = 0; round < ROUNDS && leases.length < request.max; round++) {
    const places = (await look(deps, pool)).filter(({ repositoryId }) => !dry.has(repositoryId));
    if (places.length === 0 && !again) break;
    for (const { place, n } of shareOut(places, request.max - leases.length, LIMITS.poolPlaces.default)) {
      const given = await leaseAt(deps, login, place, { ...request, max: n, again });
      again = false;
      leases.push(...given);
      if (given.length < n) dry.add(place.repositoryId);
      if (given.length > 0) served.push(place.installationId);
    }
    if (again) {
      // nothing is to be had: what an unheard answer had granted goes back all the same
      await askFor(deps, login, { ...request, max: 1 });
      again = false;
    }
  }
  if (leases.length === 0) {
    await renewIdle(deps.database.db, login.id, LIMITS.loginMs.default);
    await wishSlots(deps, poolPlace(pool), () => lookPastSlots(deps, pool));
  } else await noteServed(deps, pool, served);
  return { leases, done: false };
}

/**
 * Whether the pool's next ticket is to come from this repository; also where there is none yet, and one may follow the
 * result. What waits for a slot counts, since the result frees one that is not this repository's alone.
 */
export async function isNextHere(
  deps: Deps,
  pool: string,
  { installationId, repositoryId }: QueuePlace,
): Promise<boolean> {
  const [first] = shareOut(await look(deps, pool, [installationId]), 1, 1);
  return first === undefined || first.place.repositoryId === repositoryId;
}

/** Where the pool has work now, from where the look before was cut short. */
async function look(deps: Deps, pool: string, full: readonly string[] = []): Promise<readonly PoolPlace[]> {
  const mine = walks.get(deps) ?? new Map<string, ReadonlyMap<string, string>>();
  walks.set(deps, mine);
  const seen = await listPoolPlaces(
    deps.database.db,
    pool,
    mine.get(pool) ?? new Map(),
    LIMITS.poolSteps.default,
    full,
  );
  mine.set(pool, seen.after);
  return seen.places;
}

/** Where the pool would have work if it had a slot, as many as one look shares out over. */
async function lookPastSlots(deps: Deps, pool: string): Promise<readonly QueuePlace[]> {
  const scopes = await listScopes(deps.database.db, pool);
  const places = await look(
    deps,
    pool,
    scopes.map((one) => one.installationId),
  );
  const most = LIMITS.poolPlaces.default;
  return shareOut(places, most, most).map(({ place }) => place);
}

async function leaseAt(
  deps: Deps,
  login: Login,
  place: PoolPlace,
  request: LeaseRequest,
): Promise<readonly GivenLease[]> {
  // before anything is granted: a ticket that its runner could not read would be lost with it
  const access = await accessTo(deps, place.repositoryId, place.installationId);
  if (access === null) return [];
  const asked = await askFor(deps, login, request);
  const { granted } = await takeTurn<never>(deps, place, { of: null, ask: asked.ask });
  if (granted.length === 0) return [];
  return (await tellLeases(deps, login, asked, granted, { repositoryId: place.repositoryId, access })).leases;
}

/** A token that reads this one repository (AUT-4); null where GitHub gives none now. */
export async function accessTo(
  deps: Deps,
  repositoryId: string,
  installationId: string,
): Promise<string | null> {
  const rest = resting.get(deps) ?? new Map<string, number>();
  resting.set(deps, rest);
  if ((rest.get(repositoryId) ?? 0) > performance.now()) return null;
  try {
    const repository = await findRepository(deps.database.db, repositoryId);
    if (repository === null) return null;
    const token = await (await deps.github.installation(installationId)).readToken(repository);
    rest.delete(repositoryId);
    return token;
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    rest.set(repositoryId, performance.now() + REST_MS);
    deps.log.warn({ repository: repositoryId, code: error.code }, 'lease');
    return null;
  }
}

/** Whose turn is next only matters where there is more than one installation. */
export async function noteServed(deps: Deps, pool: string, installations: readonly string[]): Promise<void> {
  const { db } = deps.database;
  const distinct = [...new Set([...installations].reverse())].reverse();
  if (distinct.length > 1 || (await listScopes(db, pool)).length > 1) await markServed(db, pool, distinct);
}
