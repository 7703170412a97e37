/** S2: what a person waits for beyond the review itself, on the whole road with an idle sandbox. */

import type { SandboxGitHub } from '../sandbox/github.ts';
import type { Repository } from '../sandbox/repository.ts';
import { type Bench, median, versionsOf } from './bench.ts';
import { withRoad } from './road/stage.ts';

const REPS = 7;
const MUST_MS = 1_000;
/** An idle road has its whole budget of writes: what one push spends is given back at one a second. */
const BETWEEN_MS = 2_500;

/** Push → gate pending on the new head; last result accepted → last check run written. The slower of the two medians counts. */
export const bench: Bench = {
  id: 'S2',
  what: 'push → gate pending on the head; last result accepted → last check run (the slower median)',
  must: MUST_MS,
  aim: 250,
  unit: 'ms',
  run: () =>
    withRoad(async ({ gh, repository, author, check, settle, query, open, postgres }) => {
      const pull = await open('topic', {
        'src/a.ts': 'export const a = 0;\n',
        'src/b.ts': 'export const b = 0;\n',
      });
      await check(pull.head.sha, 'countersign', (one) => one.status === 'completed');
      await settle();
      const pending: number[] = [];
      const final: number[] = [];
      for (let rep = 0; rep <= REPS; rep++) {
        // the commit exists before the push: only the move of the branch is inside
        const files = { 'src/a.ts': `export const a = ${rep + 1}; // NIT\n` };
        const sha = await repository.commit({
          branch: `next-${rep}`,
          from: 'refs/heads/topic',
          author,
          message: `Change ${rep}`,
          files,
        });
        await settle();
        await new Promise((resolve) => setTimeout(resolve, BETWEEN_MS));
        const pushed = Date.now();
        await pull.forcePush(sha);
        await check(sha, 'countersign', () => true);
        const shown = writesOn(gh, repository, sha)[0];
        await check(sha, 'countersign', (one) => one.status === 'completed');
        await settle();
        const [accepted] = await query<{ at: Date }>(
          'select max(ended_at) as at from ticket where run_id = (select id from run where told_head = $1)',
          [sha],
        );
        const last = writesOn(gh, repository, sha).at(-1);
        if (shown === undefined || last === undefined || accepted === undefined)
          throw new Error('nothing was measured');
        if (rep === 0) continue; // warm-up
        pending.push(shown.at.getTime() - pushed);
        final.push(last.at.getTime() - accepted.at.getTime());
      }
      const value = Math.max(median(pending), median(final));
      return {
        value,
        peer: null,
        ok: value <= MUST_MS,
        reps: REPS,
        versions: versionsOf(['graphile-worker', 'probot'], {
          postgres,
          pending: `${median(pending)} ms`,
          final: `${median(final)} ms`,
        }),
      };
    }),
};

/** Check-run writes on a commit, in order: creates by its sha, updates by the ids of its check runs. */
function writesOn(gh: SandboxGitHub, repository: Repository, sha: string) {
  const ids = new Set(gh.checkRuns(repository, sha).map((check) => String(check.id)));
  return gh.requests.filter((request) => {
    if (request.operation === 'checks/create')
      return (request.body as { head_sha?: string } | null)?.head_sha === sha;
    return request.operation === 'checks/update' && ids.has(request.path.split('/').at(-1) ?? '');
  });
}
