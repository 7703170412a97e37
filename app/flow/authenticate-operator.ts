/**
 * Who calls the API of the kill switch (CTL-5): the name of an operator token, where it speaks for the installation.
 *
 * Reads: operator tokens. Writes: nothing. Calls: nothing. May fail with: `unauthorized`, `forbidden`.
 */
import { findOperatorToken } from '../../db/store/operator.ts';
import { WHOLE_APP } from '../../db/store/setting.ts';
import { Refusal } from '../errors.ts';
import type { Deps } from './deps.ts';
import { secretHash } from './login.ts';

/** The name of a token that speaks for an installation; null: for the whole app, which takes a token of the whole app. */
export async function authenticateOperator(
  deps: Pick<Deps, 'database'>,
  token: string | null,
  installation: string | null,
): Promise<string> {
  const held = token === null ? null : await findOperatorToken(deps.database.db, secretHash(token));
  if (held === null)
    throw new Refusal(
      'unauthorized',
      'the operator token is missing, unknown or revoked',
      'a bearer token of countersign operator add NAME',
    );
  if (held.installationId !== WHOLE_APP && held.installationId !== installation)
    throw new Refusal('forbidden', `${held.name} speaks for another installation`, held.installationId);
  return held.name;
}
