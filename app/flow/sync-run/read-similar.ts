/**
 * Which paths a new head may have renamed since the head before (REV-5), where the contents differ and
 * git must compare them. Asked for a new head only; the rest is in the rows.
 *
 * Reads: verified rows. Calls: git. May fail with: `git_unavailable` (retryable).
 */
import type { Run } from '../../../db/store/run.ts';
import { pairFiles } from '../../domain/file-set.ts';
import { comparable } from '../../domain/run-state/carry-findings.ts';
import { foldRows } from '../../domain/run-state/fold.ts';
import { wholeRows } from '../verify-run.ts';
import type { Source, Truth } from './read.ts';

/** What was read, with the pairs that findings may follow. */
export async function withSimilar(source: Source, run: Run, truth: Truth): Promise<Truth> {
  const { content } = truth;
  if (content === null || run.head === null || run.head === truth.pull.head) return truth;
  const rows = await wholeRows(source.deps, run);
  // what does not verify is refused where the head is recorded
  if (rows === null) return truth;
  const { findings, files: before } = foldRows(rows);
  const files = pairFiles(content.reading.files, content.reading.renames).map((file) => ({
    path: file.path,
    ...(file.from === null ? {} : { from: file.from }),
    status: file.status,
    mode: { base: file.modeBase, head: file.modeHead },
    blob: { base: file.blobBase, head: file.blobHead },
  }));
  const { gone, came } = comparable({ findings, before, files });
  if (gone.length === 0 || came.length === 0) return truth;
  const { git, repository, url, token } = source;
  const similar = await git.pairSimilar(repository, url, token, gone, came);
  return { ...truth, content: { ...content, similar } };
}
