/** What a policy says of people (GAT-6, GAT-7), and how permissions compare. */
import { PERMISSIONS, type Permission } from '../command/rights.ts';

/** The part of a policy that says who may clear what. */
export interface PeopleRules {
  /** The least permission that clears what needs a person. */
  readonly approve: 'write' | 'maintain' | 'admin';
  readonly override: 'none' | 'maintain' | 'admin';
  /** Whether the only person with write may act on their own work. */
  readonly solo: boolean;
  /** Whether an act counts on a later head of the same content. */
  readonly carry: 'identical' | 'none';
}

/** What holds where no policy is valid or known: POL-1's defaults. */
export const DEFAULT_PEOPLE: PeopleRules = {
  approve: 'write',
  override: 'none',
  solo: false,
  carry: 'identical',
};

/** Whether a permission as it was recorded is at least another; a word that GitHub never answers is none. */
export function isAtLeast(permission: string, least: Permission): boolean {
  const rank = PERMISSIONS.indexOf(permission as Permission);
  return rank >= PERMISSIONS.indexOf(least);
}
