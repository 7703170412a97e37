/**
 * What a visitor may do in a repository, by GitHub's word at most a minute old (OPS-8). It is asked with
 * the installation's own token, so no token of a person is kept; the answer counts for the account it
 * names, never for a login that somebody else has taken since.
 *
 * Reads: run, repository. Writes: nothing. Calls: GitHub's permission of a collaborator. May fail with:
 * `not_found`, `rate_limited`, what GitHub does.
 */
import type { Database } from '../../db/client.ts';
import { findRepository, type Repository } from '../../db/store/installation.ts';
import { findRun, type Run } from '../../db/store/run.ts';
import { LIMITS } from '../domain/limits.ts';
import { Fault, Refusal } from '../errors.ts';
import type { Permission } from '../github/port.ts';
import type { Deps } from './deps.ts';
import type { Visitor } from './read-visit.ts';

const ORDER: readonly Permission[] = ['none', 'read', 'triage', 'write', 'maintain', 'admin'];

/** Whether a permission is at least another one. */
export function reaches(permission: Permission, least: Permission): boolean {
  return ORDER.indexOf(permission) >= ORDER.indexOf(least);
}

interface Memory {
  /** By repository and person; oldest first. */
  readonly rights: Map<string, { readonly atMs: number; readonly answer: Promise<Permission> }>;
  /** Look-ups that a person made us do, in the minute that began at `sinceMs`. */
  readonly spent: Map<string, { readonly sinceMs: number; count: number }>;
}

const memory = new WeakMap<Database, Memory>();
const KEPT = 20_000;

/** The visitor's permission in a repository; `none` where we cannot ask. Throws `rate_limited` when the visitor made us ask too often. */
export async function readRight(deps: Deps, visitor: Visitor, repository: Repository): Promise<Permission> {
  if (repository.status !== 'active') return 'none';
  const { rights } = memoryOf(deps.database);
  const key = `${repository.id} ${visitor.userId}`;
  const now = visitor.now.getTime();
  const known = rights.get(key);
  const age = known === undefined ? Number.POSITIVE_INFINITY : now - known.atMs;
  if (known !== undefined && age >= 0 && age < LIMITS.rightMs.default) return known.answer;
  spendLookup(deps, visitor, 1);
  const answer = ask(deps, visitor, repository);
  rights.delete(key);
  rights.set(key, { atMs: now, answer });
  // a failure is not kept: the next request asks again
  answer.catch(() => rights.delete(key));
  trim(rights);
  return answer;
}

/** Counts look-ups on GitHub against the visitor's minute: nobody uses up an installation's quota by reloading. Throws `rate_limited`. */
export function spendLookup(deps: Deps, visitor: Visitor, count: number): void {
  const { spent } = memoryOf(deps.database);
  const now = visitor.now.getTime();
  const known = spent.get(visitor.userId);
  const fresh = known === undefined || now - known.sinceMs >= LIMITS.rightMs.default || now < known.sinceMs;
  const minute = fresh ? { sinceMs: now, count: 0 } : known;
  if (minute.count + count > LIMITS.rightLookups.default)
    throw new Refusal('rate_limited', 'too many look-ups on GitHub in a minute', 'try again in a minute');
  minute.count += count;
  spent.delete(visitor.userId);
  spent.set(visitor.userId, minute);
  trim(spent);
}

async function ask(deps: Deps, visitor: Visitor, repository: Repository): Promise<Permission> {
  try {
    const github = await deps.github.installation(repository.installationId);
    const { permission, userId } = await github.getPermission(repository, visitor.login);
    return userId === visitor.userId ? permission : 'none';
  } catch (error) {
    const gone = error instanceof Fault && GONE.has(error.code);
    if (gone) return 'none';
    throw error;
  }
}

/** Where GitHub tells us nothing any more we show nothing. */
const GONE: ReadonlySet<string> = new Set(['installation_gone', 'github_not_found', 'permissions_missing']);

/** A run that a visitor may read. */
export interface ReadableRun {
  readonly run: Run;
  readonly repository: Repository;
  readonly permission: Permission;
}

/** The run, if the visitor may read its repository; `not_found`, in the same words, for one they may not and for none. */
export async function readableRun(deps: Deps, visitor: Visitor, id: string): Promise<ReadableRun> {
  const { db } = deps.database;
  const run = /^[A-Za-z0-9_-]{1,64}$/.test(id) ? await findRun(db, id) : null;
  const repository = run === null ? null : await findRepository(db, run.repositoryId);
  if (run === null || repository === null) throw noSuchRun();
  const permission = await readRight(deps, visitor, repository);
  if (!reaches(permission, 'read')) throw noSuchRun();
  return { run, repository, permission };
}

/** What is answered for a run that is not there and for one that may not be seen. */
export function noSuchRun(): Refusal {
  return new Refusal('not_found', 'there is no such run, or you may not see it');
}

function memoryOf(database: Database): Memory {
  const known = memory.get(database);
  if (known !== undefined) return known;
  const made: Memory = { rights: new Map(), spent: new Map() };
  memory.set(database, made);
  return made;
}

function trim(map: Map<string, unknown>): void {
  for (const key of map.keys()) {
    if (map.size <= KEPT) return;
    map.delete(key);
  }
}
