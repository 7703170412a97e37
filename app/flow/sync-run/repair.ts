/** A pull request that repairs the policy of its base (RUN-9): read, and planned so that no reviewer gets any of it. */
import { createHash } from 'node:crypto';
import { compileGuard } from '../../domain/ownership/guard.ts';
import { pathKey } from '../../domain/path.ts';
import { POLICY_PATH, type Policy, parsePolicy } from '../../domain/policy.ts';
import { Fault } from '../../errors.ts';
import type { PullReading } from '../../github/port/git.ts';
import type { HeadPlan } from './plan.ts';
import type { Source } from './read.ts';

/** The policy that a head brings, where it may mend that of the base. */
export interface Repair {
  readonly hash: string;
  readonly bytes: Buffer;
}

/**
 * What a repair is planned under: the policy that says nothing. What is guarded comes neither from the
 * base, which cannot be read, nor from the head, which could call everything guarded.
 */
export const BARE_POLICY: Policy = bare();

function bare(): Policy {
  const reading = parsePolicy(Buffer.from('version: 1\n'));
  if (!reading.ok) throw new Fault('bug', 'the least policy is not valid');
  return reading.policy;
}

/** The head's own policy, where it is valid and nothing but guarded paths change; else null. */
export async function readRepair(source: Source, reading: PullReading): Promise<Repair | null> {
  const isGuarded = compileGuard(BARE_POLICY);
  if (!reading.files.some((file) => pathKey(file.path) === POLICY_PATH && file.blobHead !== null))
    return null;
  if (!reading.files.every((file) => isGuarded(file.path))) return null;
  const { git, repository, url, token } = source;
  const bytes = await git.readPath(repository, url, token, reading.head, POLICY_PATH);
  if (bytes === null || !parsePolicy(bytes).ok) return null;
  return { hash: createHash('sha256').update(bytes).digest('hex'), bytes };
}

/** The plan of a repair: every path is a person's, none is reviewed. */
export function repairPlan(plan: HeadPlan): HeadPlan {
  return {
    ...plan,
    files: plan.files.map(({ asked: _, ...file }) => ({
      ...file,
      level: 'L0',
      reason: 'repair',
      key: null,
    })),
  };
}
