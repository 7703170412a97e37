/**
 * Answers in the one sticky comment of a pull request (CMD-4): made once, found again after a lost
 * answer, then edited. What it says is made of the stored replies, so writing it twice changes nothing.
 *
 * Reads: command, sticky. Writes: sticky. Calls: GitHub, under a lock and in no transaction.
 * May fail with: `lock_busy`, `github_unavailable`, `github_rate_limited` (retryable).
 */
import { createHash } from 'node:crypto';
import { listReplies, type StoredCommand } from '../../../db/store/command.ts';
import type { Repository } from '../../../db/store/installation.ts';
import { withLock } from '../../../db/store/lock.ts';
import type { Run } from '../../../db/store/run.ts';
import { findSticky, intendSticky, type StoredSticky, writtenSticky } from '../../../db/store/sticky.ts';
import { stickyBody, stickyMarker } from '../../domain/command/reply.ts';
import { Fault } from '../../errors.ts';
import type { GitHub } from '../../github/port.ts';
import type { Deps } from '../deps.ts';

/** Most comments whose replies are shown. */
const MOST_COMMENTS = 10;
const LOCK_WAIT_MS = 30_000;
/** GitHub's clock and ours may differ when a lost comment is looked for. */
const SKEW_MS = 600_000;

/** Makes the sticky comment of a run's pull request say its newest replies. */
export async function answer(
  deps: Deps,
  github: GitHub,
  repository: Repository,
  run: Run & { readonly pull: string },
  prefix: string,
): Promise<void> {
  const { database } = deps;
  const place = { repositoryId: run.repositoryId, pull: run.pull };
  const marker = stickyMarker(place.repositoryId, place.pull);
  await withLock(database, `sticky:${place.repositoryId}/${place.pull}`, LOCK_WAIT_MS, async () => {
    const replies = await listReplies(database.db, run.id, MOST_COMMENTS);
    const page = `${deps.settings.serverUrl}/${repository.owner}/${repository.name}/pull/${run.pull}`;
    const body = stickyBody(marker, prefix, grouped(replies, page));
    const written = createHash('sha256').update(body, 'utf8').digest('hex');
    let known = await findSticky(database.db, place);
    if (known !== null && known.commentId === null)
      known = await findAgain(deps, github, repository, known, marker);
    if (known?.commentId != null) {
      if (known.written === written) return;
      try {
        await github.updateComment(repository, known.commentId, body);
        await writtenSticky(database.db, place, { commentId: known.commentId, written });
        return;
      } catch (error) {
        // somebody deleted it: another is made
        if (!(error instanceof Fault) || error.code !== 'github_not_found') throw error;
      }
    }
    await intendSticky(database.db, place);
    const { id } = await github.createComment(repository, place.pull, body);
    await writtenSticky(database.db, place, { commentId: id, written });
  });
}

/** A creation whose answer was lost: the comment is ours and begins with our marker, or it was never made. */
async function findAgain(
  deps: Deps,
  github: GitHub,
  repository: Repository,
  known: StoredSticky,
  marker: string,
): Promise<StoredSticky> {
  const since = new Date(known.intendedAtMs - SKEW_MS).toISOString();
  const comments = await github.listComments(repository, known.pull, since);
  const found = comments.find((one) => one.appId === deps.github.appId && one.body.startsWith(marker));
  if (found === undefined) return known;
  await writtenSticky(deps.database.db, known, { commentId: found.id, written: null });
  return { ...known, commentId: found.id, written: null };
}

function grouped(
  replies: readonly StoredCommand[],
  page: string,
): { readonly address: string | null; readonly login: string; readonly replies: readonly string[] }[] {
  const groups = new Map<string, StoredCommand[]>();
  for (const reply of replies) {
    const group = groups.get(reply.commentId);
    if (group === undefined) groups.set(reply.commentId, [reply]);
    else group.push(reply);
  }
  return [...groups].map(([comment, commands]) => ({
    // a press has no comment to point to, and a number below 1 (PUB-6)
    address: comment.startsWith('-') ? null : `${page}#issuecomment-${comment}`,
    login: commands[0]?.login ?? '',
    replies: commands.flatMap((one) => one.reply ?? []),
  }));
}
