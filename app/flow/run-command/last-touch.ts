/** Which block's commit touched a path last (OWN-7), as git tells it; in no transaction. */

import { listBlocks } from '../../../db/store/block.ts';
import type { Repository } from '../../../db/store/installation.ts';
import type { Run } from '../../../db/store/run.ts';
import { pathKey } from '../../domain/path.ts';
import { Fault } from '../../errors.ts';
import { cloneUrl } from '../clone-url.ts';
import type { Deps } from '../deps.ts';

/** The block of each path by its path key; absent where git did not tell: the person is then asked to name one. */
export async function lastTouches(
  deps: Deps,
  run: Run,
  repository: Repository,
  paths: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const touched = new Map<string, string>();
  if (paths.length === 0 || run.head === null || run.base === null || run.pull === null) return touched;
  const blocks = (await listBlocks(deps.database.db, run.id)).filter((block) => block.status !== 'dropped');
  const [only] = blocks;
  if (blocks.length < 2) {
    if (only !== undefined) for (const path of paths) touched.set(pathKey(path), only.id);
    return touched;
  }
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
    const wanted = new Set(paths.map(pathKey));
    const blockOf = new Map(blocks.flatMap((block) => block.commits.map((oid) => [oid, block.id] as const)));
    for (const commit of reading.commits) {
      const block = blockOf.get(commit.oid);
      if (block === undefined) continue;
      for (const { path } of commit.changes) if (wanted.has(pathKey(path))) touched.set(pathKey(path), block);
    }
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    deps.log.warn({ code: error.code, run: run.id }, 'run-command-touch');
  }
  return touched;
}
