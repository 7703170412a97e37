/** A branch as a list of commits that people push, rewrite and name, for tests of any history; and what they do to it. */
import { createHash } from 'node:crypto';
import * as fc from 'fast-check';

/** A commit before git made it: the same work under another id is the same `work`. */
export interface Draft {
  readonly subject: string;
  /** When it was written, in seconds; a rebase keeps it. */
  readonly time: number;
  readonly slug: string | null;
  readonly owns: readonly string[];
  readonly after: readonly string[];
  /** Text by path. */
  readonly files: Readonly<Record<string, string>>;
  /** What it fixes up, by subject, or reverts, by place in the branch. */
  readonly joins: { readonly how: 'fixup' | 'revert'; readonly at: number } | null;
}

/** What somebody does. Places are taken modulo what there is. */
export type Act =
  | { readonly do: 'push'; readonly draft: Draft }
  | { readonly do: 'amend'; readonly at: number; readonly files: Readonly<Record<string, string>> }
  | { readonly do: 'rebase' }
  | { readonly do: 'drop' | 'squash' | 'split'; readonly at: number }
  | { readonly do: 'swap'; readonly at: number }
  | { readonly do: 'claim'; readonly path: string; readonly block: number }
  | { readonly do: 'release'; readonly path: string }
  | { readonly do: 'restart' };

/** Paths that histories touch; some are guarded or can never be claimed. */
export const PATHS = ['a.ts', 'b.ts', 'src/c.ts', 'src/d.ts', 'docs/e.md', 'CLAUDE.md', '.GIT/f'] as const;

const slugs = ['one', 'two', 'guarded'];
let clock = 1_700_000_000;
const files = fc
  .uniqueArray(fc.tuple(fc.constantFrom(...PATHS), fc.nat(9)), {
    minLength: 1,
    maxLength: 3,
    selector: ([path]) => path,
  })
  .map((list) => Object.fromEntries(list.map(([path, n]) => [path, `text ${n}\n`])));
const draft: fc.Arbitrary<Draft> = fc
  .record({
    subject: fc.constantFrom('Fix it', 'Add that', 'wip', 'Ünïcode', '🐧'),
    slug: fc.option(fc.constantFrom(...slugs)),
    owns: fc.subarray(['src/', 'src/**', 'a.ts', 'docs/e.md'], { maxLength: 2 }),
    after: fc.subarray([...slugs, 'nobody'], { maxLength: 1 }),
    files,
    joins: fc.option(
      fc.record({ how: fc.constantFrom('fixup' as const, 'revert' as const), at: fc.nat(9) }),
      { freq: 4 },
    ),
  })
  .map((one) => ({ ...one, time: clock++ }));

/** One act; histories begin with a push. */
export const act: fc.Arbitrary<Act> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ do: fc.constant('push' as const), draft }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('amend' as const), at: fc.nat(9), files }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('rebase' as const) }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constantFrom('drop', 'squash', 'split', 'swap'), at: fc.nat(9) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('claim' as const),
      path: fc.constantFrom(...PATHS),
      block: fc.nat(9),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('release' as const), path: fc.constantFrom(...PATHS) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('restart' as const) }) },
);

/** The branch after an act on it; claims and restarts leave it as it is. */
export function rewrite(branch: readonly Draft[], what: Act): Draft[] {
  const at = 'at' in what ? what.at % Math.max(branch.length, 1) : 0;
  const one = branch[at];
  switch (what.do) {
    case 'push':
      return [...branch, what.draft];
    case 'amend':
      return branch.map((draft, i) =>
        i === at ? { ...draft, files: { ...draft.files, ...what.files } } : draft,
      );
    case 'drop':
      return branch.length < 2 ? [...branch] : branch.filter((_, i) => i !== at);
    case 'squash': {
      const next = branch[at + 1];
      if (one === undefined || next === undefined) return [...branch];
      return [
        ...branch.slice(0, at),
        { ...one, files: { ...one.files, ...next.files } },
        ...branch.slice(at + 2),
      ];
    }
    case 'split': {
      const [first, ...rest] = Object.entries(one?.files ?? {});
      if (one === undefined || first === undefined || rest.length === 0) return [...branch];
      const halves = [
        { ...one, files: Object.fromEntries([first]) },
        { ...one, time: clock++, files: Object.fromEntries(rest) },
      ];
      return [...branch.slice(0, at), ...halves, ...branch.slice(at + 1)];
    }
    case 'swap': {
      const next = branch[at + 1];
      if (one === undefined || next === undefined) return [...branch];
      return [...branch.slice(0, at), next, one, ...branch.slice(at + 2)];
    }
    default:
      return [...branch];
  }
}

/** The message of a commit whose earlier commits have these ids. */
export function messageOf(draft: Draft, branch: readonly Draft[], oids: readonly string[]): string {
  const at = draft.joins === null ? -1 : draft.joins.at % Math.max(oids.length, 1);
  const target = branch[at];
  const oid = oids[at];
  if (draft.joins === null || target === undefined || oid === undefined) return draft.subject;
  return draft.joins.how === 'fixup'
    ? `fixup! ${target.subject}`
    : `Revert "${target.subject}"\n\nThis reverts commit ${oid}.`;
}

/** A git id for a text. */
export const oidOf = (text: string): string => createHash('sha1').update(text).digest('hex');
