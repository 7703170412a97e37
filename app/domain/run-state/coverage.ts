/** What of a head's file set is covered, and whether the rows add up (FND-1, BLK-6, GIT-4). */
import { createHash } from 'node:crypto';
import { holdsAtTheBar } from '../finding/dismissal.ts';
import { lacksConsensus } from '../finding/witness.ts';
import { pathKey } from '../path.ts';
import { type FileFact, type FindingFact, presentHead, type RunState } from './state.ts';

/** How one changed path stands: `counted` by a complete result, `pending`, ended without one, or not reviewed by decision. */
export interface PathStanding {
  readonly file: FileFact;
  readonly block: string;
  readonly ownership: FileFact['ownership'];
  readonly standing: 'counted' | 'pending' | 'unavailable' | 'unreviewed' | 'keyless';
  /** Why it is unavailable or not reviewed, as a code. */
  readonly why: string | null;
  /** What its reviewer said of that, where it said more. */
  readonly detail?: string | null;
}

/** The present file set, each path in exactly one standing, by path bytes. */
export function standings(state: RunState): PathStanding[] {
  return [...state.files.entries()]
    .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
    .map(([key, file]) => {
      const { block, ownership } = owner(state, key, file);
      // a merge group's path that a member was reviewed with, or that git merged cleanly (GAT-5)
      const known = file.level !== 'L0' && state.group?.known.has(key) === true;
      const stands = known ? { standing: 'counted' as const, why: null } : standing(state, file);
      return { file, block, ownership, ...stands };
    });
}

function standing(state: RunState, file: FileFact): Pick<PathStanding, 'standing' | 'why' | 'detail'> {
  if (file.level === 'L0') return { standing: 'unreviewed', why: file.reason ?? null };
  if (file.key === null) return { standing: 'keyless', why: null };
  const key = state.keys.get(file.key);
  if (key?.counted === true) return { standing: 'counted', why: null };
  const { end = null, detail = null, final = false } = key?.failed ?? {};
  return { standing: final ? 'unavailable' : 'pending', why: end, detail };
}

/** A claim made after the decision settles who owns the path; the decision that follows says the same (OWN-6, OWN-7). */
function owner(state: RunState, key: string, file: FileFact): Pick<PathStanding, 'block' | 'ownership'> {
  const claim = state.claims.get(key);
  const open = file.ownership !== 'owned' && file.ownership !== 'guarded';
  if (open && claim !== undefined && claim.block !== null && claim.seq > file.seq) {
    return { block: claim.block, ownership: 'owned' };
  }
  return { block: file.block, ownership: file.ownership };
}

/** SHA-256 over the sorted path bytes, each followed by NUL: what `run.head` promises of its file set. */
export function filesDigest(state: RunState): string {
  const hash = createHash('sha256');
  for (const key of [...state.files.keys()].sort()) hash.update(Buffer.from(`${key}\u0000`, 'latin1'));
  return hash.digest('hex');
}

/**
 * Everything that does not add up, as sentences; empty when the rows are whole. The file set against
 * what the head promised, findings of counted results against findings raised, and the fold's own anomalies.
 */
export function gaps(state: RunState): string[] {
  const found = state.anomalies.map((anomaly) => anomaly.detail);
  const head = presentHead(state);
  if (head !== null) {
    if (head.files !== state.files.size) {
      found.push(`the head has ${head.files} changed paths and ${state.files.size} were decided`);
    } else if (head.files_digest !== filesDigest(state)) {
      found.push('the decided paths are not those of the head');
    }
  }
  const raised = new Set([...state.findings.values()].map((finding) => finding.fingerprint));
  // what a rename carried was raised under the fingerprint of its old path (REV-5)
  for (const former of state.former.keys()) raised.add(former.slice(former.indexOf('\u0000') + 1));
  for (const [fingerprint, seq] of state.promised) {
    if (!raised.has(fingerprint))
      found.push(`row ${seq} reports finding ${fingerprint.slice(0, 12)}, which was never raised`);
  }
  for (const finding of state.findings.values()) {
    if (state.findingIndex.get(`${pathKey(finding.path)}\u0000${finding.fingerprint}`) !== finding.number)
      found.push(`F${finding.number} is counted twice or not at all`);
  }
  return found;
}

const rank = { critical: 0, high: 1, medium: 2, low: 3, info: 4 } as const;

/** Severity as a number, worst first. */
export function severityRank(severity: FindingFact['severity']): number {
  return rank[severity];
}

/** Whether a finding still asks for something: open, answered or not (FND-1). */
export function isStanding(finding: Pick<FindingFact, 'state'>): boolean {
  return finding.state === 'open' || finding.state === 'answered';
}

/**
 * Findings that block at a threshold: open or answered, grounded, at or above it (GAT-3); worst first,
 * then by number. One that only its author dismissed blocks as well: that counts below the bar (FND-2).
 * What its model could have said before does not (RND-1), nor what only one of two saw under a lens of `both` (RND-3).
 */
export function blockingFindings(
  state: RunState,
  blockAt: FindingFact['severity'],
  both: readonly string[] = [],
): FindingFact[] {
  return [...state.findings.values()]
    .filter(
      (finding) =>
        (isStanding(finding) ||
          (finding.state === 'dismissed' && !holdsAtTheBar(finding.dismissals, finding.severity))) &&
        severityRank(finding.severity) <= severityRank(blockAt) &&
        !finding.readBefore &&
        !lacksConsensus(finding, both),
    )
    .sort((a, b) => severityRank(a.severity) - severityRank(b.severity) || a.number - b.number);
}

/** Whether the run may spend on its present head (RUN-10). */
export function isAllowed(state: RunState): boolean {
  const head = presentHead(state);
  if (head === null) return false;
  const guarded = [...state.files.values()].some((file) => file.ownership === 'guarded');
  return state.allowances.some((allowance) => {
    if (allowance.head === head.head) return true;
    // `/allow author` holds until a later head touches a guarded path
    return allowance.scope === 'author' && !(allowance.rule === 'person' && guarded);
  });
}
