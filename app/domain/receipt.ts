/**
 * Receipts (VER-1…VER-4): what became of a verify command for a block on a head.
 *
 * | state | by row | means | next |
 * |---|---|---|---|
 * | reserved | receipt.reserved | cut; nothing was seen of it yet | waiting, running, passed, failed, aborted |
 * | waiting | receipt.waiting | nothing runs, and the reason is known | running, passed, failed, aborted |
 * | running | receipt.bound, receipt.started | an attempt of a job, or a container of a pool, is under way | passed, failed, aborted, waiting |
 * | passed | receipt.ended, receipt.reused | GitHub concluded success, or the pool saw exit 0, and nothing told makes it worse | running, waiting, failed, aborted |
 * | failed | receipt.ended | any other conclusion, or trouble that was told | running, waiting, passed |
 * | aborted | receipt.ended | no conclusion: cancelled, or the runner was lost | running, waiting, passed, failed |
 *
 * A receipt is of one head; a new head has its own. A later attempt of a job, or a worse job, replaces what was.
 */
import { createHash } from 'node:crypto';
import { canonicalBytes } from './ledger/canonical.ts';
import type { RowData } from './ledger/row-kinds.ts';
import type { VerifyCommand } from './policy/verify.ts';
import { commandDigest } from './receipt/input-hash.ts';
import { type PathStanding, standings } from './run-state/coverage.ts';
import { presentHead, type RunState } from './run-state/state.ts';

/** A receipt as its rows left it. */
export interface ReceiptFact {
  readonly block: string;
  /** `RCP-001` and on, per block. */
  readonly id: string;
  /** Names of the commands it stands for; equal commands of a block are one. */
  readonly commands: readonly string[];
  readonly from: 'ci' | 'action' | 'pool';
  readonly definition: string;
  readonly head: string;
  readonly state: 'reserved' | 'waiting' | 'running' | 'passed' | 'failed' | 'aborted';
  readonly why: string | null;
  readonly job: { readonly workflowRun: string; readonly attempt: number; readonly job: string } | null;
  /** The lease under which a pool runs or ran it; null of a job. */
  readonly lease: string | null;
  readonly conclusion: string | null;
  readonly ms: number;
  /** The earlier receipt it rests on (VER-4). */
  readonly reused: string | null;
  readonly told: RowData<'receipt.ended'>['told'] | null;
  /** The last row that said anything of it. */
  readonly seq: number;
}

/** The id of the nth receipt of a block, counted from one. */
export function receiptId(n: number): string {
  return `RCP-${String(n).padStart(3, '0')}`;
}

/** The key of a receipt in a run's state. */
export function receiptKey(block: string, id: string): string {
  return `${block} ${id}`;
}

/**
 * SHA-256 of what the policy says of a command, its name aside: a receipt counts for exactly this. Commands
 * that are equal have one digest, so a block has one receipt for them.
 */
export function definitionDigest(command: VerifyCommand): string {
  return createHash('sha256')
    .update('countersign/verify/v1\n')
    .update(canonicalBytes(saidOf(command)))
    .digest('hex');
}

function saidOf(command: VerifyCommand): Readonly<Record<string, string | number>> {
  if (command.from === 'ci') return { from: command.from, workflow: command.workflow, job: command.job };
  const { from, timeout } = command;
  const digest = commandDigest(command);
  if (command.from === 'action') return { from, workflow: command.workflow, command: digest, timeout };
  const { pool, image, network } = command;
  return { from, pool, image, network, command: digest, timeout };
}

/** Whether a receipt is over, as far as is known. */
export function isOver({ state }: Pick<ReceiptFact, 'state'>): boolean {
  return state === 'passed' || state === 'failed' || state === 'aborted';
}

/** A command that must pass for a block on the present head, with its receipt; null: none was cut yet. */
export interface WantedReceipt {
  readonly block: string;
  /** Names, sorted; those of equal commands are together. */
  readonly commands: readonly string[];
  /** Null where the policy does not know the command: then nothing can prove it. */
  readonly definition: string | null;
  readonly receipt: ReceiptFact | null;
}

/**
 * What has to pass on the present head, by block and command, from the rows alone: the decisions name commands,
 * `definitions` (name → digest) is what the policy says of them.
 */
export function wantedReceipts(
  state: RunState,
  definitions: ReadonlyMap<string, string>,
  paths: readonly PathStanding[] = standings(state),
): WantedReceipt[] {
  const names = new Map<string, Set<string>>();
  for (const { block, file } of paths) {
    if (file.verify === undefined) continue;
    const known = names.get(block) ?? new Set();
    for (const name of file.verify) known.add(name);
    names.set(block, known);
  }
  if (names.size === 0) return [];
  const head = presentHead(state)?.head;
  const receipts = new Map<string, ReceiptFact>();
  for (const one of state.receipts.values())
    if (one.head === head) receipts.set(`${one.block} ${one.definition}`, one);
  const wanted: WantedReceipt[] = [];
  for (const [block, all] of [...names].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const merged = new Map<string, string[]>();
    for (const name of [...all].sort()) {
      const definition = definitions.get(name) ?? null;
      const key = definition ?? `? ${name}`;
      merged.set(key, [...(merged.get(key) ?? []), name]);
    }
    for (const [key, commands] of merged) {
      const definition = definitions.has(commands[0] ?? '') ? key : null;
      const receipt = definition === null ? null : (receipts.get(`${block} ${definition}`) ?? null);
      wanted.push({ block, commands, definition, receipt });
    }
  }
  return wanted;
}

/**
 * The receipt of the same command that passed on an earlier head of the run with the same content on the same
 * merge base (VER-4); null: there is none. Only of commands whose input the policy says whole: a job of the
 * repository's own CI may read anything, and is its own proof.
 */
export function reusableReceipt(
  state: RunState,
  wanted: Pick<WantedReceipt, 'definition' | 'block'>,
): ReceiptFact | null {
  const head = presentHead(state);
  if (head === null) return null;
  const same = new Set(
    state.heads
      .filter((one) => one.content === head.content && one.merge_base === head.merge_base)
      .map((one) => one.head),
  );
  same.delete(head.head);
  const passed = [...state.receipts.values()].filter(
    (one) =>
      one.from !== 'ci' &&
      one.definition === wanted.definition &&
      one.state === 'passed' &&
      same.has(one.head),
  );
  return passed.find((one) => one.block === wanted.block) ?? passed[0] ?? null;
}
