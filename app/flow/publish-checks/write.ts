/** One check run as it is wanted, to GitHub: the intent is committed, GitHub is asked, the effect is committed (PUB-2). */
import {
  type CheckUnit,
  identifyCheck,
  intendCheck,
  type StoredCheck,
  wantCheck,
  writtenCheck,
} from '../../../db/store/check.ts';
import type { Repository } from '../../../db/store/installation.ts';
import { FINDINGS_NAME, isGateName } from '../../domain/check.ts';
import type { WriteTurn } from '../../github/port/check.ts';
import type { Deps } from '../deps.ts';
import type { PublishChecksOutcome } from '../publish-checks.ts';
import { annotate, planOf } from './annotate.ts';
import { create, lookUp } from './create.ts';
import type { WantedFindings } from './want-findings.ts';
import type { Wanted } from './want-gate.ts';

/** When a sweep looks again after a write whose end we did not live to see. */
export const WATCH_MS = 60_000;

/** Whose turn a write is (PUB-1): the first gate of a head and its conclusion never wait for anything else. */
export function turnOf(unit: CheckUnit, shown: StoredCheck | undefined, wanted: Wanted): WriteTurn {
  if (wanted.superseded) {
    // a push back to that commit must not find a green
    return shown?.conclusion === 'success' && isGateName(unit.name) ? 'work' : 'old';
  }
  if (!isGateName(unit.name)) return unit.name === FINDINGS_NAME ? 'findings' : 'block';
  const first = shown === undefined || shown.githubId === null;
  return first || wanted.content.conclusion !== undefined ? 'verdict' : 'work';
}

/** Writes check run `n` of a unit: intent, GitHub, effect. Throws what GitHub does as `Fault`s. */
export async function write(
  deps: Deps,
  unit: CheckUnit,
  repository: Repository,
  shown: StoredCheck | undefined,
  n: number,
  wanted: Wanted | WantedFindings,
): Promise<PublishChecksOutcome> {
  const { db } = deps.database;
  const plan = planOf(shown, wanted);
  const turn = turnOf(unit, shown, wanted);
  const intent = { runId: wanted.runId, wanted: wanted.digest, plan, retryInMs: WATCH_MS };
  if (shown === undefined) await deps.database.transaction((tx) => intendCheck(tx, unit, { n, ...intent }));
  else await wantCheck(db, unit, n, intent);
  const github = await deps.github.installation(repository.installationId);
  let githubId = shown?.githubId ?? null;
  let there = shown?.annotations ?? 0;
  let created = false;
  if (githubId === null && shown !== undefined) {
    const found = await lookUp(github, unit, repository, n);
    githubId = found?.id ?? null;
    there = found?.annotations ?? 0;
    if (githubId !== null) await identifyCheck(db, unit, n, githubId);
    // an old commit that never got its check run needs none
    else if (wanted.superseded) return written(deps, unit, n, wanted, 0, 'updated');
  } else if (shown !== undefined && githubId !== null && plan !== null && shown.written !== shown.wanted) {
    // an earlier write may have got further than we know: GitHub's count decides
    there = (await github.getCheckRun(repository, githubId))?.annotations ?? there;
  }
  if (githubId === null) {
    const first = await create(github, unit, repository, n, plan, wanted, turn);
    githubId = first.id;
    there = first.posted;
    created = true;
    if (first.whole) return written(deps, unit, n, wanted, there, 'created', githubId);
    await identifyCheck(db, unit, n, githubId);
  }
  if (plan === null || !('order' in wanted)) {
    await github.updateCheckRun(repository, githubId, wanted.content, turn);
    return written(deps, unit, n, wanted, there, created ? 'created' : 'updated');
  }
  const concluded = shown?.state === 'concluded';
  const input = { github, repository, unit, n, githubId, posted: there, plan, wanted, turn, concluded };
  const { posted } = await annotate(deps, input);
  return written(deps, unit, n, wanted, posted, created ? 'created' : 'updated');
}

async function written(
  deps: Deps,
  unit: CheckUnit,
  n: number,
  wanted: Wanted,
  annotations: number,
  kind: 'created' | 'updated',
  githubId?: string,
): Promise<PublishChecksOutcome> {
  const conclusion = wanted.content.conclusion ?? null;
  const { digest, seq } = wanted;
  await writtenCheck(deps.database.db, unit, n, {
    conclusion,
    written: digest,
    annotations,
    seq,
    dueInMs: null,
    ...(githubId === undefined ? {} : { githubId }),
  });
  return { kind, n };
}
