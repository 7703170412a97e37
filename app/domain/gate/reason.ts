/** Why a verdict is not success: the closed table of reasons, their class, what clears each and who may (GAT-2). */
import type { WirePath } from '../path.ts';

/** Classes in the order in which the first present decides (GAT-3). */
export const CLASSES = ['broken', 'held', 'machine', 'wrong', 'person'] as const;
/** The class of a reason. */
export type ReasonClass = (typeof CLASSES)[number];

interface Entry {
  /** Null: it has the class of what holds the dependency. */
  readonly class: ReasonClass | null;
  /** What it is, in words that stand alone; no trailing period. */
  readonly what: string;
  /** What would clear it. */
  readonly clears: string;
  /** Who may. */
  readonly who: string;
}

/** How a person answers for files that nobody read, where the policy says `review.on_unavailable: human`. */
export const BY_A_PERSON = '`/approve unreviewed REASON` by write, shown as such';

/** Every reason of GAT-2, in the order in which a person should read them. */
export const REASONS = {
  ledger_invalid: {
    class: 'broken',
    what: 'the signed ledger of this run does not verify',
    clears: '`/seal REASON` in a comment: the run stays as evidence, and a new one starts at the same head',
    who: 'admin',
  },
  ledger_unverifiable: {
    class: 'broken',
    what: 'a key needed to verify the ledger is not here',
    clears: 'the operator gives the server the old key again; where it is lost, `/seal REASON` in a comment',
    who: 'operator',
  },
  config_invalid: {
    class: 'broken',
    what: 'the policy on the base branch is not valid',
    clears:
      'mend `.github/countersign.yml` on the base branch; a pull request that changes guarded paths only and brings a valid one is decided by people alone',
    who: 'whoever may push to the base branch',
  },
  no_merge_base: {
    class: 'broken',
    what: 'head and base have no common ancestor',
    clears: 'rebase the branch on its base, or change the base',
    who: 'author',
  },
  bad_after: {
    class: 'broken',
    what: 'a block waits for a block that does not exist, or for itself',
    clears: 'correct the `After:` trailer',
    who: 'author',
  },
  dependency_cycle: {
    class: 'broken',
    what: 'blocks wait for each other in a circle',
    clears: 'correct the `After:` trailers',
    who: 'author',
  },
  not_enrolled: {
    class: 'held',
    what: 'the base branch has no policy, and a rule requires this check',
    clears: 'add `.github/countersign.yml` to the base branch, or drop the rule',
    who: 'whoever may push to the base branch',
  },
  setup_incomplete: {
    class: 'held',
    what: 'the repository is enrolled and cannot work yet',
    clears: 'finish the set-up step that is named',
    who: 'maintain or admin',
  },
  permissions_missing: {
    class: 'held',
    what: 'the App lacks a permission that it needs',
    clears: 'accept the new permissions in the settings of the installation',
    who: 'owner of the account',
  },
  killed: {
    class: 'held',
    what: 'the operator switched everything off',
    clears: 'goes on by itself once the operator unsets the kill switch (`countersign settings unset kill`)',
    who: 'operator',
  },
  stopped: {
    class: 'held',
    what: 'the run was stopped',
    clears: '`/resume` in a comment',
    who: 'write',
  },
  paused: {
    class: 'held',
    what: 'the run is paused',
    clears: '`/resume` in a comment',
    who: 'write',
  },
  needs_allow: {
    class: 'held',
    what: 'waits until somebody with write allows its review',
    clears: '`/allow` in a comment',
    who: 'write',
  },
  git_unavailable: {
    class: 'machine',
    what: 'the commits could not be read',
    clears: 'tried again without a command',
    who: 'nobody needs to act',
  },
  provider_down: {
    class: 'machine',
    what: 'the reviewing provider does not answer',
    clears: 'tried again without a command',
    who: 'nobody needs to act',
  },
  dispatch_stalled: {
    class: 'machine',
    what: 'no runner came for the waiting files',
    clears: 'tried again without a command; see the workflow file and its runs',
    who: 'nobody needs to act',
  },
  reviews_pending: {
    class: 'machine',
    what: 'reviews are under way',
    clears: 'ends by itself',
    who: 'nobody needs to act',
  },
  verify_pending: {
    class: 'machine',
    what: 'verify commands have not ended',
    clears: 'ends by itself with its jobs and containers, unless a cause is named',
    who: 'nobody needs to act',
  },
  open_findings: {
    class: 'wrong',
    what: 'findings block',
    clears: 'push a fix, `/answer F TEXT` for another look, or `/dismiss F REASON`',
    who: 'author; to dismiss, write and no part in it',
  },
  verify_failed: {
    class: 'wrong',
    what: 'a verify command did not pass',
    clears: 'push a fix; `/rerun failed` in a comment runs it again',
    who: 'author or write',
  },
  coverage_gap: {
    class: 'wrong',
    what: 'the record does not account for everything that changed',
    clears: '`/rerun all` in a comment, or push again',
    who: 'author or write',
  },
  ticket_unavailable: {
    class: 'wrong',
    what: 'files could not be reviewed',
    clears: '`/rerun failed` in a comment',
    who: 'author or write',
  },
  unreviewed_files: {
    class: 'wrong',
    what: 'files were not reviewed, and the policy does not let them through',
    clears:
      'give them a reviewer or add the reason to `gate.allow_unreviewed` on the base branch; or `/approve unreviewed REASON`',
    who: 'whoever may push to the base branch; or write, who made none of it',
  },
  unowned_change: {
    class: 'wrong',
    what: 'paths were changed outside of the block that declares them',
    clears: '`/claim PATH` in a comment',
    who: 'author or write',
  },
  overlap: {
    class: 'wrong',
    what: 'paths are declared by more than one block',
    clears: '`/claim PATH BLOCK` in a comment',
    who: 'author or write',
  },
  orphan: {
    class: 'wrong',
    what: 'paths belong to no block',
    clears: '`/claim PATH BLOCK` in a comment',
    who: 'author or write',
  },
  nothing_to_review: {
    class: 'person',
    what: 'nothing of this change is reviewed',
    clears: '`/approve nothing_to_review REASON` in a comment',
    who: 'write, who made none of it',
  },
  guarded: {
    class: 'person',
    what: 'guarded paths changed',
    clears: '`/approve guarded REASON` in a comment',
    who: 'maintain or admin, who made none of it',
  },
  rule_break: {
    class: 'person',
    what: 'a reviewer did what it may not do',
    clears: '`/approve rule_break REASON` in a comment',
    who: 'write, who made none of it',
  },
  conflict: {
    class: 'person',
    what: 'one runner gave two different results',
    clears: '`/rerun PATH`, or `/approve conflict REASON`, in a comment',
    who: 'write, who made none of it',
  },
  budget: {
    class: 'person',
    what: 'the budget is used up',
    clears: '`/approve budget REASON` in a comment',
    who: 'write, who made none of it',
  },
  rounds_exhausted: {
    class: 'person',
    what: 'the rounds of review are used up',
    clears: '`/approve rounds_exhausted REASON` in a comment',
    who: 'write, who made none of it',
  },
  human_check: {
    class: 'person',
    what: 'a person has to look at it',
    clears: 'an approving review of this head, or `/approve human_check REASON` in a comment',
    who: 'write, who made none of it',
  },
  shared_head: {
    class: 'person',
    what: 'another open pull request has the same head and holds it',
    clears: 'see the pull request that is named',
    who: 'whoever may clear that one',
  },
  dependency_open: {
    class: null,
    what: 'a block, or a merge group, waits for what it rests on',
    clears: 'clears with the block or pull request it waits for',
    who: 'nobody needs to act',
  },
} as const satisfies Record<string, Entry>;

/** The code of a reason. */
export type ReasonCode = keyof typeof REASONS;

/** One reason of a verdict, with what it concerns; lists are whole, who records or shows them cuts. */
export interface GateReason {
  readonly code: ReasonCode;
  readonly class: ReasonClass;
  readonly blocks: readonly string[];
  readonly paths: readonly WirePath[];
  /** Numbers of findings. */
  readonly findings: readonly number[];
  /** How many paths, findings or blocks it concerns. */
  readonly count: number;
  /** The particular cause, at most 200 characters. */
  readonly detail: string | null;
  /** Product time in ms at which a machine reason becomes a failure; null for other classes. */
  readonly untilMs: number | null;
  /** Whether that time has passed. */
  readonly past: boolean;
}

const order = Object.keys(REASONS) as ReasonCode[];
const position = new Map(order.map((code, index) => [code, index]));

/** Whether a text is a reason's code. */
export function isReasonCode(code: string): code is ReasonCode {
  return Object.hasOwn(REASONS, code);
}

/** Reasons as a person should read them: what decides first, then the order of the table. */
export function sortReasons(reasons: readonly GateReason[]): GateReason[] {
  return [...reasons].sort(
    (a, b) =>
      CLASSES.indexOf(a.class) - CLASSES.indexOf(b.class) ||
      (position.get(a.code) ?? 0) - (position.get(b.code) ?? 0),
  );
}
