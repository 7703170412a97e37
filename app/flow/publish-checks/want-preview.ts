/** What `countersign (preview)` on a commit should show: the preview that preview-policy made of its head (RUN-9). */
import type { CheckUnit, StoredCheck } from '../../../db/store/check.ts';
import type { Repository } from '../../../db/store/installation.ts';
import { findPreview } from '../../../db/store/preview.ts';
import { findNewestRun } from '../../../db/store/run.ts';
import type { Deps } from '../deps.ts';
import type { Judged } from '../judge-run.ts';
import { digestOf, placesOf, type Wanted, wantSuperseded } from './want-gate.ts';

/** The preview's check run, concluded at once; null when there is nothing to show and nothing was shown. */
export async function wantPreview(
  deps: Deps,
  unit: CheckUnit,
  repository: Repository,
  _judged: readonly Judged[],
  shown: StoredCheck | undefined,
): Promise<Wanted | null> {
  const { db } = deps.database;
  const preview = await findPreview(db, unit.repositoryId, unit.sha);
  if (preview === null) return shown === undefined ? null : wantSuperseded(deps, unit, shown);
  const run = await findNewestRun(db, repository.id, preview.pull);
  const { conclusion, title, summary } = preview;
  return {
    // where the base branch is not enrolled there is no run that it could be of
    runId: run?.id ?? `preview/${repository.id}/${preview.pull}`,
    digest: digestOf({ conclusion, title, summary }),
    content: {
      status: 'completed',
      conclusion,
      title,
      summary,
      ...(run === null ? {} : { detailsUrl: placesOf(deps, run.id, repository).run }),
    },
    superseded: false,
    seq: null,
  };
}
