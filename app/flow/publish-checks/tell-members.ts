import { listChecks } from '../../../db/store/check.ts';
import { listMembers } from '../../../db/store/group.ts';
import { GROUP_NAME, publishKey } from '../../domain/check.ts';
import type { GateDecision } from '../../domain/gate/decide.ts';
import type { RunUnit } from '../append-rows.ts';

/**
 * A merge group that findings fail says so on its pull requests' own heads, where people look; one that
 * passes takes back what an earlier one said there (GAT-5). Nothing for a pull request.
 *
 * Reads: group_member, check_run. Queues: publish-checks. May fail with: what Postgres does.
 */
export async function tellMembers(
  { run, tx, enqueue }: RunUnit,
  decision: Pick<GateDecision, 'conclusion' | 'blocking'>,
): Promise<void> {
  if (run.groupHead === null) return;
  const { repositoryId } = run;
  for (const { head: sha } of await listMembers(tx, run.id)) {
    const unit = { repositoryId, sha, name: GROUP_NAME };
    const says = decision.blocking.length > 0 || decision.conclusion === 'success';
    if (!says || (decision.blocking.length === 0 && (await listChecks(tx, unit)).length === 0)) continue;
    const payload = { repository: repositoryId, sha, name: GROUP_NAME };
    enqueue('publish-checks', payload, { key: publishKey(repositoryId, sha, GROUP_NAME), priority: 3 });
  }
}
