/** Which changed paths had a blocking finding lately, in any pull request of the repository (ADM-3). */
import type { Reader } from '../../../db/client.ts';
import { listBlockedPaths } from '../../../db/store/finding.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { Policy } from '../../domain/policy.ts';
import { SEVERITIES } from '../../domain/review.ts';
import type { PullReading } from '../../github/port/git.ts';

/** Paths by their key; none where the policy does not ask for them. */
export async function readHistory(
  reader: Reader,
  repositoryId: string,
  policy: Policy,
  reading: Pick<PullReading, 'files'>,
): Promise<ReadonlySet<string>> {
  if (policy.review.adaptive === 'off') return new Set();
  const blocking = SEVERITIES.slice(0, SEVERITIES.indexOf(policy.gate.block_at) + 1);
  const paths = reading.files.map((file) => file.path);
  return listBlockedPaths(reader, repositoryId, paths, blocking, LIMITS.adaptiveDays.default);
}
