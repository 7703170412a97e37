/** What `countersign / block <id>` on a commit should show: made once its block has a verdict, concluded (PUB-1). */
import type { CheckUnit, StoredCheck } from '../../../db/store/check.ts';
import type { Repository } from '../../../db/store/installation.ts';
import { blockOfCheckName } from '../../domain/check.ts';
import { compileShow } from '../../domain/finding/show.ts';
import { type BlockVerdict, decideBlocks } from '../../domain/gate/block.ts';
import { blockReportRefs, makeBlockReport } from '../../domain/summary/block.ts';
import { Markdown, md } from '../../domain/summary/markdown.ts';
import { LIMIT_BYTES, renderReport } from '../../domain/summary/render.ts';
import { titleOf } from '../../domain/summary/title.ts';
import type { Deps } from '../deps.ts';
import type { Judged } from '../judge-run.ts';
import { holderOf } from '../share-head.ts';
import { digestOf, placesOf, publishedHead, textsOf, type Wanted, wantSuperseded } from './want-gate.ts';

/** Most findings whose titles a summary shows. */
const TITLES = 200;

/** The blocks of a run that get check runs, by id, with their verdicts as far as they have one; none where the policy says `off`. */
export function blocksOf({
  policy,
  state,
  decision,
}: Pick<Judged, 'policy' | 'state' | 'decision'>): ReadonlyMap<string, BlockVerdict | null> {
  return policy?.publish.blocks === 'auto' ? decideBlocks(state, decision) : new Map();
}

/** A block's check run; null when it has no verdict, and what is shown may stay. */
export async function wantBlock(
  deps: Deps,
  unit: CheckUnit,
  repository: Repository,
  judged: readonly Judged[],
  shown: StoredCheck | undefined,
): Promise<Wanted | null> {
  if (judged.length === 0) return shown === undefined ? null : wantSuperseded(deps, unit, shown);
  const id = blockOfCheckName(unit.name) ?? '';
  const own = judged.flatMap((one) => {
    const verdict = blocksOf(one).get(id);
    return verdict === undefined ? [] : [{ one, verdict }];
  });
  if (own.length === 0) {
    // before the head was read nobody can say that the block is gone
    const unread = judged.some((one) => one.verified !== null && one.decision.counts.files === 0);
    return shown === undefined || unread ? null : gone(shown, placesOf(deps, shown.runId, repository).run);
  }
  const concluded = own.flatMap(({ one, verdict }) =>
    verdict === null ? [] : [{ ...one, decision: verdict.decision, verdict }],
  );
  const worst = holderOf(concluded);
  const holder = concluded.find((one) => one === worst);
  if (holder === undefined) return null;
  const { state, verdict, run } = holder;
  const refs = blockReportRefs(state, verdict, TITLES);
  const about = { published: publishedHead(deps, holder), places: placesOf(deps, run.id, repository) };
  const shows = compileShow(holder.policy?.review.show ?? null);
  const report = makeBlockReport(state, verdict, await textsOf(deps, refs), about, shows);
  const { conclusion } = verdict.decision;
  // a verdict is concluded: `decideBlocks` gives no other
  if (conclusion === 'in_progress' || conclusion === 'queued') return null;
  return {
    runId: run.id,
    digest: verdict.digest,
    content: {
      status: 'completed',
      conclusion,
      title: titleOf(verdict.decision),
      summary: renderReport(report),
      detailsUrl: report.places.run,
    },
    superseded: false,
    once: true,
    seq: state.gate?.seq ?? null,
  };
}

/** What is no block of this head any more (claimed away, switched off, not verified) leaves no success behind. */
function gone(shown: StoredCheck, page: string): Wanted {
  const title = 'No verdict of its own any more';
  const why = md`On this commit the block has no verdict of its own any more; see ${Markdown.link(md`the run's page`, page)}.`;
  return {
    runId: shown.runId,
    digest: digestOf({ title }),
    content: {
      status: 'completed',
      conclusion: 'cancelled',
      title,
      summary: why.cut(LIMIT_BYTES, md`…`).text,
      detailsUrl: page,
    },
    superseded: true,
    seq: shown.seq,
  };
}
