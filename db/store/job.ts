/** Jobs of the queue, added in the transaction of what they follow (RUN-6). */
import type { Reader } from '../client.ts';

/** A job to add. `key`: a job with the same key that has not begun is replaced, so many causes make one job. */
export interface NewJob {
  readonly task: string;
  readonly payload: unknown;
  readonly key?: string;
  /** Lower runs first; default 0. */
  readonly priority?: number;
}

// one statement for all; the queue's own type names the columns
const ADD = `select count(*) from graphile_worker.add_jobs(array(
  select spec from json_populate_recordset(null::graphile_worker.job_spec, $1::json) spec))`;

/** Adds jobs in one statement, sent before this returns; of several with one key the last counts. */
export function addJobs(tx: Reader, jobs: readonly NewJob[]): Promise<void> {
  const byKey = new Map<string, NewJob>();
  // the queue refuses one key twice in a statement; sorted keys take their locks in one order everywhere
  for (const [index, job] of jobs.entries()) byKey.set(job.key ?? `\u0000${index}`, job);
  const specs = [...byKey.entries()]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, job]) => ({
      identifier: job.task,
      payload: job.payload ?? {},
      job_key: job.key ?? null,
      priority: job.priority ?? null,
    }));
  return tx.$client.query({ name: 'add_jobs', text: ADD, values: [JSON.stringify(specs)] }).then(() => {});
}

/** Adds one job. */
export function addJob(
  tx: Reader,
  task: string,
  payload: unknown,
  options: { readonly key?: string; readonly priority?: number } = {},
): Promise<void> {
  return addJobs(tx, [{ task, payload, ...options }]);
}
