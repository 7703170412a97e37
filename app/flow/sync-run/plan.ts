/** What a head comes to (BLK-1…BLK-6, OWN-3…OWN-6): pure, from what was read and what the rows say. */
import type { StoredBlock } from '../../../db/store/block.ts';
import { type Block, mapBlocks, type PriorBlock, type Seed } from '../../domain/block.ts';
import { type Kind, kindOf, kindOfBlock } from '../../domain/file-set/kind.ts';
import {
  contentKey,
  decideFiles,
  type FileBlock,
  type FileSetInput,
  type PairedFile,
  pairFiles,
} from '../../domain/file-set.ts';
import type { AnyRow } from '../../domain/ledger/row.ts';
import type { DecidedPath } from '../../domain/ledger/row-fields.ts';
import { entryKind } from '../../domain/ownership/entry.ts';
import { compileGuard, pathText } from '../../domain/ownership/guard.ts';
import { decideOwnership, foldClaims, type Ownership } from '../../domain/ownership.ts';
import { pathKey } from '../../domain/path.ts';
import { isGlob } from '../../domain/policy/pattern.ts';
import type { Policy } from '../../domain/policy.ts';
import { PROMPT_VERSION } from '../../protocol/runner.ts';
import type { Content } from './read.ts';

/** What the product keeps of a block beside its columns (the `detail` of the block table). */
export interface BlockDetail {
  readonly seed: Seed;
  /** What each exact `Owns` entry was when it was first claimed (OWN-2). */
  readonly entries: Readonly<Record<string, string>>;
  readonly owns: readonly string[];
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
}

/** A head as it shall be recorded. */
export interface HeadPlan {
  readonly blocks: readonly PlannedBlock[];
  readonly dropped: readonly StoredBlock[];
  readonly files: readonly DecidedPath[];
  readonly ownership: Ownership;
}

const BRIEF = 20_000;
const LEVELS = ['L0', 'L1', 'L2', 'L3'] as const;

/** Plans a head. `rows` are the run's verified rows: claims and earlier levels come from nowhere else. */
export function planHead(
  content: Content,
  policy: Policy,
  policyHash: string,
  body: string,
  stored: readonly StoredBlock[],
  rows: readonly AnyRow[],
): HeadPlan {
  const { reading } = content;
  const priors = new Map(stored.map((block) => [block.id, block]));
  const blocks = mapBlocks(reading.commits, stored.map(toPrior));
  const details = new Map(
    blocks.map((block) => [block.id, entriesOf(block, priors.get(block.id), content.entryModes)]),
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
  const decided = decideFiles(
    fileSetInput(content, policy, policyHash, files, ownership, blocks, kinds, rows),
  );
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
      detail: {
        seed: block.seed,
        entries: details.get(block.id)?.entries ?? {},
        owns: details.get(block.id)?.owns ?? [],
        after: block.declared.after,
        accept: block.declared.accept,
        accept_human: block.declared.acceptHuman,
        declares: block.declared.owns.length > 0,
        level: block.declared.level,
        notes: block.declared.notes,
        brief: briefOf([...block.commits.map((oid) => messages.get(oid) ?? ''), body]),
      },
    })),
    dropped: stored.filter((block) => block.status !== 'dropped' && !ids.has(block.id)),
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
): FileSetInput {
  const given = blocks.map((block): [string, FileBlock] => {
    const changed = kinds.get(block.id) ?? [];
    return [
      block.id,
      {
        docsOnly: changed.length > 0 && changed.every((kind) => kind === 'docs'),
        trailer: block.declared.level,
        clauses: block.declared.accept,
      },
    ];
  });
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
      if (decided.has(key)) continue;
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

function toPrior(block: StoredBlock): PriorBlock {
  const detail = block.detail as Partial<BlockDetail>;
  return {
    id: block.id,
    identity: block.identity,
    named: block.named,
    open: block.status !== 'dropped',
    attempt: block.attempt,
    commits: block.commits,
    seed: detail.seed ?? null,
  };
}

/**
 * OWN-2: the first record of an exact entry wins; one that was a directory owns what lies in it. The
 * author picks the entries, so a record is looked up in a map: `__proto__` is a path like any other.
 */
export function entriesOf(
  block: { readonly declared: Pick<Block['declared'], 'owns'> },
  prior: Pick<StoredBlock, 'detail'> | undefined,
  modes: ReadonlyMap<string, string>,
): { readonly entries: Record<string, string>; readonly owns: string[] } {
  const before = (prior?.detail as Partial<BlockDetail> | undefined)?.entries ?? {};
  const entries = new Map(Object.entries(before));
  const owns = block.declared.owns.map((entry) => {
    if (isGlob(entry) || entry.endsWith('/')) return entry;
    const kind = entries.get(entry) ?? entryKind(modes.get(entry) ?? null);
    entries.set(entry, kind);
    return kind === 'directory' ? `${entry}/` : entry;
  });
  return { entries: Object.fromEntries(entries), owns };
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
