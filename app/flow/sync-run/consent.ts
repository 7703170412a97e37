/** Consent to spend (RUN-10): who lets this head cost anything. */
import type { Run } from '../../../db/store/run.ts';
import type { RowData } from '../../domain/ledger/row-kinds.ts';
import type { Policy } from '../../domain/policy.ts';
import type { Allowance, RunState } from '../../domain/run-state/state.ts';
import type { GitHub, PullInfo, RepositoryAddress } from '../../github/port.ts';

/** Whether the author may write, asked once, when a head arrives; null: not asked, the answer would change nothing. */
export async function askAuthor(
  github: GitHub,
  repository: RepositoryAddress,
  run: Run,
  pull: PullInfo,
): Promise<boolean | null> {
  if (pull.author === null || isSameRepository(run, pull) || run.head === pull.head) return null;
  const { permission, userId } = await github.getPermission(repository, pull.author.login);
  // a login can pass to another account: the id decides
  return (
    userId === pull.author.id &&
    (permission === 'admin' || permission === 'maintain' || permission === 'write')
  );
}

/** The consent to record for a head; null: none, or one that stands already. */
export function newConsent(
  run: Run,
  state: RunState,
  policy: Policy,
  pull: PullInfo,
  authorWrites: boolean | null,
  /** The run began before its base branch had a policy. */
  wasAbsent: boolean,
): RowData<'run.allowed'> | null {
  if (isHeldBack(state, pull, wasAbsent)) return null;
  const has = (rule: Allowance['rule'], head: string | null) =>
    state.allowances.some((one) => one.rule === rule && (head === null || one.head === head));
  if (isSameRepository(run, pull)) {
    // the head's repository cannot change in the life of a pull request
    return has('same_repository', null)
      ? null
      : { rule: 'same_repository', scope: 'author', head: pull.head };
  }
  if (state.allowances.some((one) => one.head === pull.head)) return null;
  if (pull.author !== null && policy.allow.authors.includes(pull.author.id)) {
    return { rule: 'allow_list', scope: 'head', head: pull.head };
  }
  return authorWrites === true ? { rule: 'author_write', scope: 'head', head: pull.head } : null;
}

/** The consent that a head stands under: the newest that covers it; null while it waits for one. */
export function standingConsent(
  allowances: readonly RowData<'run.allowed'>[],
  head: string,
  touchesGuarded: boolean,
): RowData<'run.allowed'> | null {
  const covering = allowances.filter(
    (one) => one.head === head || (one.scope === 'author' && !(one.rule === 'person' && touchesGuarded)),
  );
  return covering.at(-1) ?? null;
}

/** Open at enrolment, or found late with an old head: it waits for a push to it or `/rerun`, whatever else happens. */
function isHeldBack(state: RunState, pull: PullInfo, wasAbsent: boolean): boolean {
  const first = state.heads[0]?.head ?? pull.head;
  if (first !== pull.head) return false;
  // who may ask for a round of it may let it begin: without write nobody can, before it is allowed (CMD-3)
  if (state.acts.some((act) => act.act === 'rerun' && act.head === pull.head && !act.revoked)) return false;
  return state.opened?.reason === 'enrolled' || state.opened?.old === true || wasAbsent;
}

function isSameRepository(run: Run, pull: PullInfo): boolean {
  return pull.headRepositoryId === run.repositoryId;
}
