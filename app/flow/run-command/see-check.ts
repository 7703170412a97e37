/**
 * What else bears our gate's name on a commit, and whom the rule of the base branch believes (case 38).
 * Any workflow can post a check of any name: a rule that names no App takes it for ours. It changes no
 * verdict; `/status` tells it, since only a person can bind the rule.
 *
 * Reads: nothing. Calls: GitHub (rules of the base branch, check runs of the head). May fail with: nothing;
 * what GitHub does not tell is not said.
 */
import type { Repository } from '../../../db/store/installation.ts';
import type { Run } from '../../../db/store/run.ts';
import { gateName } from '../../domain/check.ts';
import type { CheckSight } from '../../domain/command/check-sight.ts';
import { Fault } from '../../errors.ts';
import type { GitHub } from '../../github/port.ts';
import type { Deps } from '../deps.ts';

/** Looks at the rule and at the checks of the head. */
export async function seeCheck(
  deps: Deps,
  github: GitHub,
  repository: Repository,
  run: Run,
): Promise<CheckSight> {
  const { appId } = deps.github;
  const name = gateName(run.mode);
  try {
    const rule = await github.getRequiredCheck(repository, run.baseRef, name);
    const named = await github.listChecksNamed(repository, run.toldHead, name);
    return {
      name,
      appId,
      boundTo: rule === null ? 'no_rule' : (rule.appId ?? 'any'),
      foreign: named
        .filter((check) => check.appId !== appId)
        .map((check) => check.conclusion ?? check.status),
    };
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    deps.log.warn({ code: error.code, run: run.id }, 'run-command-see-check');
    return { name, appId, boundTo: 'no_rule', foreign: [] };
  }
}
