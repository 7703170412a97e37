import * as z from 'zod';
import { findReadCursor, saveReadCursor } from '../../../db/store/delivery.ts';
import type { Repository } from '../../../db/store/installation.ts';
import { listOpenRuns } from '../../../db/store/run.ts';
import type { Cause } from '../../domain/ledger/row-fields.ts';
import type { GitHub } from '../../github/port.ts';
import type { Deps } from '../deps.ts';
import { queueCommand } from '../queue-command.ts';

/** Where a repository's comments were read to: the newest change, and the highest id. Times are GitHub's own. */
const cursorSchema = z.object({ at: z.string(), id: z.string() });
/** How far the first look goes back before the oldest open run. */
const MARGIN_MS = 60_000;

/**
 * Hands comments that came since the last look to run-command, which does each once (CMD-4). One
 * request for the whole repository. An edited comment is no new one: what it says now was not given
 * when it was created.
 */
export async function readComments(
  deps: Deps,
  github: GitHub,
  repository: Repository,
  cause: Cause,
): Promise<number> {
  const { db } = deps.database;
  const runs = await listOpenRuns(db, { repositoryId: repository.id });
  const first = runs[0];
  if (first === undefined) return 0;
  const name = `comments/${repository.id}`;
  const kept = await findReadCursor(db, name);
  const seen =
    kept === null
      ? { at: isoSeconds(first.openedAt.getTime() - MARGIN_MS), id: '0' }
      : cursorSchema.parse(JSON.parse(kept));
  const pulls = new Set(runs.map((run) => run.pull));
  let { at, id } = seen;
  let handed = 0;
  for (const comment of await github.listRecentComments(repository, seen.at)) {
    if (comment.updatedAt > at) at = comment.updatedAt;
    // ids only rise: what is below was seen, or edited since
    if (BigInt(comment.id) <= BigInt(seen.id)) continue;
    if (BigInt(comment.id) > BigInt(id)) id = comment.id;
    if (comment.updatedAt !== comment.createdAt || !pulls.has(comment.number)) continue;
    if (comment.appId === deps.github.appId || comment.userId === null || comment.login === null) continue;
    if (!/[/@]/.test(comment.body)) continue;
    await queueCommand(deps, {
      repository: repository.id,
      pull: comment.number,
      comment: comment.id,
      author: { id: comment.userId, login: comment.login, bot: comment.bot },
      body: comment.body,
      createdAt: comment.createdAt,
      reconciled: true,
      cause,
    });
    handed += 1;
  }
  const after = JSON.stringify({ at, id });
  if (after !== kept) await deps.database.transaction((tx) => saveReadCursor(tx, name, after));
  return handed;
}

function isoSeconds(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}
