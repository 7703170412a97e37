/** What a stage was doing when it did not get where a test waited for it: a time-out alone says nothing. */
import type { SandboxGitHub } from '../../sandbox/github.ts';
import type { TestDatabase } from './database.ts';

const LINES = 60;

/** The newest lines of a log, as its `write` gets them. */
export function keepLines(): { readonly lines: readonly string[]; readonly write: (line: string) => void } {
  const lines: string[] = [];
  return {
    lines,
    write(line) {
      lines.push(line.trimEnd());
      if (lines.length > LINES) lines.shift();
    },
  };
}

/** Deliveries that were not taken or not worked, what is queued, what runs are in, the newest lines of the log. */
export async function accountOf(
  gh: SandboxGitHub,
  database: TestDatabase,
  lines: readonly string[],
): Promise<string> {
  const rows = async (title: string, text: string) => {
    const { rows: found } = await database.database.pool.query(text);
    return found.map((row) => `${title} ${JSON.stringify(row)}`);
  };
  const lost = gh.world.deliveries.filter((one) => one.statusCode !== 202 && one.statusCode !== 200);
  return [
    ...lost.map(
      (one) => `delivery on GitHub: ${one.event} ${one.action ?? ''} ${one.statusCode} ${one.status}`,
    ),
    ...(await rows('delivery', `select event, state, error from delivery where state <> 'done'`)),
    ...(await rows(
      'job',
      `select task_identifier as task, key, attempts, run_at, locked_at, last_error from graphile_worker.jobs`,
    )),
    ...(await rows('run', `select id, pull, status, told_head, head, allowed_rule from run`)),
    ...lines,
  ].join('\n');
}
