/** What the logs that a result brings show of its sessions, looked at again where they arrive (REV-7): pure. */
import type { ReportedResult, ReportedSession } from './result.ts';
import type { TicketEnd, TicketSpec } from './review.ts';
import { isAgent, readTranscript } from './transcript.ts';

/** A session that did what no reviewer may do. */
export interface RuleBreak {
  readonly session: string;
  readonly detail: string;
}
type WithLog = ReportedSession & { readonly log?: string | undefined };

/** A result as its logs let it stand, and every break of the rule in them. */
export interface LogJudgement<R> {
  readonly result: R;
  readonly breaks: readonly RuleBreak[];
}

/**
 * A session of an agent that used a tool ends its ticket as `rule_break`, whatever the runner made of
 * it; a complete one whose log is missing, or is not that of a whole session without tools, is no review.
 */
export function judgeLogs<R extends ReportedResult & { readonly sessions: readonly WithLog[] }>(
  spec: Pick<TicketSpec, 'reviewers' | 'fallbacks'>,
  result: R,
): LogJudgement<R> {
  const uses = new Map([...spec.reviewers, ...spec.fallbacks].map((one) => [one.name, one.uses]));
  const breaks: RuleBreak[] = [];
  let wrong: { end: TicketEnd; why: string } | null = null;
  for (const session of result.sessions) {
    const kind = uses.get(session.reviewer);
    if (kind === undefined || !isAgent(kind)) continue;
    const read = readTranscript(kind, session.log ?? '');
    if (read.kind === 'rule_break')
      breaks.push({ session: session.id, detail: `${session.reviewer} used a tool: ${read.entry}` });
    else if (session.end === 'complete' && read.kind !== 'answered')
      wrong ??= {
        end: read.kind === 'unsafe' ? 'reviewer_unsafe' : 'bad_output',
        why: `the log of ${session.reviewer} is not that of a whole session without tools`,
      };
  }
  if (result.end === 'rule_break' && breaks.length === 0)
    breaks.push({
      session: result.sessions.at(-1)?.id ?? 'none',
      detail: result.detail ?? 'a tool was used',
    });
  const [first] = breaks;
  if (first !== undefined) return { result: ended(result, 'rule_break', first.detail), breaks };
  return {
    result: wrong === null || result.end !== 'reviewed' ? result : ended(result, wrong.end, wrong.why),
    breaks,
  };
}

function ended<R extends ReportedResult>(result: R, end: TicketEnd, detail: string): R {
  return { ...result, end, detail, verdict: null };
}
