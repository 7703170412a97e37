/** Jobs of the queue, added in the transaction of what they follow (RUN-6). */
import type { Reader } from '../client.ts';
import { fly, type Statement } from '../flight.ts';

/** A job to add. `key`: a job with the same key that has not begun is replaced, so many causes make one job. */
export interface NewJob {
  readonly task: string;
  readonly payload: unknown;
  readonly key?: string;
  /** Lower runs first; default 0. */
  readonly priority?: number;
  /** Begins so many milliseconds from now, or when one of its key that waits would; one without brings it forward. */
  readonly afterMs?: number;
}

// one statement for all; the queue's own type names the columns
const ADD = `select count(*) from graphile_worker.add_jobs(array(
  select spec from json_populate_recordset(null::graphile_worker.job_spec, $1::json) spec))`;
const ADD_LATER = `select count(*) from graphile_worker.add_jobs(array(
  select row(s.identifier, s.payload, null, clock_timestamp() + s.after_ms * interval '1 millisecond', null, s.job_key, s.priority, null)::graphile_worker.job_spec
  from json_to_recordset($1::json) as s(identifier text, payload json, after_ms float8, job_key text, priority integer)), true)`;

/**
 * The statements that add jobs: one, or several in the order of their keys where some begin later; none when
 * there are none. Of several with one key the last counts, and one that begins now before one that does not.
 */
export function jobStatements(jobs: readonly NewJob[]): Statement[] {
  const byKey = new Map<string, NewJob>();
  // the queue refuses one key twice in a statement; sorted keys take their locks in one order everywhere
  for (const [index, job] of jobs.entries()) {
    const key = job.key ?? `\u0000${index}`;
    const other = byKey.get(key);
    if (other === undefined || other.afterMs !== undefined || job.afterMs === undefined) byKey.set(key, job);
  }
  const parts: { later: boolean; specs: object[] }[] = [];
  for (const [, job] of [...byKey.entries()].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const later = job.afterMs !== undefined;
    if (parts.at(-1)?.later !== later) parts.push({ later, specs: [] });
    parts.at(-1)?.specs.push({
      identifier: job.task,
      payload: job.payload ?? {},
      job_key: job.key ?? null,
      priority: job.priority ?? null,
      ...(later ? { after_ms: job.afterMs } : {}),
    });
  }
  return parts.map(({ later, specs }) => ({
    name: later ? 'add_jobs_later' : 'add_jobs',
    text: later ? ADD_LATER : ADD,
    values: [JSON.stringify(specs)],
  }));
}

/** Adds jobs as `jobStatements` says. */
export async function addJobs(tx: Reader, jobs: readonly NewJob[]): Promise<void> {
  await fly(tx.$client, jobStatements(jobs));
}

/** Adds one job. */
export function addJob(
  tx: Reader,
  task: string,
  payload: unknown,
  options: Pick<NewJob, 'key' | 'priority' | 'afterMs'> = {},
): Promise<void> {
  return addJobs(tx, [{ task, payload, ...options }]);
}
