import { addJob } from '../../db/store/job.ts';
import type { Cause } from '../domain/ledger/row-fields.ts';
import type { Deps } from './deps.ts';

/** A comment that may hold commands, as a delivery or GitHub's list tells it. */
export interface CommandComment {
  readonly repository: string;
  readonly pull: string;
  readonly comment: string;
  readonly author: { readonly id: string; readonly login: string; readonly bot: boolean };
  readonly body: string;
  readonly createdAt: string;
  /** Found late by reconciliation (CMD-4). */
  readonly reconciled: boolean;
  readonly cause: Cause;
}

/**
 * Hands a comment to run-command, once however often it is seen: its id is the job's key.
 *
 * Reads: nothing. Writes: a job. Calls: nothing.
 */
export async function queueCommand(deps: Deps, comment: CommandComment): Promise<void> {
  await deps.database.transaction((tx) =>
    addJob(tx, 'run-command', comment, { key: `run-command:${comment.comment}`, priority: -5 }),
  );
}
