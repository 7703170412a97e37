/**
 * `/claim PATH [BLOCK]` and `/release PATH` (OWN-5…OWN-8): rows decide who owns a path, and sync-run
 * reads them. A repeat answers the same and adds no row.
 *
 * Reads: verified rows, blocks, files; by git which block touched a path last, before the unit of work.
 * Writes: rows `human.acted block.released block.claimed`, the claim projection. Queues: sync-run, decide-gate.
 * May fail with: `bad_owned bad_path guarded unknown_block nothing_to_release conflict`.
 */
import { listBlocks, type StoredBlock } from '../../../db/store/block.ts';
import { putClaims, removeClaim } from '../../../db/store/claim.ts';
import type { Command } from '../../domain/command/arguments.ts';
import { doneReply } from '../../domain/command/reply.ts';
import type { AnyRow } from '../../domain/ledger/row.ts';
import { type EntryKind, entryKind } from '../../domain/ownership/entry.ts';
import { compileGuard } from '../../domain/ownership/guard.ts';
import { compileDeclarations } from '../../domain/ownership/match.ts';
import { claimRefusal, foldClaims, linkPaths } from '../../domain/ownership.ts';
import { pathKey } from '../../domain/path.ts';
import { isGlob } from '../../domain/policy/pattern.ts';
import { Markdown, md } from '../../domain/summary/markdown.ts';
import { Refusal } from '../../errors.ts';
import { type ChangedFile, changedFiles, Declined, type Given, readAgain, rowsOf } from './given.ts';

/** Gives a path to a block. `touched` is the block whose commit changed it last, null where git did not tell. */
export async function claim(
  given: Given,
  command: Extract<Command, { name: 'claim' }>,
  touched: string | null,
): Promise<Markdown> {
  const { unit, prefix } = given;
  const files = await changedFiles(unit.tx, unit.run.id);
  // bare words that could end in a block: the run knows whether they are one path
  const whole = command.whole === null ? undefined : files.get(pathKey(command.whole));
  const found = whole ?? files.get(pathKey(command.path));
  if (found === undefined) throw notChanged(command.path);
  const rows = await rowsOf(given);
  refuseUnclaimable(given, found, files);
  const blocks = (await listBlocks(unit.tx, unit.run.id)).filter((block) => block.status !== 'dropped');
  const block = blockMeant(blocks, whole === undefined ? command.block : null, touched);
  const words = foldClaims(rows).get(pathKey(found.path)) ?? new Map<string, never>();
  const shown = md`${Markdown.code(showOf(found))} belongs to block ${Markdown.code(block)}`;
  const others = blocks.map((one) => one.id).filter((id) => id !== block && holds(id, found, rows, words));
  const word = words.get(block);
  const owned = found.file.ownership === 'owned' && found.file.blockId === block;
  if (others.length === 0 && (word?.claimed === true || (owned && word?.claimed !== false))) {
    return doneReply(prefix, 'claim', md`${shown} already.`);
  }
  record(given, 'claim', block, found);
  for (const other of others) await release(given, other, found, `claimed for ${block}`);
  await append(given, block, found, entryOf(rows, found), 'claimed by command');
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
  const found = files.get(pathKey(command.path));
  if (found === undefined) throw notChanged(command.path);
  const rows = await rowsOf(given);
  const words = foldClaims(rows).get(pathKey(found.path)) ?? new Map<string, never>();
  const claimed = [...words].filter(([, word]) => word.claimed).sort(([, a], [, b]) => b.seq - a.seq)[0];
  if (claimed === undefined) {
    throw new Refusal('nothing_to_release', 'no block claimed that path', 'a path that a claim named');
  }
  const [block, { seq }] = claimed;
  const open = new Set(
    (await listBlocks(unit.tx, unit.run.id)).filter((one) => one.status !== 'dropped').map((one) => one.id),
  );
  const back = takenBy(rows, seq, found).filter((id) => open.has(id) && words.get(id)?.claimed === false);
  record(given, 'release', block, found);
  await release(given, block, found, 'released by command');
  for (const id of back) await append(given, id, found, entryOf(rows, found), `released by ${block}`);
  readAgain(given);
  const to = back.length === 0 ? md`` : md`; it is ${Markdown.join(back.map(Markdown.code), ', ')}'s again`;
  return doneReply(
    prefix,
    'release',
    md`${Markdown.code(showOf(found))} is no longer claimed for block ${Markdown.code(block)}${to}.`,
  );
}

function refuseUnclaimable(
  { judged }: Given,
  found: ChangedFile,
  files: ReadonlyMap<string, ChangedFile>,
): void {
  const guarded = judged.policy === null ? null : compileGuard(judged.policy);
  const isGuarded = found.file.ownership === 'guarded' || guarded?.(found.path) === true;
  if (isGuarded || (found.from !== null && guarded?.(found.from) === true)) {
    throw new Refusal(
      'guarded',
      'that path is guarded: no block owns or claims it',
      'a path that is not guarded',
    );
  }
  const links = linkPaths([...files.values()].map(owned));
  const refusal = claimRefusal(owned(found), links);
  if (refusal !== null)
    throw new Refusal('bad_path', `that path cannot be claimed: ${refusal}`, 'another path');
}

const owned = ({ file, path, from }: ChangedFile) => ({
  path,
  from,
  modeBase: file.modeBase,
  modeHead: file.modeHead,
});

function notChanged(path: string): Refusal {
  if (isGlob(path) || path.endsWith('/')) {
    return new Refusal(
      'bad_owned',
      'one exact path can be claimed, no directory and no glob',
      'a changed path',
    );
  }
  return new Refusal(
    'bad_path',
    'this pull request does not change that path, and paths cannot be reserved yet',
    'a changed path',
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

type Words = ReadonlyMap<string, { readonly claimed: boolean; readonly seq: number }>;

/** Whether a block has the path by claim, by declaration, or as its first toucher. */
function holds(id: string, found: ChangedFile, rows: readonly AnyRow[], words: Words): boolean {
  const word = words.get(id);
  if (word !== undefined) return word.claimed;
  if (found.file.ownership === 'owned' && found.file.blockId === id) return true;
  const entries = rows.findLast((row) => row.kind === 'block.opened' && row.data.block === id);
  if (entries?.kind !== 'block.opened' || typeof found.path !== 'string') return false;
  return compileDeclarations([{ block: id, entries: entries.data.owns }])(found.path).length > 0;
}

/** The blocks that the act which wrote claim row `seq` took the path from. */
function takenBy(rows: readonly AnyRow[], seq: number, found: ChangedFile): string[] {
  const cause = rows.find((row) => row.seq === seq)?.cause;
  if (cause?.kind !== 'comment') return [];
  return rows.flatMap((row) =>
    row.kind === 'block.released' &&
    row.seq < seq &&
    row.cause.kind === 'comment' &&
    row.cause.id === cause.id &&
    pathKey(row.data.path) === pathKey(found.path)
      ? [row.data.block]
      : [],
  );
}

/** What the path was when it was first claimed; the first record wins (OWN-2). */
function entryOf(rows: readonly AnyRow[], found: ChangedFile): EntryKind {
  for (const row of rows) {
    if (row.kind === 'block.claimed' && pathKey(row.data.path) === pathKey(found.path)) return row.data.entry;
  }
  return entryKind(found.file.modeHead);
}

function record(given: Given, act: 'claim' | 'release', block: string, found: ChangedFile): void {
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
      paths: [found.path],
      self: asker.author,
      text: null,
    },
  });
}

async function append(
  given: Given,
  block: string,
  found: ChangedFile,
  entry: EntryKind,
  reason: string,
): Promise<void> {
  const { unit, actor, cause } = given;
  const data = { block, path: found.path, entry, auto: false, reason };
  const seq = unit.append('block.claimed', { block, actor, cause, data });
  await putClaims(unit.tx, [
    { runId: unit.run.id, blockId: block, path: found.file.path, entry, auto: false, seq },
  ]);
}

async function release(given: Given, block: string, found: ChangedFile, reason: string): Promise<void> {
  const { unit, actor, cause } = given;
  unit.append('block.released', { block, actor, cause, data: { block, path: found.path, reason } });
  await removeClaim(unit.tx, unit.run.id, block, found.file.path);
}

function showOf(found: ChangedFile): string {
  return typeof found.path === 'string' ? found.path : found.path.b64;
}
