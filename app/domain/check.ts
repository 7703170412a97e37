/** Check runs of ours by name and external id (PUB-1, PUB-2). */

/** The check that a branch can require. */
export const GATE_NAME = 'countersign';
/** The same for a policy in `advisory` mode: another name, so that it can never satisfy a required check (GAT-3). */
export const ADVISORY_NAME = 'countersign (advisory)';
/** Findings as annotations. */
export const FINDINGS_NAME = 'countersign / findings';

/** The gate's name in a mode. */
export function gateName(mode: 'enforce' | 'advisory'): string {
  return mode === 'advisory' ? ADVISORY_NAME : GATE_NAME;
}

/** What finds a check run again whose create was not answered: unique per (repository, sha, name, n). */
export function externalId(repositoryId: string, sha: string, name: string, n: number): string {
  return `cs:${repositoryId}:${sha}:${name}:${n}`;
}

/** The job key of a unit of publishing. */
export function publishKey(repositoryId: string, sha: string, name: string): string {
  return `publish-checks:${repositoryId}:${sha}:${name}`;
}
