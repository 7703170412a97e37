/** What `countersign / merge group` on a pull request's head should show: what a group of it found (GAT-5). */
import type { CheckUnit, StoredCheck } from '../../../db/store/check.ts';
import { findFile } from '../../../db/store/file.ts';
import { listGroupsOfHead, listMembers } from '../../../db/store/group.ts';
import type { Repository } from '../../../db/store/installation.ts';
import { productNow } from '../../../db/store/run.ts';
import { decodePath } from '../../domain/path.ts';
import type { FindingFact } from '../../domain/run-state/state.ts';
import { groupTitle, renderGroup } from '../../domain/summary/group.ts';
import type { Deps } from '../deps.ts';
import { type Judged, judgeRun } from '../judge-run.ts';
import { digestOf, placesOf, textsOf, type Wanted } from './want-gate.ts';

/** The newest group's findings that concern the pull request; null when there are none and none were shown. */
export async function wantGroup(
  deps: Deps,
  unit: CheckUnit,
  repository: Repository,
  _judged: readonly Judged[],
  shown: StoredCheck | undefined,
): Promise<Wanted | null> {
  const { db } = deps.database;
  const [run] = await listGroupsOfHead(db, unit.repositoryId, unit.sha);
  if (run === undefined) return null;
  const { state, decision } = await judgeRun(deps, db, run, await productNow(db));
  const blocking = decision.blocking.flatMap((number) => state.findings.get(number) ?? []);
  const findings = await concerning(deps, run.id, unit.sha, blocking);
  // nothing to say, or nothing that takes back what was said
  if (findings.length === 0 && (shown === undefined || decision.conclusion !== 'success')) return null;
  const refs = findings.flatMap((one) => [one.title, one.body]);
  const texts = await textsOf(deps, refs);
  const page = placesOf(deps, run.id, repository).run;
  const report = {
    head: run.toldHead,
    page,
    findings: findings.map((one) => ({
      number: one.number,
      severity: one.severity,
      path: one.path,
      line: one.startLine,
      title: texts.get(one.title) ?? null,
      body: texts.get(one.body) ?? null,
      blocks: true,
      state: one.state,
    })),
  };
  return {
    runId: run.id,
    digest: digestOf([run.id, findings.map((one) => [one.number, one.severity])]),
    content: {
      status: 'completed',
      conclusion: findings.length > 0 ? 'failure' : 'success',
      title: groupTitle(report),
      summary: renderGroup(report),
      detailsUrl: page,
    },
    superseded: false,
    once: true,
    seq: state.gate?.seq ?? null,
  };
}

/** Findings on paths that this member changes; those on paths that no member changes are the last one's. */
async function concerning(
  deps: Deps,
  group: string,
  head: string,
  findings: readonly FindingFact[],
): Promise<FindingFact[]> {
  const { db } = deps.database;
  const members = await listMembers(db, group);
  const last = members.at(-1);
  const mine: FindingFact[] = [];
  for (const finding of findings) {
    const changing = new Set<string>();
    for (const { memberRun, head: queued } of members)
      if (memberRun !== null && (await findFile(db, memberRun, decodePath(finding.path))) !== null)
        changing.add(queued);
    if (changing.size === 0 ? last?.head === head : changing.has(head)) mine.push(finding);
  }
  return mine;
}
