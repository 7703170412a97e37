/**
 * What reviewers leave to a person (RND-1, REV-3, REV-9): clauses that nobody confirms, text that tries to
 * steer them, and critical findings that do not block because they came late. A call can only raise.
 */
import { pathKey } from '../path.ts';
import { clauseName, type Need } from '../people/clear.ts';
import { isStanding, type PathStanding } from '../run-state/coverage.ts';
import type { RunState } from '../run-state/state.ts';

/** A need of `human_check`, why there is one, and its name for people. */
export type HumanNeed = Need & {
  readonly why: 'clause' | 'route' | 'unconfirmed' | 'call';
  readonly name: string;
};

/** Calls in words; of a code that this version does not know the code itself is told. */
const WORDS: Readonly<Record<string, string>> = {
  steering_text: 'text that tries to steer reviewers',
};

/** The needs of the present paths and of the blocks that own them. */
export function calledNeeds(state: RunState, paths: readonly PathStanding[]): HumanNeed[] {
  return [...unconfirmed(state, paths), ...calls(state, paths), ...lateCritical(state, paths)];
}

/** `BLOCK/a1`: a clause that no reviewer of a present file of the block confirms, or that one denies (BLK-3). */
function unconfirmed(state: RunState, paths: readonly PathStanding[]): HumanNeed[] {
  const asking = [...state.blocks.values()].filter((one) => one.ended !== 'dropped' && one.accept.length > 0);
  const pathsOf = new Map<string, PathStanding[]>(asking.map(({ id }) => [id, []]));
  for (const path of paths) pathsOf.get(path.block)?.push(path);
  return asking.flatMap((block) => {
    const own = pathsOf.get(block.id) ?? [];
    return block.accept.flatMap((text, index): HumanNeed[] => {
      const keys = own.flatMap(({ file, standing }) =>
        standing === 'counted' && file.key !== null ? (state.keys.get(file.key) ?? []) : [],
      );
      const denied = keys.filter((key) => key.clauses.get(text) === 'unmet');
      if (denied.length === 0 && keys.some((key) => key.clauses.get(text) === 'met')) return [];
      return [
        {
          code: 'human_check',
          blocks: [block.id],
          clause: clauseName(block.id, text),
          paths: own.map((path) => path.file.path),
          // whoever approved before a reviewer denied it did not know
          sinceSeq: Math.max(0, ...denied.map((key) => key.countedSeq ?? 0)),
          notBeforeMs: null,
          why: 'unconfirmed',
          name: `${block.id}/a${index + 1}`,
        },
      ];
    });
  });
}

function calls(state: RunState, paths: readonly PathStanding[]): HumanNeed[] {
  return paths.flatMap((path) => {
    const known = path.file.key === null ? undefined : state.keys.get(path.file.key)?.calls;
    return [...(known ?? [])].map(([code, seq]) => call(path, seq, WORDS[code] ?? code));
  });
}

/** A call for one path, which only an act that is newer than the call can clear. */
function call(path: PathStanding, sinceSeq: number, name: string): HumanNeed {
  return {
    code: 'human_check',
    blocks: [path.block],
    clause: null,
    paths: [path.file.path],
    sinceSeq,
    notBeforeMs: null,
    why: 'call',
    name,
  };
}

/** RND-1: a critical finding on content that its model had read before blocks nobody and is not passed over either. */
function lateCritical(state: RunState, paths: readonly PathStanding[]): HumanNeed[] {
  const owner = new Map(paths.map((path) => [pathKey(path.file.path), path]));
  return [...state.findings.values()].flatMap((finding) => {
    const path = owner.get(pathKey(finding.path));
    if (path === undefined || !finding.readBefore || finding.severity !== 'critical' || !isStanding(finding))
      return [];
    return [call(path, finding.seq, `F${finding.number} is critical and came late`)];
  });
}
