/** What of the findings is displayed (REV-6, `review.show`): filters hide from display, never from the ledger or the gate. Pure. */
import { compilePatterns } from '../ownership/match.ts';
import type { WirePath } from '../path.ts';
import { SEVERITIES, type Severity } from '../review.ts';

/** The policy's filters; what is absent filters nothing. */
export interface ShowRules {
  /** The mildest severity that is shown. */
  readonly severity: Severity;
  /** Lenses that are shown. */
  readonly lenses?: readonly string[] | undefined;
  /** Patterns of the paths whose findings are shown. */
  readonly paths?: readonly string[] | undefined;
}

/** Whether a finding is displayed; what blocks always is. */
export type Shows = (
  finding: { readonly severity: Severity; readonly lens: string; readonly path: WirePath },
  blocks: boolean,
) => boolean;

/** The filter of a policy; without one everything is shown. */
export function compileShow(rules: ShowRules | null): Shows {
  if (rules === null) return () => true;
  const least = SEVERITIES.indexOf(rules.severity);
  const lenses = rules.lenses === undefined ? null : new Set(rules.lenses);
  const covers = rules.paths === undefined ? null : compilePatterns(rules.paths);
  return (finding, blocks) =>
    blocks ||
    (SEVERITIES.indexOf(finding.severity) <= least &&
      lenses?.has(finding.lens) !== false &&
      covers?.(finding.path) !== false);
}
