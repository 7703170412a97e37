/** The one path that a claim or a release means, and why it cannot be claimed (OWN-5, OWN-7, OWN-8). */
import type { Command } from '../../domain/command/arguments.ts';
import { LIMITS } from '../../domain/limits.ts';
import { compileGuard } from '../../domain/ownership/guard.ts';
import {
  type ClaimWords,
  claimRefusal,
  isLinkMode,
  linkPaths,
  type OwnedFile,
} from '../../domain/ownership.ts';
import { pathKey, type WirePath } from '../../domain/path.ts';
import { isGlob } from '../../domain/policy/pattern.ts';
import { Refusal } from '../../errors.ts';
import type { ChangedFile, Given } from './given.ts';
import type { PathSight } from './see-path.ts';

/** A path of a command as the head has it. */
export interface ClaimTarget extends OwnedFile {
  /** Whether this head changes it; a claim of another path reserves it. */
  readonly changed: boolean;
  /** The block that has it, when exactly one has. */
  readonly owner: string | null;
  /** Whether the words after the path belong to its name. */
  readonly whole: boolean;
}

/** The target of a claim. Refused: `bad_owned guarded bad_path denied lookup_failed too_many_reserved`. */
export function claimTarget(
  given: Given,
  command: Extract<Command, { name: 'claim' }>,
  files: ReadonlyMap<string, ChangedFile>,
  sight: PathSight,
): ClaimTarget {
  // bare words that could end in a block: the run knows whether they are one path
  const whole = command.whole === null ? undefined : files.get(pathKey(command.whole));
  const found = whole ?? files.get(pathKey(command.path));
  if (found !== undefined) {
    const target = changedTarget(found, whole !== undefined);
    const links = linkPaths([...files.values()].map((one) => changedTarget(one, false)));
    // the other path of its pair may be the one that is guarded (OWN-9)
    refuseUnclaimable(given, { ...target, guarded: found.file.ownership === 'guarded' }, links);
    return target;
  }
  if (isGlob(command.path) || command.path.endsWith('/')) throw noSinglePath();
  return reservedTarget(given, command.path, files, sight);
}

/** A changed file as a target. */
export function changedTarget({ file, path, from }: ChangedFile, whole: boolean): ClaimTarget {
  const owner = file.ownership === 'owned' ? file.blockId : null;
  const { modeBase, modeHead } = file;
  return { path, from, modeBase, modeHead, changed: true, owner, whole };
}

/** How many paths a run reserves: claimed by a person for an open block and not changed by its head. */
export function countReserved(
  claims: ReadonlyMap<string, ClaimWords>,
  files: ReadonlyMap<string, unknown>,
  open: ReadonlySet<string>,
): number {
  let n = 0;
  for (const [key, words] of claims) {
    if (!files.has(key) && [...words].some(([id, word]) => word.claimed && !word.auto && open.has(id))) n++;
  }
  return n;
}

/** Refuses one more reserved path than a run may have. */
export function refuseTooMany(reserved: number): void {
  const most = LIMITS.reservedPaths.default;
  if (reserved < most) return;
  throw new Refusal(
    'too_many_reserved',
    `this pull request reserves ${most} paths that it does not change already`,
    '`/release` of one of them first',
  );
}

function reservedTarget(
  given: Given,
  path: string,
  files: ReadonlyMap<string, ChangedFile>,
  { modes, head }: PathSight,
): ClaimTarget {
  if (!given.asker.allowed) {
    throw new Refusal(
      'denied',
      'a pull request reserves paths once it may be reviewed',
      '`/allow` by someone with write first',
    );
  }
  if (modes === null || head !== given.unit.run.head) {
    throw new Refusal(
      'lookup_failed',
      'git did not tell what lies at that path; repeat the command in a minute',
      'a path that this pull request changes',
    );
  }
  const mode = modes.get(pathKey(path)) ?? null;
  if (mode === '040000') throw noSinglePath();
  const links = new Set([
    ...linkPaths([...files.values()].map((one) => changedTarget(one, false))),
    ...[...modes].flatMap(([key, found]) => (isLinkMode(found) ? [key] : [])),
  ]);
  const known: WirePath = path;
  const target = { path: known, from: null, modeBase: mode, modeHead: mode };
  refuseUnclaimable(given, target, links);
  return { ...target, changed: false, owner: null, whole: false };
}

function noSinglePath(): Refusal {
  return new Refusal('bad_owned', 'one exact path can be claimed, no directory and no glob', 'one path');
}

function refuseUnclaimable(
  { judged }: Given,
  target: OwnedFile & { readonly guarded?: boolean },
  links: ReadonlySet<string>,
): void {
  const { policy } = judged;
  if (policy === null) throw new Refusal('conflict', 'the policy of this run is not known');
  const guarded = compileGuard(policy);
  if (target.guarded === true || guarded(target.path) || (target.from !== null && guarded(target.from))) {
    throw new Refusal(
      'guarded',
      'that path is guarded: no block owns or claims it',
      'a path that is not guarded',
    );
  }
  const refusal = claimRefusal(target, links);
  if (refusal !== null)
    throw new Refusal('bad_path', `that path cannot be claimed: ${refusal}`, 'another path');
}
