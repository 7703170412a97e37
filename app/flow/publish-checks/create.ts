/** Making a check run: GitHub's create is not idempotent, so it is asked once, and looked for when its answer was lost (PUB-2). */
import type { AnnotationPlan, CheckUnit } from '../../../db/store/check.ts';
import { externalId } from '../../domain/check.ts';
import { BATCH } from '../../domain/summary/annotation.ts';
import { Fault } from '../../errors.ts';
import type { CheckRunContent, CheckRunInfo, WriteTurn } from '../../github/port/check.ts';
import type { GitHub, RepositoryAddress } from '../../github/port.ts';
import type { WantedFindings } from './want-findings.ts';
import type { Wanted } from './want-gate.ts';

/** Finds the check run of an intent whose create was not answered; of two the newest is kept and the other closed (case 36). */
export async function lookUp(
  github: GitHub,
  unit: CheckUnit,
  repository: RepositoryAddress,
  n: number,
): Promise<CheckRunInfo | undefined> {
  const id = externalId(unit.repositoryId, unit.sha, unit.name, n);
  const [newest, ...others] = (await github.listCheckRuns(repository, unit.sha, unit.name)).filter(
    (check) => check.externalId === id,
  );
  for (const other of others) {
    if (other.conclusion !== null) continue;
    const twin = {
      status: 'completed',
      conclusion: 'cancelled',
      title: 'Made twice',
      summary: 'An answer of GitHub was lost and this check run was made twice; the newer one counts.',
    } as const;
    await github.updateCheckRun(repository, other.id, twin, 'old');
  }
  return newest;
}

/** Asks GitHub once. With annotations a refusal may be theirs: then it is made without them, and they are posted one batch at a time. */
export async function create(
  github: GitHub,
  unit: CheckUnit,
  repository: RepositoryAddress,
  n: number,
  plan: AnnotationPlan | null,
  wanted: Wanted | WantedFindings,
  turn: WriteTurn,
): Promise<{ readonly id: string; readonly posted: number; readonly whole: boolean }> {
  const at = {
    name: unit.name,
    headSha: unit.sha,
    externalId: externalId(unit.repositoryId, unit.sha, unit.name, n),
  };
  if (plan === null || !('order' in wanted)) {
    const { id } = await github.createCheckRun(repository, { ...wanted.content, ...at }, turn);
    return { id, posted: 0, whole: true };
  }
  const { conclusion: _later, ...open } = wanted.content;
  const under: CheckRunContent = { ...open, status: 'in_progress' };
  const batch = plan.order.slice(0, BATCH);
  const whole = plan.order.length <= BATCH;
  const annotations = batch.flatMap((number) => wanted.annotations.get(number) ?? []);
  try {
    const shown = { ...(whole ? wanted.content : under), ...(annotations.length > 0 ? { annotations } : {}) };
    const { id } = await github.createCheckRun(repository, { ...shown, ...at }, turn);
    return { id, posted: annotations.length, whole };
  } catch (error) {
    if (!(error instanceof Fault) || error.code !== 'github_refused' || annotations.length === 0) throw error;
    const { id } = await github.createCheckRun(repository, { ...under, ...at }, turn);
    return { id, posted: 0, whole: false };
  }
}
