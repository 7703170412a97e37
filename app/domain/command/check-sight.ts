/** What `/status` says of the rule that asks for our check, and of checks that bear its name (case 38). */
import { Markdown, md } from '../summary/markdown.ts';
import { count } from '../summary/title.ts';

/** The rule of the base branch and the checks of the head, as GitHub tells them. */
export interface CheckSight {
  /** The gate's name in the run's mode. */
  readonly name: string;
  /** Our App's id. */
  readonly appId: string;
  /** The id of the App that the rule believes; `any`: it believes all; `no_rule`: none asks for the check. */
  readonly boundTo: string;
  /** Conclusions or statuses of checks of that name by others. */
  readonly foreign: readonly string[];
}

/** Sentences for people; none where nothing is amiss. */
export function checkWarnings({ name, appId, boundTo, foreign }: CheckSight): Markdown[] {
  const said: Markdown[] = [];
  if (boundTo === 'any')
    said.push(
      md`**The rule that requires ${Markdown.code(name)} is not bound to this App** (id ${appId}): a check of that name by anybody satisfies it. An admin chooses the App in the rule.`,
    );
  else if (boundTo !== 'no_rule' && boundTo !== appId)
    said.push(
      md`**The rule that requires ${Markdown.code(name)} believes another App** (id ${boundTo}, ours is ${appId}): our verdict never satisfies it. An admin chooses the App in the rule.`,
    );
  if (foreign.length > 0)
    said.push(
      md`**${count(foreign.length, 'check')} of that name on this commit ${foreign.length === 1 ? 'is' : 'are'} not ours** (${foreign.slice(0, 5).join(', ')}): it counts for nothing here.`,
    );
  return said;
}
