/**
 * What the command line does to operator tokens (CTL-5): each change is a row of every installation that the token
 * speaks for, in the transaction that makes it. A token is told once and kept as its hash.
 *
 * Reads: installation, operator tokens. Writes: operator tokens; rows `settings.changed`. Calls: nothing.
 * May fail with: `not_found`, `conflict`.
 */
import type { Tx } from '../../db/client.ts';
import { findInstallation, listInstallations } from '../../db/store/installation.ts';
import { addOperatorToken, dropOperatorToken, listOperatorTokens } from '../../db/store/operator.ts';
import { WHOLE_APP } from '../../db/store/setting.ts';
import { Refusal } from '../errors.ts';
import { appendToInstallation, retried, type UnitDeps } from './append-rows.ts';
import type { Ids } from './deps.ts';
import { secretHash } from './login.ts';

/** What it needs: no GitHub, no git. */
export interface OperatorDeps extends UnitDeps {
  readonly ids: Ids;
}

/** A token as `operator list` shows it; `installation` is `all` for the whole app. */
export interface OperatorView {
  readonly name: string;
  readonly installation: string;
  readonly since: Date;
}

/** What is done to the token of a name; `installation` null: of the whole app. */
export type OperatorChange =
  | { readonly change: 'add'; readonly installation: string | null }
  | { readonly change: 'revoke' };

/** Makes or revokes the token of one name; answers a new token's secret, told here and never again. */
export async function changeOperator(
  deps: OperatorDeps,
  name: string,
  change: OperatorChange,
): Promise<string | null> {
  const secret = deps.ids.secret();
  await retried(() =>
    deps.database.transaction((tx) =>
      change.change === 'add' ? add(deps, tx, name, change.installation, secret) : revoke(deps, tx, name),
    ),
  );
  return change.change === 'add' ? secret : null;
}

/** Every operator token, without its secret. */
export async function listOperators({ database }: Pick<UnitDeps, 'database'>): Promise<OperatorView[]> {
  return (await listOperatorTokens(database.db)).map((one) => ({
    name: one.name,
    installation: one.installationId === WHOLE_APP ? 'all' : one.installationId,
    since: one.createdAt,
  }));
}

async function add(
  deps: OperatorDeps,
  tx: Tx,
  name: string,
  installation: string | null,
  secret: string,
): Promise<void> {
  if (installation !== null && (await findInstallation(tx, installation)) === null)
    throw new Refusal('not_found', `no installation ${installation} is known here`, 'another number, or all');
  const of = { name, installationId: installation ?? WHOLE_APP, tokenHash: secretHash(secret) };
  if (!(await addOperatorToken(tx, of)))
    throw new Refusal('conflict', `${name} has a token`, 'revoke it first, or take another name');
  await note(deps, tx, of, 'added');
}

async function revoke(deps: OperatorDeps, tx: Tx, name: string): Promise<void> {
  const gone = await dropOperatorToken(tx, name);
  if (gone === null)
    throw new Refusal('not_found', `${name} has no token`, 'a name that operator list shows');
  await note(deps, tx, gone, 'unset');
}

/** Chains are locked in the order of their ids, so that two changes never wait for each other; last in the transaction. */
async function note(
  deps: OperatorDeps,
  tx: Tx,
  of: { readonly name: string; readonly installationId: string },
  value: 'added' | 'unset',
): Promise<void> {
  const app = of.installationId === WHOLE_APP;
  const one = app ? null : await findInstallation(tx, of.installationId);
  for (const { id, epoch } of app ? await listInstallations(tx) : one === null ? [] : [one])
    await appendToInstallation(deps, tx, { id, epoch }, 'settings.changed', {
      block: null,
      actor: { kind: 'app', id: 'countersign', via: 'command_line' },
      cause: { kind: 'command_line', id: 'operator', sha256: null },
      data: { setting: `operator.${of.name}`, value, ...(app ? { scope: 'app' as const } : {}) },
    });
}
