/** What a further round may end of what models found (RND-1): a model proposes, changed code proves. Pure. */
import type { CheckedResult } from './result.ts';
import type { Severity, TicketSpec } from './review.ts';

/** What a reviewer says of a finding that the ticket brought it. */
export interface Answer {
  readonly finding: number;
  readonly proposal: 'fixed' | 'persists' | 'withdrawn';
  readonly reviewer: string;
}

/** An open finding as far as RND-1 asks. */
export interface OpenFinding {
  readonly number: number;
  readonly fingerprint: string;
  readonly severity: Severity;
  readonly command: boolean;
}

/**
 * Open findings of models that this round ends as `fixed`, by number: a model whose session completed
 * proposes it, none objects, nobody raised it again, and the anchored code went (`gone`, found by the
 * server in the blob, never told by the runner). At `critical` one round is not enough.
 */
export function provenFixed(
  spec: TicketSpec,
  result: CheckedResult,
  answers: readonly Answer[],
  open: readonly OpenFinding[],
  gone: ReadonlySet<number>,
): number[] {
  if (result.end !== 'reviewed' || result.partial) return [];
  const raised = new Set(result.findings.map((one) => one.fingerprint));
  const complete = new Set(
    result.sessions.filter((one) => one.end === 'complete').map((one) => one.reviewer),
  );
  const models = new Set(
    [...spec.reviewers, ...spec.fallbacks].filter((one) => one.uses !== 'command').map((one) => one.name),
  );
  return open
    .filter((one) => {
      if (one.command || one.severity === 'critical' || raised.has(one.fingerprint) || !gone.has(one.number))
        return false;
      const said = answers.filter(
        (answer) =>
          answer.finding === one.number && models.has(answer.reviewer) && complete.has(answer.reviewer),
      );
      return said.length > 0 && said.every((answer) => answer.proposal === 'fixed');
    })
    .map((one) => one.number);
}

/** A finding as it stands, as far as raising it again asks. */
export interface Standing {
  readonly state: string;
  readonly severity: Severity;
  readonly command: boolean;
}

/**
 * What a report of a known fingerprint makes of it (RND-1, TKT-4): the severity to record, or null where
 * it says nothing. A model only raises: while a finding stands, no rerun, second model or vague quote
 * makes it milder or ungrounded. A command that reports its own finding again has the last word.
 */
export function raisedAgain(
  before: Standing | undefined,
  report: { readonly grounded: boolean; readonly severity: Severity; readonly command: boolean },
): Severity | null {
  if (before?.state !== 'open' && before?.state !== 'answered') return report.severity;
  if (!report.grounded) return null;
  if (before.command && report.command) return report.severity;
  return SEVERITIES.indexOf(before.severity) < SEVERITIES.indexOf(report.severity)
    ? before.severity
    : report.severity;
}

const SEVERITIES: readonly Severity[] = ['critical', 'high', 'medium', 'low', 'info'];
