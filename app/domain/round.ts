/** What a further round may end of what models found (RND-1): a model proposes, changed code proves. Pure. */

import { differ } from './finding/witness.ts';
import { providerOf } from './provider.ts';
import type { CheckedResult } from './result.ts';
import { SEVERITIES, type Severity, type TicketReviewer, type TicketSpec } from './review.ts';

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
  /** The model that raised it, as its ticket had it; undefined where that is not known any more. */
  readonly raisedBy?: TicketReviewer | undefined;
}

/** The models of a ticket whose session completed, its fallbacks among them. */
export function completeModels(
  spec: Pick<TicketSpec, 'reviewers' | 'fallbacks'>,
  sessions: readonly { readonly reviewer: string; readonly end: string }[],
): TicketReviewer[] {
  const complete = new Set(sessions.filter((one) => one.end === 'complete').map((one) => one.reviewer));
  return [...spec.reviewers, ...spec.fallbacks].filter(
    (one) => one.uses !== 'command' && complete.has(one.name),
  );
}

/**
 * Open findings of models that this round ends, by number. `fixed`: a model whose session completed
 * proposes it, none objects, nobody raised it again, and the anchored code went (`gone`, found by the
 * server in the blob, never told by the runner); at `critical` two of different providers. `withdrawn`,
 * where the code stands: one that is not the model which raised it says so, and none says otherwise; at
 * `critical` two of different providers. A command's finding is its own to end.
 */
export function provenEnds(
  spec: TicketSpec,
  result: CheckedResult,
  answers: readonly Answer[],
  open: readonly OpenFinding[],
  gone: ReadonlySet<number>,
): ProvenEnd[] {
  if (result.end !== 'reviewed' || result.partial) return [];
  const raised = new Set(result.findings.map((one) => one.fingerprint));
  const models = new Map(completeModels(spec, result.sessions).map((one) => [one.name, one]));
  return open.flatMap((one): ProvenEnd[] => {
    if (one.command || raised.has(one.fingerprint)) return [];
    const said = answers.flatMap((answer) => {
      const model = answer.finding === one.number ? models.get(answer.reviewer) : undefined;
      return model === undefined ? [] : [{ model, proposal: answer.proposal }];
    });
    const state = gone.has(one.number) ? 'fixed' : 'withdrawn';
    if (said.length === 0 || said.some(({ proposal }) => proposal !== state)) return [];
    const providers = new Set(said.map(({ model }) => providerOf(model)));
    if (one.severity === 'critical' && providers.size < 2) return [];
    if (state === 'fixed') return [{ finding: one.number, state, reason: 'code_changed' }];
    // who raised it may be of a policy of before: then nobody knows that this is another one
    const { raisedBy } = one;
    const second = raisedBy !== undefined && said.some(({ model }) => differ(model, raisedBy));
    return second ? [{ finding: one.number, state, reason: 'second_reviewer' }] : [];
  });
}

/** A finding that a round ended, and why. */
export interface ProvenEnd {
  readonly finding: number;
  readonly state: 'fixed' | 'withdrawn';
  readonly reason: 'code_changed' | 'second_reviewer';
}

/**
 * The models that had read this very content in an earlier round: those of the same review key's earlier
 * tickets which nobody could stand in for, since only of them it is sure who spoke (RND-1).
 */
export function readEarlier(
  earlier: readonly {
    readonly end: string | null;
    readonly partial: boolean;
    readonly reviewers: readonly TicketReviewer[];
  }[],
): Set<string> {
  return new Set(
    earlier
      .filter((ticket) => ticket.end === 'reviewed' && !ticket.partial)
      .flatMap((ticket) => ticket.reviewers)
      .filter((one) => one.uses !== 'command' && (one.fallbacks ?? []).length === 0)
      .map((one) => one.name),
  );
}

/**
 * Whether a raised finding does not block for being new on content that its model had read (RND-1). One
 * that stood and blocked goes on to block, whoever says it again.
 */
export function isReadBefore(
  before: { readonly state: string; readonly readBefore: boolean } | undefined,
  raised: { readonly read_before?: true | undefined },
): boolean {
  const stood = before?.state === 'open' || before?.state === 'answered' || before?.state === 'dismissed';
  return raised.read_before === true && !(stood && !before.readBefore);
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
