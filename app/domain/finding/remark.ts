/** What a person should know of how a finding came to be, in a few words (RND-1, RND-3). Pure. */
import { isSingleWitness } from './witness.ts';

/** The remarks on a finding, in order; none on most. */
export function remarksOn(finding: {
  readonly witnesses: readonly string[] | null;
  readonly readBefore: boolean;
  readonly state: string;
}): string[] {
  return [
    ...(isSingleWitness(finding) ? ['single witness'] : []),
    ...(finding.witnesses !== null && finding.witnesses.length > 1
      ? [`seen by ${finding.witnesses.length} reviewers`]
      : []),
    ...(finding.readBefore ? ['new on content that was read before: does not block'] : []),
  ];
}
