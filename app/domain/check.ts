/** Check runs of ours by name and external id (PUB-1, PUB-2). */

/** The check that a branch can require. */
export const GATE_NAME = 'countersign';
/** The same for a policy in `advisory` mode: another name, so that it can never satisfy a required check (GAT-3). */
export const ADVISORY_NAME = 'countersign (advisory)';
/** Findings as annotations. */
export const FINDINGS_NAME = 'countersign / findings';

const BLOCK_NAME = 'countersign / block ';

/** The gate's name in a mode. */
export function gateName(mode: 'enforce' | 'advisory'): string {
  return mode === 'advisory' ? ADVISORY_NAME : GATE_NAME;
}

/** Whether a name is the gate's in some mode: what a rule can require, and a forgery would be worth. */
export function isGateName(name: string): boolean {
  return name === GATE_NAME || name === ADVISORY_NAME;
}

/** The name of a block's check run; ids are slugs, so that it is never another's. */
export function blockCheckName(id: string): string {
  return `${BLOCK_NAME}${id}`;
}

/** The block that a check run's name is about; null for other names. */
export function blockOfCheckName(name: string): string | null {
  return name.startsWith(BLOCK_NAME) ? name.slice(BLOCK_NAME.length) : null;
}

/** What finds a check run again whose create was not answered: unique per (repository, sha, name, n). */
export function externalId(repositoryId: string, sha: string, name: string, n: number): string {
  return `cs:${repositoryId}:${sha}:${name}:${n}`;
}

/** The job key of a unit of publishing. */
export function publishKey(repositoryId: string, sha: string, name: string): string {
  return `publish-checks:${repositoryId}:${sha}:${name}`;
}
