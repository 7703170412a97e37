/** What a runner shows: its login in the header, its lease in the body (LSE-3). */
import type { Context } from 'hono';
import { authenticate } from '../flow/authenticate.ts';
import type { Deps } from '../flow/deps.ts';

/** The token in the header of a request, of a login or of an operator; null where there is none. */
export function bearer(c: Context): string | null {
  return /^Bearer ([A-Za-z0-9_-]{20,200})$/.exec(c.req.header('authorization') ?? '')?.[1] ?? null;
}

/** The claim on a lease, once the login holds. */
export async function claimOf(
  c: Context,
  deps: Deps,
  lease: string,
  body: { readonly token: string; readonly grant: number },
) {
  return { login: await authenticate(deps, bearer(c)), lease, token: body.token, grant: body.grant };
}
