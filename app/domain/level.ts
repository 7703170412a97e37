/**
 * How deeply a path is reviewed (BLK-6, BLK-7, OWN-8). Decided once per (run, path, content, policy)
 * from the base's policy and attributes, recorded, and read back.
 */
import type { Kind } from './file-set/kind.ts';
import type { WirePath } from './path.ts';
import type { Policy, ReviewLevel } from './policy.ts';
import { higherLevel, routeFile, routeLevel } from './routing.ts';

/** A level with its reason. */
export interface DecidedLevel {
  readonly level: 'L0' | ReviewLevel;
  /** The level asked for before something changed it. */
  readonly asked: 'L0' | ReviewLevel | null;
  readonly reason: string | null;
}

/** Why a path could be left unreviewed by what the base says of it (BLK-6); null: nothing says so. */
export type L0Class = 'generated' | 'vendored' | 'lockfile' | 'binary' | null;

/** What a level is decided from. */
export interface LevelInput {
  readonly path: WirePath;
  readonly from: WirePath | null;
  readonly kind: Kind;
  readonly lines: number | null;
  readonly guarded: boolean;
  /** A deletion that is no part of a pair. */
  readonly deleted: boolean;
  /** Part of a pair (GIT-4): `old` is its deleted side, `moved` its new side with the same blob and mode. */
  readonly pair: 'old' | 'moved' | 'edited' | null;
  /** Symlink or submodule on either side: a ticket all the same (TKT-5). */
  readonly link: boolean;
  readonly class: L0Class;
  /** The class of the old path of a pair. */
  readonly fromClass: L0Class;
  /** Whether the block that owns it changes nothing but docs. */
  readonly docsOnly: boolean;
  /** The level that the block's trailer asks for. */
  readonly trailer: ReviewLevel | null;
}

/** Decides the level of one path. */
export function decideLevel(policy: Policy, file: LevelInput): DecidedLevel {
  if (file.guarded) {
    const guarded = { level: policy.highest, asked: null, reason: 'guarded' };
    // where nobody reads deletions the deleted side of a pair is read with its new side
    const decided = withoutReaders(
      policy,
      { ...file, deleted: file.deleted || file.pair === 'old' },
      guarded,
    );
    return decided.level === 'L0' && file.pair === 'old' ? { ...decided, reason: 'moved' } : decided;
  }
  if (file.pair === 'old') return { level: 'L0', asked: null, reason: 'moved' };
  // what was never reviewed because of where it lay does not leave there unseen
  const laundered = file.fromClass !== null && file.class === null;
  if (file.pair === 'moved' && !file.link && !laundered) return { level: 'L0', asked: null, reason: 'moved' };
  const both = file.from === null || file.fromClass !== null;
  if (file.class !== null && both && !file.link && !file.deleted) {
    return { level: 'L0', asked: null, reason: file.class };
  }
  return withoutReaders(policy, file, reviewLevel(policy, file));
}

function reviewLevel(policy: Policy, file: LevelInput): DecidedLevel {
  const standard = routeLevel(policy, file, 'L2');
  const wanted = file.trailer === null ? standard : higherLevel(standard, file.trailer);
  if (!file.docsOnly) {
    return wanted === standard
      ? { level: standard, asked: null, reason: null }
      : { level: wanted, asked: standard, reason: 'raised' };
  }
  // a route's own level stands; only the level by kind has the floor
  const floor = routeLevel(policy, file, 'L1');
  if (floor === wanted) return { level: floor, asked: null, reason: null };
  return { level: floor, asked: wanted, reason: 'docs_floor' };
}

/** A deletion that no reviewer takes is not reviewed (TKT-5). */
function withoutReaders(policy: Policy, file: LevelInput, decided: DecidedLevel): DecidedLevel {
  if (!file.deleted || decided.level === 'L0') return decided;
  const routing = routeFile(policy, { ...file, level: decided.level });
  if ('invalid' in routing || routing.reason !== 'deleted') return decided;
  return { level: 'L0', asked: decided.level, reason: 'deleted' };
}
