/** Which block's commit touched a path last (OWN-7), as git tells it; in no transaction. */

import { listBlocks } from '../../../db/store/block.ts';
import type { Repository } from '../../../db/store/installation.ts';
import type { Run } from '../../../db/store/run.ts';
import { pathKey } from '../../domain/path.ts';
import { Fault } from '../../errors.ts';
import { cloneUrl } from '../clone-url.ts';
import type { Deps } from '../deps.ts';

/** The block, or null where git did not tell: the person is then asked to name one. */
export async function lastTouch(
  deps: Deps,
  run: Run,
  repository: Repository,
  path: string,
): Promise<string | null> {
  if (run.head === null || run.base === null || run.pull === null) return null;
  const blocks = (await listBlocks(deps.database.db, run.id)).filter((block) => block.status !== 'dropped');
  if (blocks.length < 2) return blocks[0]?.id ?? null;
  try {
    const github = await deps.github.installation(run.installationId);
    const reading = await deps.git.readPull({
      repository,
      cloneUrl: cloneUrl(deps.settings, repository),
      token: await github.readToken(repository),
      pull: run.pull,
      head: run.head,
      base: run.base,
      mergeBase: run.mergeBase,
    });
    const blockOf = new Map(blocks.flatMap((block) => block.commits.map((oid) => [oid, block.id] as const)));
    const commit = reading.commits.findLast(
      (one) => blockOf.has(one.oid) && one.changes.some((change) => pathKey(change.path) === pathKey(path)),
    );
    return (commit === undefined ? undefined : blockOf.get(commit.oid)) ?? null;
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    deps.log.warn({ code: error.code, run: run.id }, 'run-command-touch');
    return null;
  }
}
