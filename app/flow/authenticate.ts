/**
 * Who calls: the login that a bearer token opens (RID-1).
 *
 * Reads: login, runner. Writes: nothing. Calls: nothing. May fail with: `unauthorized`.
 */
import { findLogin, type Login } from '../../db/store/runner.ts';
import { Refusal } from '../errors.ts';
import type { Deps } from './deps.ts';
import { secretHash } from './login.ts';

/** The login of a token while it holds; `unauthorized` says to log in again. */
export async function authenticate(deps: Deps, token: string | null): Promise<Login> {
  const login = token === null ? null : await findLogin(deps.database.db, secretHash(token));
  if (login === null)
    throw new Refusal('unauthorized', 'the login token is missing, unknown or over', 'POST /api/v1/login');
  return login;
}
