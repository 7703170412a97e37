/** The one line that a check run shows in a list (PUB-7). */
import type { GateDecision } from '../gate/decide.ts';
import { REASONS } from '../gate/reason.ts';

/** The title of a verdict, at most 120 characters, all of it ours. */
export function titleOf(decision: GateDecision): string {
  const { files, counted, unreviewed } = decision.counts;
  const blocking = decision.blocking.length;
  const blocks =
    blocking === 0 ? [] : [`${count(blocking, 'finding')} ${blocking === 1 ? 'blocks' : 'block'}`];
  const first = decision.reasons[0];
  const seen = files === 0 ? [] : [`${counted + unreviewed} of ${count(files, 'file')} done`];
  if (decision.conclusion === 'queued') {
    // with `review.drafts` it is read all the same
    const awake = counted > 0 || decision.reasons.some((reason) => reason.code === 'reviews_pending');
    return join([
      `Draft: ${awake ? 'decided' : 'reviewed'} when it is ready`,
      ...blocks,
      ...(awake ? seen : []),
    ]);
  }
  if (decision.conclusion === 'success') {
    const { overridden } = decision;
    if (overridden != null) return `Overridden by a person: ${overridden.codes.join(', ')}`.slice(0, 120);
    const quiet = unreviewed === 0 ? '' : `, ${unreviewed} recorded`;
    const missing = files - counted - unreviewed;
    const unread = missing <= 0 ? '' : `, ${missing} unread and approved by a person`;
    return `Passed: ${count(counted, 'file')} reviewed${quiet}${unread}, nothing blocks`;
  }
  if (first === undefined) return 'Undecided';
  if (decision.conclusion === 'in_progress') {
    const what =
      first.code === 'reviews_pending' && first.detail !== null ? first.detail : REASONS[first.code].what;
    return join([capital(what), ...blocks, ...seen]);
  }
  const others = decision.reasons.length - 1;
  const more = others === 0 ? [] : [`${count(others, 'more reason')}`];
  const lead =
    first.code === 'open_findings'
      ? blocks
      : [capital(REASONS[first.code].what) + (first.past ? ', past the deadline' : ''), ...blocks];
  return join([...lead, ...more]);
}

/** `1 file`, `2 files`. */
export function count(n: number, noun: string): string {
  return `${n} ${noun}${n === 1 ? '' : 's'}`;
}

/** With a capital first letter. */
export function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function join(parts: readonly string[]): string {
  return parts.join(' · ').slice(0, 120);
}
