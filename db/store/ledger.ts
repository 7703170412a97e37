/** Chains and their rows. Only these statements touch the ledger; Postgres guards it besides (LED-5). */
import { getTableColumns } from 'drizzle-orm';
import type { StoredRow } from '../../app/domain/ledger/row.ts';
import { Fault } from '../../app/errors.ts';
import type { Reader, Tx } from '../client.ts';
import { run } from '../schema/run.ts';
import type { Run } from './run.ts';

/** The head of a chain as Postgres keeps it. `hash` is null before row 1. */
export interface LedgerHead {
  readonly runId: string;
  readonly installationId: string;
  readonly log: string;
  readonly repositoryId: string | null;
  readonly genesis: Buffer;
  readonly seq: number;
  readonly hash: Buffer | null;
}

const HEAD_COLUMNS = [
  'run_id',
  'installation_id',
  'log',
  'repository_id',
  'genesis',
  'seq',
  'hash',
  'now',
] as const;
const HEAD =
  'select run_id, installation_id, log, repository_id, genesis, seq, hash, cs_now() as now from ledger_head where run_id = $1';
const LOCK = 'select from run where id = $1 for update';
const ROWS =
  'select seq, prev, hash, mac, kind, body from ledger_row where run_id = $1 and seq > $2 order by seq limit $3';

interface HeadColumns {
  run_id: string;
  installation_id: string;
  log: string;
  repository_id: string | null;
  genesis: Buffer;
  seq: string;
  hash: Buffer | null;
  now: Date;
}

const runColumns = Object.entries(getTableColumns(run));
// explicit columns and a name: parsed once a connection, and a builder's work is saved on every unit
const LOCKED = `select ${runColumns.map(([, column]) => `r."${column.name}"`).join(', ')},
  h.run_id as chain_run_id, h.installation_id as chain_installation_id, h.log as chain_log,
  h.repository_id as chain_repository_id, h.genesis as chain_genesis, h.seq as chain_seq, h.hash as chain_hash,
  cs_now() as chain_now
  from run r join ledger_head h on h.run_id = r.id where r.id = $1`;

/** Locks a run until the end of the transaction and reads its head and the product time after the lock was had; undefined: no such run. */
export async function lockRun(
  tx: Tx,
  runId: string,
): Promise<{ run: Run; head: LedgerHead; now: Date } | undefined> {
  // Both travel together, the lock first: what is read after it has a snapshot taken under it, so
  // the head is fresh. A lock in the same statement as the head would read the head from before.
  const [, { rows }] = await Promise.all([
    tx.$client.query({ name: 'run_lock', text: LOCK, values: [runId] }),
    tx.$client.query<Record<string, unknown>>({ name: 'run_locked', text: LOCKED, values: [runId] }),
  ]);
  const row = rows[0];
  if (row === undefined) return undefined;
  const record: Record<string, unknown> = {};
  for (const [key, column] of runColumns) {
    const value = row[column.name];
    record[key] = value === null ? null : column.mapFromDriverValue(value);
  }
  const chain = Object.fromEntries(HEAD_COLUMNS.map((name) => [name, row[`chain_${name}`]]));
  return { run: record as Run, ...headOf(chain as unknown as HeadColumns) };
}

/** The head of a chain and the product time; undefined: no such chain. */
export async function readHead(
  reader: Reader,
  runId: string,
): Promise<{ head: LedgerHead; now: Date } | undefined> {
  const { rows } = await reader.$client.query<HeadColumns>({
    name: 'ledger_head',
    text: HEAD,
    values: [runId],
  });
  const row = rows[0];
  if (row === undefined) return undefined;
  return headOf(row);
}

function headOf(row: HeadColumns): { head: LedgerHead; now: Date } {
  const head = {
    runId: row.run_id,
    installationId: row.installation_id,
    log: row.log,
    repositoryId: row.repository_id,
    genesis: row.genesis,
    seq: Number(row.seq),
    hash: row.hash,
  };
  return { head, now: row.now };
}

/** Locks the chain of an installation, which has no run to lock, until the end of the transaction. */
export async function lockChain(tx: Tx, runId: string): Promise<void> {
  await tx.$client.query('select pg_advisory_xact_lock(hashtextextended($1, 7301))', [runId]);
}

/** Begins a chain at its genesis; does nothing when it was begun already. */
export async function insertHead(
  tx: Tx,
  head: Pick<LedgerHead, 'runId' | 'installationId' | 'log' | 'repositoryId' | 'genesis'>,
): Promise<void> {
  // not drizzle's insert: it names every column, and those of the position are not ours to give (LED-5)
  await tx.$client.query(
    `insert into ledger_head (run_id, installation_id, log, repository_id, genesis) values ($1, $2, $3, $4, $5)
     on conflict (run_id) do nothing`,
    [head.runId, head.installationId, head.log, head.repositoryId, head.genesis],
  );
}

/** Most rows of one statement: its parameters are counted in 16 bits. */
const MOST_ROWS = 9_000;
const texts = new Map<number, string>();

/** Appends signed rows to one chain in one statement, sent before this returns; Postgres refuses what does not continue the chain. */
export function appendRows(reader: Reader, runId: string, rows: readonly StoredRow[]): Promise<void> {
  if (rows.length === 0) return Promise.resolve();
  if (rows.length > MOST_ROWS) throw new Fault('bug', `${rows.length} rows in one statement`);
  const values: unknown[] = [runId];
  for (const row of rows) values.push(row.seq, row.prev, row.hash, row.mac, row.kind, row.body);
  const text = texts.get(rows.length) ?? insertText(rows.length);
  // small sizes come again and again: parsed once a connection
  const name = rows.length <= 16 ? { name: `ledger_append_${rows.length}` } : {};
  return reader.$client.query({ ...name, text, values }).then(() => {});
}

function insertText(count: number): string {
  const tuples = Array.from(
    { length: count },
    (_, i) => `($1,${[2, 3, 4, 5, 6, 7].map((n) => `$${i * 6 + n}`).join(',')})`,
  );
  const text = `insert into ledger_row (run_id, seq, prev, hash, mac, kind, body) values ${tuples.join(',')}`;
  if (count <= 16) texts.set(count, text);
  return text;
}

/** The next stored rows of a chain after `after`, in order of `seq`, at most `limit`. */
export async function readRows(
  reader: Reader,
  runId: string,
  after: number,
  limit: number,
): Promise<StoredRow[]> {
  const { rows } = await reader.$client.query<Omit<StoredRow, 'seq'> & { seq: string }>({
    name: 'ledger_rows',
    text: ROWS,
    values: [runId, after, limit],
  });
  return rows.map((row) => ({ ...row, seq: Number(row.seq) }));
}
