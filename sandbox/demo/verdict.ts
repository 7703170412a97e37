/** Waiting for the gate as a person would watch it: by the check run that governs the required check. */
import type { CheckRun } from '../model.ts';
import type { Pull } from '../pull.ts';
import type { Stage } from './stage.ts';

const LIMIT_MS = 120_000;

/** Resolves with the governing check run once it is `present` or `concluded`; fails after two minutes, saying what it saw last. */
export async function verdictOn(
  { gh, app }: Pick<Stage, 'gh' | 'app'>,
  pull: Pull,
  sha: string,
  until: 'present' | 'concluded',
): Promise<CheckRun> {
  const end = performance.now() + LIMIT_MS;
  for (;;) {
    const run = gh.governing(pull.repository, sha, 'countersign', app);
    if (run !== null && (until === 'present' || run.status === 'completed')) return run;
    if (performance.now() > end)
      throw new Error(
        `no verdict on ${sha} in ${LIMIT_MS / 1000} s; the check run says: ${run?.title ?? 'nothing'}\n${run?.summary ?? ''}`,
      );
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}

/** Resolves when the server has no job left to do: everything that it will publish by now is published. */
export async function published({ server }: Pick<Stage, 'server'>): Promise<void> {
  for (let quiet = 0; quiet < 3; ) {
    const { rows } = await server.deps.database.pool.query<{ n: string }>(
      'select count(*) as n from graphile_worker.jobs where run_at <= now() or locked_at is not null',
    );
    quiet = rows[0]?.n === '0' ? quiet + 1 : 0;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
