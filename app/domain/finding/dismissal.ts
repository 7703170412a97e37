/** When a dismissal stands (FND-2): for what severities, and by how many people. Pure. */
import { PERMISSIONS, type Permission } from '../command/rights.ts';
import { SEVERITIES, type Severity } from '../review.ts';

/** One person's dismissal as far as these rules ask; `severity` null where the row does not tell. */
export interface GivenDismissal {
  readonly actor: string;
  /** The severity that the finding had then. */
  readonly severity: Severity | null;
  /** Whether it was given on the person's own work, which counts only below the bar. */
  readonly self: boolean;
}

/** How many people must dismiss a finding of a severity: two at `critical`, else one. */
export function peopleNeeded(severity: Severity): 1 | 2 {
  return severity === 'critical' ? 2 : 1;
}

/**
 * The different people whose dismissal covers this severity: it was given for one at least as bad. What
 * was dismissed as low is not dismissed as high, so no later report hides behind a mild first one.
 */
export function peopleBehind(dismissals: readonly GivenDismissal[], severity: Severity): string[] {
  const rank = SEVERITIES.indexOf(severity);
  const covering = dismissals.filter(
    (one) => one.severity === null || SEVERITIES.indexOf(one.severity) <= rank,
  );
  return [...new Set(covering.map((one) => one.actor))];
}

/**
 * Whether a finding that was dismissed stays so when it is found at this severity: a dismissal sticks
 * to the fingerprint. One behind which the rows name nobody stays.
 */
export function staysDismissed(dismissals: readonly GivenDismissal[], severity: Severity): boolean {
  return dismissals.length === 0 || peopleBehind(dismissals, severity).length >= peopleNeeded(severity);
}

/**
 * Whether a dismissal holds at or above `gate.block_at`, where the author's own counts for nothing:
 * the bar may have come down since they dismissed what was below it.
 */
export function holdsAtTheBar(dismissals: readonly GivenDismissal[], severity: Severity): boolean {
  if (dismissals.length === 0) return true;
  const others = dismissals.filter((one) => !one.self);
  return others.length > 0 && staysDismissed(others, severity);
}

/** Who wants to dismiss a finding, and what holds here. */
export interface DismissalAsk {
  readonly finding: { readonly severity: Severity; readonly dismissals: readonly GivenDismissal[] };
  readonly actor: string;
  readonly permission: Permission;
  /** Whether they opened the pull request. */
  readonly author: boolean;
  /** Whether they had no part in what the head changes at the finding's path. */
  readonly outside: boolean;
  /** Whether they are the only one with write here and the policy lets such a one answer for their own work. */
  readonly solo: boolean;
  /** The policy's `gate.block_at`. */
  readonly blockAt: Severity;
  /** The policy's `people.dismiss`: the least permission. */
  readonly least: 'write' | 'maintain' | 'admin';
}

/** What becomes of it: refused, or one of `needed` people. */
export type DismissalAnswer =
  | { readonly refused: 'permission' | 'own_work' | 'twice' }
  | { readonly people: number; readonly needed: number; readonly self: boolean };

/**
 * Whether this person may dismiss this finding, and whether that is enough (FND-2). At or above the bar
 * nobody dismisses what was found on their own work; below it the author may, whatever their permission.
 */
export function judgeDismissal(ask: DismissalAsk): DismissalAnswer {
  const { finding, actor, blockAt } = ask;
  const atBar = SEVERITIES.indexOf(finding.severity) <= SEVERITIES.indexOf(blockAt);
  const permitted = PERMISSIONS.indexOf(ask.permission) >= PERMISSIONS.indexOf(ask.least);
  if (!permitted && (atBar || !ask.author)) return { refused: 'permission' };
  if (atBar && !ask.outside && !ask.solo) return { refused: 'own_work' };
  const counting = finding.dismissals.filter((one) => !atBar || !one.self);
  const behind = peopleBehind(counting, finding.severity);
  if (behind.includes(actor)) return { refused: 'twice' };
  return { people: behind.length + 1, needed: peopleNeeded(finding.severity), self: !ask.outside };
}
