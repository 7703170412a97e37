/**
 * `/reload` (RUN-8): the policy of the base branch is read again, by the contents API for the gate and
 * by git for the run, and the gate is decided anew. Nothing is recorded unless it changed.
 *
 * Reads: the run. Writes: nothing. Queues: enrol, sync-run, decide-gate. May fail with: nothing.
 */
import { doneReply } from '../../domain/command/reply.ts';
import { Markdown, md } from '../../domain/summary/markdown.ts';
import { type Given, readAgain } from './given.ts';

/** Queues what reads the policy again. */
export function reload(given: Given): Markdown {
  const { run } = given.unit;
  given.unit.enqueue(
    'enrol',
    { repository: run.repositoryId, baseRef: run.baseRef },
    { key: `enrol:${run.repositoryId}:${run.baseRef}` },
  );
  readAgain(given);
  const branch = Markdown.code(run.baseRef);
  return doneReply(
    given.prefix,
    'reload',
    md`the policy on ${branch} is read again, and the gate decided by it.`,
  );
}
