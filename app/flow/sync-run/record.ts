/** Writes a planned head: rows first, then the projections of the same (LED-4, BLK-6). Only what changed. */
import type { StoredBlock } from '../../../db/store/block.ts';
import { putClaims } from '../../../db/store/claim.ts';
import { putFiles, removeFiles } from '../../../db/store/file.ts';
import type { Run } from '../../../db/store/run.ts';
import { filesDigest } from '../../domain/file-set.ts';
import type { AnyRow } from '../../domain/ledger/row.ts';
import type { Actor, Cause, DecidedPath } from '../../domain/ledger/row-fields.ts';
import type { RowData, RowKind } from '../../domain/ledger/row-kinds.ts';
import { decodePath, pathKey, type WirePath } from '../../domain/path.ts';
import type { FileFact, RunState } from '../../domain/run-state/state.ts';
import type { RunUnit } from '../append-rows.ts';
import type { Deps } from '../deps.ts';
import type { HeadPlan } from './plan.ts';
import type { Truth } from './read.ts';
import { recordBlocks } from './record-blocks.ts';
import { recordFindings } from './record-findings.ts';

/** A row's body is at most 32 KiB; salt, header and a margin are taken off. */
const ROW_BYTES = 30_000;
const MOST_PATHS = 400;
const MOST_GONE = 1000;
const MOST_CONTRIBUTED = 100;

/** Appends rows of this step: by the app, for the run. */
export type Append = <K extends RowKind>(kind: K, block: string | null, data: RowData<K>) => number;

/** Who writes the rows of this step, and what made it. */
export function authorship(deps: Deps, run: Run): { readonly actor: Actor; readonly cause: Cause } {
  return {
    actor: { kind: 'app', id: deps.github.appId, via: 'schedule' },
    cause: { kind: 'schedule', id: `sync-run:${run.id}`, sha256: null },
  };
}

/** The append of a unit with this step's actor and cause. */
export function appender(unit: RunUnit, deps: Deps): Append {
  const by = authorship(deps, unit.run);
  return (kind, block, data) => unit.append(kind, { block, ...by, data });
}

/** Records blocks, claims, the file set, what it makes of findings, and the head; true when anything was written. */
export async function recordHead(
  unit: RunUnit,
  append: Append,
  state: RunState,
  truth: Truth,
  plan: HeadPlan,
  policyHash: string | null,
  stored: readonly StoredBlock[],
  rows: readonly AnyRow[],
): Promise<boolean> {
  const blocks = await recordBlocks(unit, append, plan, stored);
  const claims = await recordClaims(unit, append, plan);
  const contributions = recordContributions(append, plan, rows);
  const files = await recordFiles(unit, append, state, truth, plan, policyHash);
  const findings = await recordFindings(unit, append, state, truth, plan, rows);
  const head = recordPosition(append, state, truth, plan, files);
  return blocks || claims || contributions || files || findings || head;
}

async function recordClaims(unit: RunUnit, append: Append, plan: HeadPlan): Promise<boolean> {
  const claims = [];
  for (const { path } of plan.files) {
    const claim = plan.ownership.owners.get(pathKey(path))?.claim ?? null;
    if (claim === null) continue;
    const seq = append('block.claimed', claim.block, { ...claim, path, auto: true });
    claims.push({
      runId: unit.run.id,
      blockId: claim.block,
      path: decodePath(path),
      entry: claim.entry,
      auto: true,
      seq,
    });
  }
  await putClaims(unit.tx, claims);
  return claims.length > 0;
}

/** OWN-4: who changed what another owns; what the last such row of two blocks says is not said again. */
function recordContributions(append: Append, plan: HeadPlan, rows: readonly AnyRow[]): boolean {
  const told = new Map<string, string>();
  for (const row of rows) {
    if (row.kind !== 'block.contributed') continue;
    const { block, to, paths, count } = row.data;
    told.set(`${block} ${to}`, JSON.stringify([paths, count]));
  }
  let appended = false;
  for (const { block, to, paths: all } of plan.ownership.contributions) {
    const paths = within(all, MOST_CONTRIBUTED);
    if (told.get(`${block} ${to}`) === JSON.stringify([paths, all.length])) continue;
    append('block.contributed', block, { block, to, paths, count: all.length });
    appended = true;
  }
  return appended;
}

/** Decision rows as differences to the file set before, each under the size of a row. */
async function recordFiles(
  unit: RunUnit,
  append: Append,
  state: RunState,
  truth: Truth,
  plan: HeadPlan,
  policyHash: string | null,
): Promise<boolean> {
  const now = new Set(plan.files.map((file) => pathKey(file.path)));
  const gone = [...state.files.values()].map((file) => file.path).filter((path) => !now.has(pathKey(path)));
  // a level is decided under a policy: another one decides all of them again, on the record
  const anew = policyHash !== null && state.policy?.hash !== policyHash;
  const paths = plan.files.filter((file) => anew || !sameFile(state.files.get(pathKey(file.path)), file));
  if (gone.length === 0 && paths.length === 0) return false;
  for (const part of split(gone, paths)) {
    append('decision', null, {
      question: 'level',
      source: 'rules',
      head: truth.pull.head,
      policy: policyHash,
      ...part,
    });
  }
  await removeFiles(unit.tx, unit.run.id, gone.map(decodePath));
  await putFiles(
    unit.tx,
    paths.map((file) => ({
      runId: unit.run.id,
      path: decodePath(file.path),
      fromPath: file.from === undefined ? null : decodePath(file.from),
      status: file.status,
      modeBase: file.mode.base,
      modeHead: file.mode.head,
      blobBase: file.blob.base,
      blobHead: file.blob.head,
      kind: file.kind,
      level: file.level,
      asked: file.asked ?? null,
      reason: file.reason ?? null,
      lines: file.blob.head === null ? null : (truth.content?.lines.get(file.blob.head) ?? null),
      blockId: file.block,
      ownership: file.ownership,
      key: file.key,
    })),
  );
  return true;
}

function sameFile(before: FileFact | undefined, now: DecidedPath): boolean {
  return (
    before !== undefined &&
    before.key === now.key &&
    before.level === now.level &&
    before.block === now.block &&
    before.ownership === now.ownership &&
    before.status === now.status &&
    before.kind === now.kind &&
    before.asked === now.asked &&
    before.reason === now.reason &&
    before.human === now.human &&
    (before.verify ?? []).join() === (now.verify ?? []).join() &&
    before.mode.base === now.mode.base &&
    before.mode.head === now.mode.head &&
    before.blob.base === now.blob.base &&
    before.blob.head === now.blob.head &&
    (before.from === undefined ? '' : pathKey(before.from)) ===
      (now.from === undefined ? '' : pathKey(now.from))
  );
}

/** The file set as it changes, in parts that each fit a row. */
export function* split(
  gone: readonly WirePath[],
  paths: readonly DecidedPath[],
): Generator<{ gone: WirePath[]; paths: DecidedPath[] }> {
  let part: { gone: WirePath[]; paths: DecidedPath[] } = { gone: [], paths: [] };
  let size = 0;
  for (const [list, item] of [
    ...gone.map((path) => ['gone', path] as const),
    ...paths.map((path) => ['paths', path] as const),
  ]) {
    const bytes = Buffer.byteLength(JSON.stringify(item)) + 1;
    const full = part.gone.length >= MOST_GONE || part.paths.length >= MOST_PATHS;
    if (size > 0 && (size + bytes > ROW_BYTES || full)) {
      yield part;
      part = { gone: [], paths: [] };
      size = 0;
    }
    if (list === 'gone') part.gone.push(item);
    else part.paths.push(item);
    size += bytes;
  }
  yield part;
}

function recordPosition(
  append: Append,
  state: RunState,
  truth: Truth,
  plan: HeadPlan,
  filesChanged: boolean,
): boolean {
  const { pull, content, policy } = truth;
  if (content === null) return false;
  const before = state.heads.at(-1);
  const data: RowData<'run.head'> = {
    head: pull.head,
    base_ref: pull.baseRef,
    base: policy.commit,
    merge_base: content.reading.mergeBase,
    prior: before === undefined || before.head === pull.head ? null : before.head,
    ancestor: content.ancestor,
    draft: pull.draft,
    commits: content.reading.commits.length,
    files: plan.files.length,
    files_digest: filesDigest(plan.files.map((file) => file.path)),
    ...(truth.repair === null ? {} : { repair: truth.repair.hash }),
  };
  const same =
    !filesChanged &&
    before !== undefined &&
    before.head === data.head &&
    before.base_ref === data.base_ref &&
    before.merge_base === data.merge_base &&
    before.draft === data.draft &&
    before.commits === data.commits &&
    before.files_digest === data.files_digest &&
    before.repair === data.repair;
  // a base that moved on without touching merge base or policy changes no verdict (RUN-4)
  if (same) return false;
  append('run.head', null, data);
  return true;
}

function within(paths: readonly WirePath[], most: number): WirePath[] {
  const fitting: WirePath[] = [];
  let size = 0;
  for (const path of paths.slice(0, most)) {
    size += Buffer.byteLength(JSON.stringify(path)) + 1;
    if (size > ROW_BYTES) break;
    fitting.push(path);
  }
  return fitting;
}
