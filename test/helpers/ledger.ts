/** Runs and signers for tests of the ledger. */
import type { Actor, Cause } from '../../app/domain/ledger/row-fields.ts';
import { openRun, type UnitDeps } from '../../app/flow/append-rows.ts';
import { newKeys } from '../../app/signing/keys.ts';
import { createSigner, type Signer } from '../../app/signing/signer.ts';
import type { Database } from '../../db/client.ts';
import type { NewRun } from '../../db/store/run.ts';

/** The App itself. */
export const app: Actor = { kind: 'app', id: '1', via: 'delivery' };
/** A delivery. */
export const cause: Cause = { kind: 'delivery', id: 'd-1', sha256: null };
const oid = 'a'.repeat(40);

/** A signer with fresh keys. */
export function testSigner(): Signer {
  return createSigner(newKeys('ledger.test'));
}

/** What a run of a pull request is inserted with. */
export function runRecord(id: string, pull: string, more: Partial<NewRun> = {}): NewRun {
  const now = new Date('2026-11-29T12:00:00.000Z');
  return {
    id,
    installationId: '5',
    repositoryId: '74',
    pull,
    epoch: 1,
    status: 'open',
    toldHead: oid,
    baseRef: 'main',
    headAt: now,
    openedAt: now,
    ...more,
  };
}

/** Opens a run with its first row. */
export async function openTestRun(
  deps: UnitDeps,
  id: string,
  pull: string,
  more: Partial<NewRun> = {},
): Promise<void> {
  await openRun(deps, runRecord(id, pull, more), async (unit) => {
    unit.append('run.opened', {
      block: null,
      actor: app,
      cause,
      data: { pull, group_head: null, epoch: 1, author: null, reason: 'opened' },
    });
  });
}

/** A small row: somebody's command was refused. */
export function smallRow(code: string) {
  return { block: null, actor: app, cause, data: { command: 'rerun', code } } as const;
}

/** Deps of a unit of work on a test database. */
export function unitDeps(database: Database, signer: Signer = testSigner()): UnitDeps {
  return { database, signer };
}
