/** What a head comes to (BLK-1…BLK-6, OWN-3…OWN-6): pure, from what was read and what the rows say. */
import type { StoredBlock } from '../../../db/store/block.ts';
import { type Dependencies, readDependencies } from '../../domain/block/dependency.ts';
import { type KnownBlock, knownBlocks } from '../../domain/block/prior.ts';
import { type Block, mapBlocks, PSEUDO_BLOCKS } from '../../domain/block.ts';
import { type Kind, kindOf, kindOfBlock } from '../../domain/file-set/kind.ts';
import {
  contentKey,
  decideFiles,
  type FileBlock,
  type FileSetInput,
  type PairedFile,
  pairFiles,
  ROUNDS,
} from '../../domain/file-set.ts';
import { gatePolicyOf } from '../../domain/gate/policy.ts';
import { deepBlocks } from '../../domain/gate/rounds.ts';
import type { AnyRow } from '../../domain/ledger/row.ts';
import type { DecidedPath } from '../../domain/ledger/row-fields.ts';
import { type EntryKind, entryKind } from '../../domain/ownership/entry.ts';
import { compileGuard, pathText } from '../../domain/ownership/guard.ts';
import { decideOwnership, foldClaims, type Ownership } from '../../domain/ownership.ts';
import { pathKey } from '../../domain/path.ts';
import { isGlob } from '../../domain/policy/pattern.ts';
import type { Policy } from '../../domain/policy.ts';
import { foldRows } from '../../domain/run-state/fold.ts';
import { PROMPT_VERSION } from '../../protocol/runner.ts';
import type { Content } from './read.ts';

/** What is shown of a block beside its columns (the `detail` of the block table); its rows decide. */
export interface BlockDetail {
  readonly owns: readonly string[];
  /** What each of `owns` was when it was first claimed, in their order; null for globs and directories (OWN-2). */
  readonly was: readonly (EntryKind | null)[];
  readonly after: readonly string[];
  readonly accept: readonly string[];
  readonly accept_human: readonly string[];
  readonly declares: boolean;
  readonly level: 'L1' | 'L2' | 'L3' | null;
  readonly notes: readonly { readonly code: string; readonly detail: string }[];
  /** Its commit messages and the pull request's body, cut. */
  readonly brief: string;
}

/** A block with what follows from the whole head. */
export interface PlannedBlock {
  readonly block: Block;
  readonly kind: Kind;
  readonly level: DecidedPath['level'];
  readonly detail: BlockDetail;
  readonly keptClaims: number;
  /** What the rows say of it before this head; null: it is new. */
  readonly known: KnownBlock | null;
}

/** A head as it shall be recorded. */
export interface HeadPlan {
  readonly blocks: readonly PlannedBlock[];
  /** Open blocks of which no commit is in this head. */
  readonly dropped: readonly KnownBlock[];
  readonly files: readonly DecidedPath[];
  readonly ownership: Ownership;
}

const BRIEF = 20_000;
const LEVELS = ['L0', 'L1', 'L2', 'L3'] as const;

/**
 * Plans a head. `rows` are the run's verified rows: blocks, claims, earlier levels and rounds come from
 * nowhere else, and content that is new asks `history`, the paths with a blocking finding lately. Of `stored` only commit lists are taken that a row's digest proves.
 */
export function planHead(
  content: Content,
  policy: Policy,
  policyHash: string,
  body: string,
  stored: readonly StoredBlock[],
  rows: readonly AnyRow[],
  history: ReadonlySet<string> = new Set(),
): HeadPlan {
  const { reading } = content;
  const known = knownBlocks(rows, new Map(stored.map((block) => [block.id, block.commits])));
  const priors = new Map(known.map((block) => [block.id, block]));
  const blocks = mapBlocks(reading.commits, known);
  const details = new Map(
    blocks.map((block) => [block.id, entriesOf(block, priors.get(block.id)?.entries, content.entryModes)]),
  );
  const dependencies = readDependencies(
    blocks.map(({ id, slug, declared }) => ({ id, slug, after: declared.after })),
  );
  const touches = touchesOf(content, blocks);
  const files = pairFiles(reading.files, reading.renames);
  const claims = foldClaims(rows);
  const ownership = decideOwnership({
    mode: policy.ownership,
    files,
    blocks: blocks.map((block) => ({
      id: block.id,
      entries: details.get(block.id)?.owns ?? [],
      declares: block.declared.owns.length > 0,
    })),
    touches: touches.byPath,
    claims,
    guarded: compileGuard(policy),
  });
  const kinds = new Map(blocks.map((block) => [block.id, touches.kinds.get(block.id) ?? []]));
  const deep = rows.length === 0 ? new Set<string>() : deepBlocks(foldRows(rows), gatePolicyOf(policy));
  const decided = decideFiles({
    ...fileSetInput(content, policy, policyHash, files, ownership, blocks, kinds, rows, deep),
    history,
  });
  const levels = new Map<string, DecidedPath['level']>();
  for (const { block, level } of decided) {
    if (LEVELS.indexOf(level) > LEVELS.indexOf(levels.get(block) ?? 'L0')) levels.set(block, level);
  }
  const messages = new Map(reading.commits.map((commit) => [commit.oid, commit.message]));
  const ids = new Set(blocks.map((block) => block.id));
  return {
    blocks: blocks.map((block) => ({
      block,
      kind: kindOfBlock(kinds.get(block.id) ?? []),
      level: levels.get(block.id) ?? 'L0',
      keptClaims: [...claims.values()].filter((words) => words.get(block.id)?.claimed === true).length,
      detail: detailOf(block, details.get(block.id), dependencies.get(block.id), [
        ...block.commits.map((oid) => messages.get(oid) ?? ''),
        body,
      ]),
      known: priors.get(block.id) ?? null,
    })),
    dropped: known.filter((block) => block.open && !ids.has(block.id)),
    files: decided,
    ownership,
  };
}

function fileSetInput(
  content: Content,
  policy: Policy,
  policyHash: string,
  files: readonly PairedFile[],
  ownership: Ownership,
  blocks: readonly Block[],
  kinds: ReadonlyMap<string, readonly Kind[]>,
  rows: readonly AnyRow[],
  deep: ReadonlySet<string>,
): FileSetInput {
  const given = blocks.map((block): [string, FileBlock] => {
    const changed = kinds.get(block.id) ?? [];
    return [
      block.id,
      {
        docsOnly: changed.length > 0 && changed.every((kind) => kind === 'docs'),
        trailer: block.declared.level,
        clauses: block.declared.accept,
        deep: deep.has(block.id),
      },
    ];
  });
  // what no block owns has rounds too
  for (const id of PSEUDO_BLOCKS)
    if (deep.has(id)) given.push([id, { docsOnly: false, trailer: null, clauses: [], deep: true }]);
  return {
    policy,
    files,
    ownership,
    blocks: new Map(given),
    attributes: content.attributes,
    lines: content.lines,
    decided: decidedBefore(rows, policyHash),
    promptVersion: PROMPT_VERSION,
  };
}

/** Levels are decided once per (run, path, content, policy) and read back from the rows (BLK-6). */
function decidedBefore(rows: readonly AnyRow[], policyHash: string): FileSetInput['decided'] {
  const decided = new Map<string, ReturnType<FileSetInput['decided']['get']> & object>();
  for (const row of rows) {
    if (row.kind !== 'decision' || row.data.policy !== policyHash) continue;
    for (const path of row.data.paths) {
      const key = contentKey(path);
      // content that a round at L3 read stays at L3: nothing is asked of it anew (RND-2)
      if (decided.has(key) && path.reason !== ROUNDS) continue;
      decided.set(key, {
        level: path.level,
        asked: path.asked ?? null,
        reason: path.reason ?? null,
        kind: path.kind,
      });
    }
  }
  return decided;
}

function detailOf(
  block: Block,
  entries: ReturnType<typeof entriesOf> | undefined,
  dependencies: Dependencies | undefined,
  texts: readonly string[],
): BlockDetail {
  return {
    owns: entries?.owns ?? [],
    was: entries?.was ?? [],
    after: dependencies?.after ?? [],
    accept: block.declared.accept,
    accept_human: block.declared.acceptHuman,
    declares: block.declared.owns.length > 0,
    level: block.declared.level,
    // what breaks the gate is never cut off by what only tells
    notes: [...(dependencies?.notes ?? []), ...block.declared.notes].slice(0, 20),
    brief: briefOf(texts),
  };
}

/** OWN-2: the first record of an exact entry wins; one that was a directory owns what lies in it. */
export function entriesOf(
  block: { readonly declared: Pick<Block['declared'], 'owns'> },
  before: ReadonlyMap<string, EntryKind> | undefined,
  modes: ReadonlyMap<string, string>,
): { readonly owns: string[]; readonly was: (EntryKind | null)[] } {
  const owns: string[] = [];
  const was: (EntryKind | null)[] = [];
  for (const entry of block.declared.owns) {
    const exact = !isGlob(entry) && !entry.endsWith('/');
    const kind = exact ? (before?.get(entry) ?? entryKind(modes.get(entry) ?? null)) : null;
    owns.push(kind === 'directory' ? `${entry}/` : entry);
    was.push(kind);
  }
  return { owns, was };
}

function touchesOf(
  content: Content,
  blocks: readonly Block[],
): {
  readonly byPath: Map<string, string[]>;
  readonly kinds: Map<string, Kind[]>;
} {
  const blockOf = new Map(blocks.flatMap((block) => block.commits.map((oid) => [oid, block.id] as const)));
  const byPath = new Map<string, string[]>();
  const kinds = new Map<string, Kind[]>();
  for (const commit of content.reading.commits) {
    const id = blockOf.get(commit.oid);
    if (id === undefined) continue;
    const list = kinds.get(id) ?? [];
    kinds.set(id, list);
    for (const change of commit.changes) {
      list.push(kindOf(pathText(change.path), change.modeHead ?? change.modeBase));
      const key = pathKey(change.path);
      const known = byPath.get(key);
      if (known === undefined) byPath.set(key, [id]);
      else if (!known.includes(id)) known.push(id);
    }
  }
  return { byPath, kinds };
}

/** Text that Postgres's jsonb and the wire take: no NUL, no lone surrogate, cut between characters. */
function briefOf(texts: readonly string[]): string {
  const text = texts
    .map((one) => one.trim())
    .filter((one) => one !== '')
    .join('\n\n');
  return text.slice(0, BRIEF).replaceAll('\u0000', '').toWellFormed();
}
