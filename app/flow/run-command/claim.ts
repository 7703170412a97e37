/**
 * `/claim PATH [BLOCK]` and `/release PATH` (OWN-5…OWN-8): rows decide who owns a path, and sync-run
 * reads them. A path that the head does not change is reserved. A repeat answers the same and adds no row.
 *
 * Reads: verified rows, blocks, files; what git told before the unit of work (`see-path.ts`).
 * Writes: rows `human.acted block.released block.claimed`, the claim projection. Queues: sync-run, decide-gate.
 * May fail with: `bad_owned bad_path guarded unknown_block nothing_to_release too_many_reserved denied
 * lookup_failed conflict`.
 */
import { listBlocks, type StoredBlock } from '../../../db/store/block.ts';
import { putClaims, removeClaim } from '../../../db/store/claim.ts';
import type { Command } from '../../domain/command/arguments.ts';
import { doneReply } from '../../domain/command/reply.ts';
import type { AnyRow } from '../../domain/ledger/row.ts';
import { type EntryKind, entryKind } from '../../domain/ownership/entry.ts';
import { compileDeclarations } from '../../domain/ownership/match.ts';
import { type ClaimWords, foldClaims } from '../../domain/ownership.ts';
import { decodePath, pathKey, showPath } from '../../domain/path.ts';
import { Markdown, md } from '../../domain/summary/markdown.ts';
import { Refusal } from '../../errors.ts';
import {
  type ClaimTarget,
  changedTarget,
  claimTarget,
  countReserved,
  refuseTooMany,
} from './claim-target.ts';
import { changedFiles, Declined, type Given, readAgain, rowsOf } from './given.ts';
import type { PathSight } from './see-path.ts';

const NO_WORDS: ClaimWords = new Map();

/** Gives a path to a block, or reserves it for one. */
export async function claim(
  given: Given,
  command: Extract<Command, { name: 'claim' }>,
  sight: PathSight,
): Promise<Markdown> {
  const { unit, prefix } = given;
  const files = await changedFiles(unit.tx, unit.run.id);
  const rows = await rowsOf(given);
  const claims = foldClaims(rows);
  const target = claimTarget(given, command, files, sight);
  const blocks = (await listBlocks(unit.tx, unit.run.id)).filter((block) => block.status !== 'dropped');
  const block = blockMeant(
    blocks,
    target.whole ? null : command.block,
    sight.touched.get(pathKey(target.path)) ?? null,
  );
  const words = claims.get(pathKey(target.path)) ?? NO_WORDS;
  const shown = target.changed
    ? md`${Markdown.code(showPath(target.path))} belongs to block ${Markdown.code(block)}`
    : md`${Markdown.code(showPath(target.path))} is reserved for block ${Markdown.code(block)}`;
  const others = blocks.map((one) => one.id).filter((id) => id !== block && holds(id, target, rows, words));
  const word = words.get(block);
  if (
    others.length === 0 &&
    (word?.claimed === true || (target.owner === block && word?.claimed !== false))
  ) {
    return doneReply(prefix, 'claim', md`${shown} already.`);
  }
  const open = new Set(blocks.map((one) => one.id));
  const isReserved = [...words].some(([id, one]) => one.claimed && !one.auto && open.has(id));
  if (!target.changed && !isReserved) refuseTooMany(countReserved(claims, files, open));
  record(given, 'claim', block, target);
  for (const other of others) await release(given, other, target, `claimed for ${block}`);
  await append(given, block, target, entryOf(rows, target), 'claimed by command');
  readAgain(given);
  const from =
    others.length === 0 ? md`` : md`, no longer to ${Markdown.join(others.map(Markdown.code), ', ')}`;
  return doneReply(prefix, 'claim', md`${shown}${from}.`);
}

/** Takes a claim back; what that claim took from other blocks is theirs again. */
export async function releaseClaim(
  given: Given,
  command: Extract<Command, { name: 'release' }>,
): Promise<Markdown> {
  const { unit, prefix } = given;
  const files = await changedFiles(unit.tx, unit.run.id);
  const rows = await rowsOf(given);
  const key = pathKey(command.path);
  const found = files.get(key);
  // a reservation, or a claim on what has left the change since, is known by its rows alone
  const target: ClaimTarget =
    found === undefined
      ? {
          path: command.path,
          from: null,
          modeBase: null,
          modeHead: null,
          changed: false,
          owner: null,
          whole: false,
        }
      : changedTarget(found, false);
  const words = foldClaims(rows).get(key) ?? NO_WORDS;
  const claimed = [...words].filter(([, word]) => word.claimed).sort(([, a], [, b]) => b.seq - a.seq)[0];
  if (claimed === undefined) {
    throw new Refusal('nothing_to_release', 'no block claimed that path', 'a path that a claim named');
  }
  const [block, { seq }] = claimed;
  const open = new Set(
    (await listBlocks(unit.tx, unit.run.id)).filter((one) => one.status !== 'dropped').map((one) => one.id),
  );
  const back = takenBy(rows, seq, target).filter((id) => open.has(id) && words.get(id)?.claimed === false);
  record(given, 'release', block, target);
  await release(given, block, target, 'released by command');
  for (const id of back) await append(given, id, target, entryOf(rows, target), `released by ${block}`);
  readAgain(given);
  const to = back.length === 0 ? md`` : md`; it is ${Markdown.join(back.map(Markdown.code), ', ')}'s again`;
  return doneReply(
    prefix,
    'release',
    md`${Markdown.code(showPath(target.path))} is no longer claimed for block ${Markdown.code(block)}${to}.`,
  );
}

function blockMeant(blocks: readonly StoredBlock[], named: string | null, touched: string | null): string {
  const ids = blocks.map((block) => block.id);
  const known = ids.slice(0, 20).join(', ') || 'none is open';
  if (named !== null) {
    if (ids.includes(named)) return named;
    throw new Declined('unknown_block', md`there is no open block ${Markdown.code(named)}`, known);
  }
  if (touched !== null && ids.includes(touched)) return touched;
  const [only] = ids;
  if (only !== undefined && ids.length === 1) return only;
  throw new Refusal('unknown_block', 'it is not clear for which block; name one after the path', known);
}

/** Whether a block has the path by claim, by declaration, or as its first toucher. */
function holds(id: string, target: ClaimTarget, rows: readonly AnyRow[], words: ClaimWords): boolean {
  const word = words.get(id);
  if (word !== undefined) return word.claimed;
  if (target.owner === id) return true;
  const entries = rows.findLast((row) => row.kind === 'block.opened' && row.data.block === id);
  if (entries?.kind !== 'block.opened' || typeof target.path !== 'string') return false;
  return compileDeclarations([{ block: id, entries: entries.data.owns }])(target.path).length > 0;
}

/** The blocks that the act which wrote claim row `seq` took the path from: its rows stand right before. */
function takenBy(rows: readonly AnyRow[], seq: number, target: ClaimTarget): string[] {
  const at = rows.findIndex((row) => row.seq === seq);
  const taken: string[] = [];
  for (let i = at - 1; i >= 0; i--) {
    const row = rows[i];
    if (row?.kind !== 'block.released' || pathKey(row.data.path) !== pathKey(target.path)) break;
    taken.push(row.data.block);
  }
  return taken;
}

/** What the path was when it was first claimed; the first record wins (OWN-2). */
function entryOf(rows: readonly AnyRow[], target: ClaimTarget): EntryKind {
  for (const row of rows) {
    if (row.kind === 'block.claimed' && pathKey(row.data.path) === pathKey(target.path))
      return row.data.entry;
  }
  return entryKind(target.modeHead);
}

function record(given: Given, act: 'claim' | 'release', block: string, target: ClaimTarget): void {
  const { unit, actor, cause, asker } = given;
  unit.append('human.acted', {
    block,
    actor,
    cause,
    data: {
      act,
      head: unit.run.toldHead,
      permission: asker.permission,
      clause: null,
      paths: [target.path],
      self: asker.author,
      text: null,
    },
  });
}

async function append(
  given: Given,
  block: string,
  { path }: ClaimTarget,
  entry: EntryKind,
  reason: string,
): Promise<void> {
  const { unit, actor, cause } = given;
  const data = { block, path, entry, auto: false, reason };
  const seq = unit.append('block.claimed', { block, actor, cause, data });
  await putClaims(unit.tx, [
    { runId: unit.run.id, blockId: block, path: decodePath(path), entry, auto: false, seq },
  ]);
}

async function release(given: Given, block: string, { path }: ClaimTarget, reason: string): Promise<void> {
  const { unit, actor, cause } = given;
  unit.append('block.released', { block, actor, cause, data: { block, path, reason } });
  await removeClaim(unit.tx, unit.run.id, block, decodePath(path));
}
