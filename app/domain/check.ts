/** Check runs of ours by name and external id (PUB-1, PUB-2). */
import { LIMITS } from './limits.ts';

/** The check that a branch can require. */
export const GATE_NAME = 'countersign';
/** The same for a policy in `advisory` mode: another name, so that it can never satisfy a required check (GAT-3). */
export const ADVISORY_NAME = 'countersign (advisory)';
/**
 * What a policy that a pull request brings would decide (RUN-9). No gate: a name of its own, made only where
 * the policy changes, so that no rule can sensibly require it and none that requires the gate is satisfied by it.
 */
export const PREVIEW_NAME = 'countersign (preview)';
/** Findings as annotations. */
export const FINDINGS_NAME = 'countersign / findings';

/** What a merge group found that a pull request is a member of, shown on the pull request's own head (GAT-5). */
export const GROUP_NAME = 'countersign / merge group';

const BLOCK_NAME = 'countersign / block ';

/** The gate's name in a mode. */
export function gateName(mode: 'enforce' | 'advisory'): string {
  return mode === 'advisory' ? ADVISORY_NAME : GATE_NAME;
}

/**
 * Whether a check run counts as stuck: GitHub refused or failed this many writes of it in a row (OPS-10). It is
 * tried once an hour from then on, and `/status`, the run's page and the metrics name it.
 */
export function isStuck(check: { readonly attempts: number }): boolean {
  return check.attempts >= STUCK_ATTEMPTS;
}

/** From this many failed writes in a row on, a check run is stuck. */
export const STUCK_ATTEMPTS = LIMITS.jobAttempts.default;

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

/** The job key of a pull request's preview. */
export function previewKey(repositoryId: string, pull: string): string {
  return `preview-policy:${repositoryId}:${pull}`;
}
