/**
 * Who calls: the login that a bearer token opens (RID-1). Whatever it asks for, its runner lives (LSE-6): one that
 * works short tickets one after another neither waits for a lease nor beats.
 *
 * Reads: login, runner. Writes: runner, where it was not heard of for a while. Calls: nothing.
 * May fail with: `unauthorized`.
 */
import { findLogin, type Login, touchRunner } from '../../db/store/runner.ts';
import { LIMITS } from '../domain/limits.ts';
import { Refusal } from '../errors.ts';
import type { Deps } from './deps.ts';
import { secretHash } from './login.ts';

/** Well before a runner counts as gone. */
const QUIET_MS = LIMITS.runnerFreshMs.default / 3;

/** The login of a token while it holds; `unauthorized` says to log in again. */
export async function authenticate(deps: Deps, token: string | null): Promise<Login> {
  const login = token === null ? null : await findLogin(deps.database.db, secretHash(token), QUIET_MS);
  if (login === null)
    throw new Refusal('unauthorized', 'the login token is missing, unknown or over', 'POST /api/v1/login');
  if (login.quiet) await touchRunner(deps.database.db, login.runnerId);
  return login;
}
