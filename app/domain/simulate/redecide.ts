/**
 * The file set of recorded rows under another policy. Rows hold no attributes, no counts of lines and no
 * texts of clauses, so nothing is decided from them anew: both policies decide the same reduced input, and
 * only where their answers differ does the proposed one's replace what was recorded.
 */
import { contentKey, decideFiles, type FileBlock, type FileSetInput, type PairedFile } from '../file-set.ts';
import type { DecidedPath } from '../ledger/row-fields.ts';
import { compileGuard } from '../ownership/guard.ts';
import type { Ownership, PathOwner } from '../ownership.ts';
import { pathKey, type WirePath } from '../path.ts';
import type { Policy } from '../policy.ts';
import type { FileFact, RunState } from '../run-state/state.ts';

/** What rows cannot tell, where it could matter. */
export type Unknown = 'lines' | 'owner';

/** The file set as it would have been decided, and what could not be told of it. */
export interface Redecided {
  readonly files: ReadonlyMap<string, FileFact>;
  readonly unknown: ReadonlySet<Unknown>;
}

/** L0 classes that attributes of the base may give, of which rows hold the outcome alone. */
const CLASSES: ReadonlySet<string> = new Set(['generated', 'vendored', 'lockfile', 'binary']);

/** Decides the present file set again under `proposed`; `recorded` is the policy it was decided under. */
export function redecideFiles(
  state: RunState,
  recorded: Policy,
  proposed: Policy,
  promptVersion: string,
): Redecided {
  const known = [...state.files.values()];
  const unknown = new Set<Unknown>();
  const files = pairsOf(known);
  const before = ownershipOf(known, ({ block, ownership }) => ({ block, ownership }));
  const after = ownersAfter(state, known, recorded, proposed, unknown);
  if ([recorded, proposed].some((policy) => policy.routes.some((route) => route.when.lines !== undefined)))
    unknown.add('lines');
  const input = { files, attributes: [], lines: new Map(), promptVersion, blocks: blocksOf(state, known) };
  const decide = (policy: Policy, ownership: Ownership, decided: FileSetInput['decided']) =>
    byKey(decideFiles({ ...input, policy, ownership, decided }));
  const none: FileSetInput['decided'] = new Map();
  const [levelsThen, levelsNow] = [decide(recorded, before, none), decide(proposed, after, none)];
  const levels = known.map((file) => {
    const key = pathKey(file.path);
    return atLevel(file, levelOf(file, levelsThen.get(key), levelsNow.get(key)));
  });
  const keysThen = decide(recorded, before, decidedOf(known));
  const keysNow = decide(proposed, after, decidedOf(levels));
  const result = new Map<string, FileFact>();
  for (const file of levels) {
    const name = pathKey(file.path);
    const [then, now] = [keysThen.get(name), keysNow.get(name)];
    if (then === undefined || now === undefined) continue;
    const { human, verify: _, ...rest } = file;
    result.set(name, {
      ...rest,
      ...((then.human === now.human ? human : now.human) === true ? { human: true as const } : {}),
      ...(now.verify === undefined ? {} : { verify: now.verify }),
      block: now.block,
      ownership: now.ownership,
      // the same question under both policies is the question that was answered
      key: then.key === now.key ? file.key : now.key,
    });
  }
  return { files: result, unknown };
}

type Level = Pick<DecidedPath, 'level' | 'kind' | 'asked' | 'reason'>;

function levelOf(file: FileFact, then: DecidedPath | undefined, now: DecidedPath | undefined): Level {
  if (then === undefined || now === undefined || same(then, now)) return file;
  // said by attributes of the base, which no policy takes back but by a guard
  const byAttributes = file.level === 'L0' && CLASSES.has(file.reason ?? '') && then.reason !== file.reason;
  return byAttributes && now.ownership !== 'guarded' ? file : now;
}

function same(a: DecidedPath, b: DecidedPath): boolean {
  const said = ({ level, kind, asked, reason }: DecidedPath) => [level, kind, asked, reason].join();
  return said(a) === said(b);
}

/** A file at a level that was decided elsewhere. */
function atLevel(file: FileFact, { level, kind, asked, reason }: Level): FileFact {
  const { asked: _asked, reason: _reason, ...rest } = file;
  return {
    ...rest,
    level,
    kind,
    ...(asked === undefined ? {} : { asked }),
    ...(reason === undefined ? {} : { reason }),
  };
}

function pairsOf(files: readonly FileFact[]): PairedFile[] {
  const olds = new Set(files.flatMap(({ from }) => (from === undefined ? [] : [pathKey(from)])));
  return files.map(({ path, from, status, mode, blob }) => {
    const moved = mode.base === mode.head && blob.base === blob.head;
    const pair = from === undefined ? (olds.has(pathKey(path)) ? 'old' : null) : moved ? 'moved' : 'edited';
    return {
      path,
      status,
      modeBase: mode.base,
      modeHead: mode.head,
      blobBase: blob.base,
      blobHead: blob.head,
      from: from ?? null,
      pair,
    };
  });
}

/** What rows tell of blocks: a level that a trailer raised is in the files that it raised. */
function blocksOf(state: RunState, files: readonly FileFact[]): Map<string, FileBlock> {
  const raised = new Map<string, FileBlock['trailer']>();
  for (const { block, reason, level } of files)
    if (reason === 'raised' && level !== 'L0') raised.set(block, level);
  return new Map(
    [...state.blocks.values()].map(({ id, kind }) => [
      id,
      { docsOnly: kind === 'docs', trailer: raised.get(id) ?? null, clauses: [] },
    ]),
  );
}

function ownershipOf(
  files: readonly FileFact[],
  owner: (file: FileFact) => Pick<PathOwner, 'block' | 'ownership'>,
): Ownership {
  const owners = files.map((file): [string, PathOwner] => [
    pathKey(file.path),
    { ...owner(file), reason: null, claim: null },
  ]);
  return { owners: new Map(owners), contributions: [] };
}

function ownersAfter(
  state: RunState,
  files: readonly FileFact[],
  recorded: Policy,
  proposed: Policy,
  unknown: Set<Unknown>,
): Ownership {
  const guards = compileGuard(proposed);
  const to = new Map(
    files.flatMap(({ path, from }) => (from === undefined ? [] : [[pathKey(from), path] as const])),
  );
  const live = [...state.blocks.values()].filter((block) => block.ended !== 'dropped');
  return ownershipOf(files, (file) => {
    const key = pathKey(file.path);
    const pair: (WirePath | undefined)[] = [file.path, file.from, to.get(key)];
    if (pair.some((path) => path !== undefined && guards(path)))
      return { block: 'guarded', ownership: 'guarded' };
    const claim = state.claims.get(key);
    if (file.ownership === 'guarded') {
      // rows of a guarded path name no block: with one block there is no other
      const only = live.length === 1 ? live[0]?.id : undefined;
      const block = claim?.block ?? only;
      if (block === undefined) unknown.add('owner');
      return { block: block ?? 'unowned', ownership: 'owned' };
    }
    if (recorded.ownership === proposed.ownership) return file;
    // OWN-5: what a block with `Owns` changes beside it is claimed by itself, or an orphan
    if (proposed.ownership === 'declared' && file.ownership === 'owned' && claim?.auto === true)
      return { block: 'unowned', ownership: 'orphan' };
    if (proposed.ownership === 'auto' && file.ownership === 'orphan') {
      const only = live.length === 1 ? live[0]?.id : undefined;
      if (only === undefined) unknown.add('owner');
      return { block: only ?? 'unowned', ownership: 'owned' };
    }
    return file;
  });
}

function decidedOf(files: readonly FileFact[]): FileSetInput['decided'] {
  return new Map(
    files.map((file) => [
      contentKey(file),
      { level: file.level, asked: file.asked ?? null, reason: file.reason ?? null, kind: file.kind },
    ]),
  );
}

function byKey(files: readonly DecidedPath[]): Map<string, DecidedPath> {
  return new Map(files.map((file) => [pathKey(file.path), file]));
}
