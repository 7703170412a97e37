/**
 * The rows of a run's ledger as they are stored, and what verifying all of them comes to (OPS-8, LED-8).
 *
 * Reads: run, ledger. Writes: nothing. Calls: the signer, GitHub's permission and, to verify, its check
 * runs. May fail with: `not_found`, `rate_limited`, what GitHub does.
 */
import { readHead, readRows } from '../../db/store/ledger.ts';
import { isRowKind, readRow, type StoredRow } from '../domain/ledger/row.ts';
import { plain } from '../domain/neutralise.ts';
import { Fault } from '../errors.ts';
import type { Deps } from './deps.ts';
import { fetchProof } from './fetch-proof.ts';
import { ledgerFault } from './judge-run.ts';
import { readableRun, spendLookup } from './read-right.ts';
import type { Visitor } from './read-visit.ts';
import { verifyRun } from './verify-run.ts';

/** A row for its page. */
export interface RowView {
  readonly seq: number;
  readonly kind: string;
  /** Null: the bytes are no row of a form that this version knows. */
  readonly atMs: number | null;
  readonly actor: string | null;
  readonly block: string | null;
  readonly hash: string;
  readonly prev: string;
  /** The data, as indented JSON; of an unreadable row its bytes as text. */
  readonly data: string;
}

/** A page of rows. */
export interface LedgerView {
  readonly id: string;
  readonly repository: string;
  readonly pull: string | null;
  readonly title: string;
  readonly rows: readonly RowView[];
  /** The last row's number. */
  readonly seq: number;
  /** Where the pages around this one begin; null: there is none. */
  readonly newer: number | null;
  readonly older: number | null;
}

/** What a full verification came to. */
export interface LedgerVerdict {
  readonly intact: boolean;
  readonly seq: number;
  readonly hash: string | null;
  /** How many heads that GitHub keeps it was held against; null: GitHub did not answer. */
  readonly published: number | null;
  /** What is wrong, with the row; null when intact. */
  readonly fault: string | null;
}

const PAGE = 50;
/** Of the visitor's minute: a verification reads every row and GitHub's lists. */
const VERIFY_LOOKUPS = 10;

/** Rows of a run, newest first, from row `from` down (null: from the last one). */
export async function readLedger(
  deps: Deps,
  visitor: Visitor,
  id: string,
  from: number | null,
): Promise<LedgerView> {
  const { run, repository } = await readableRun(deps, visitor, id);
  const { db } = deps.database;
  const seq = (await readHead(db, run.id))?.head.seq ?? 0;
  const top = Math.min(Math.max(from ?? seq, 1), Math.max(seq, 1));
  const after = Math.max(0, top - PAGE);
  const rows = await readRows(db, run.id, after, top - after);
  return {
    id: run.id,
    repository: `${repository.owner}/${repository.name}`,
    pull: run.pull,
    title: plain(run.title),
    rows: rows.map(rowView).reverse(),
    seq,
    newer: top < seq ? Math.min(seq, top + PAGE) : null,
    older: after > 0 ? after : null,
  };
}

/** Verifies every row of a run from the first one, and holds the chain against the heads that GitHub keeps for us. */
export async function verifyLedger(deps: Deps, visitor: Visitor, id: string): Promise<LedgerVerdict> {
  const { run } = await readableRun(deps, visitor, id);
  spendLookup(deps, visitor, VERIFY_LOOKUPS);
  const notes = await fetchProof(deps, run).then(
    (proof) => proof.notes,
    (error: unknown) => {
      if (error instanceof Fault) return null;
      throw error;
    },
  );
  const { verdict } = await verifyRun(deps, run, { full: true, published: notes ?? [] });
  deps.log.info({ run: run.id, user: visitor.userId, verdict: verdict.kind }, 'read-ledger');
  const published = notes?.length ?? null;
  if (verdict.kind === 'intact') {
    const { seq, hash } = verdict.head;
    return { intact: true, seq, hash: hash.toString('hex'), published, fault: null };
  }
  const { code, detail } = ledgerFault(verdict, null);
  return { intact: false, seq: verdict.seq, hash: null, published, fault: plain(`${code}: ${detail}`) };
}

function rowView(stored: StoredRow): RowView {
  const common = {
    seq: stored.seq,
    kind: isRowKind(stored.kind) ? stored.kind : plain(stored.kind),
    hash: stored.hash.toString('hex'),
    prev: stored.prev.toString('hex'),
  };
  try {
    const row = readRow(stored.body);
    return {
      ...common,
      atMs: Date.parse(row.at),
      actor: plain(`${row.actor.kind} ${row.actor.id} (${row.actor.via})`),
      block: row.block,
      data: plain(JSON.stringify(row.data, null, 2)),
    };
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    return { ...common, atMs: null, actor: null, block: null, data: plain(stored.body.toString('utf8')) };
  }
}
