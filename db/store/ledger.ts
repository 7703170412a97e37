/** Chains and their rows. Only these statements touch the ledger; Postgres guards it besides (LED-5). */
import { getTableColumns } from 'drizzle-orm';
import type { StoredRow } from '../../app/domain/ledger/row.ts';
import { Fault } from '../../app/errors.ts';
import type { Reader, Tx } from '../client.ts';
import { type Answer, fly, momentOf, type Statement } from '../flight.ts';
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

const HEAD_COLUMNS =
  'h.run_id, h.installation_id, h.log, h.repository_id, h.genesis, h.seq, h.hash, cs_now()';
/** Columns of a run begin behind those of the head and `broken`. */
const RUN_AT = 9;
const HEAD = `select ${HEAD_COLUMNS} from ledger_head h where h.run_id = $1`;
const LOCK = 'select from run where id = $1 for update';
const LOCK_CHAIN = 'select from pg_advisory_xact_lock(hashtextextended($1, 7301))';
const ROWS =
  'select seq, prev, hash, mac, kind, body from ledger_row where run_id = $1 and seq > $2 order by seq limit $3';

const runColumns = Object.entries(getTableColumns(run)).map(
  ([key, column]) => [key, column.name, readerOf(column)] as const,
);
// explicit columns and a name: parsed once a connection, and a builder's work is saved on every unit
const LOCKED = `select ${HEAD_COLUMNS},
  exists (select from reason b where b.run_id = r.id and b.code = 'ledger_invalid') as broken,
  ${runColumns.map(([, name]) => `r."${name}"`).join(', ')}
  from run r join ledger_head h on h.run_id = r.id where r.id = $1`;

/** A chain that was locked: its head, and the product time after the lock was had. */
export interface LockedHead {
  readonly head: LedgerHead;
  readonly now: Date;
}

/** A run that was locked with its chain. */
export interface LockedRun extends LockedHead {
  readonly run: Run;
  /** Whether its chain was found cut (LED-9). */
  readonly broken: boolean;
}

/** What locks a run until the end of the transaction and reads it with its head; `lockedRun` reads the answers. */
export function lockRun(runId: string): Statement[] {
  // the lock first: what is read after it has a snapshot taken under it, so the head is fresh. A lock in
  // the same statement as the head would read the head from before.
  return [
    { name: 'run_lock', text: LOCK, values: [runId] },
    { name: 'run_locked', text: LOCKED, values: [runId] },
  ];
}

/** What the statements of `lockRun` answered; undefined: no such run. */
export function lockedRun(answers: readonly Answer[]): LockedRun | undefined {
  const row = answers[1]?.rows[0];
  if (row === undefined) return undefined;
  const record: Record<string, unknown> = {};
  for (let i = 0; i < runColumns.length; i++) {
    const [key, , read] = runColumns[i] as (typeof runColumns)[number];
    const text = row[RUN_AT + i];
    record[key] = text == null ? null : read(text);
  }
  return { run: record as Run, ...headOf(row), broken: row[RUN_AT - 1] === 't' };
}

/** How the text of a column becomes what drizzle gives for it. */
function readerOf(
  column: ReturnType<typeof getTableColumns<typeof run>>[keyof Run],
): (text: string) => unknown {
  switch (column.getSQLType()) {
    case 'text':
      return (text) => text;
    case 'bigint':
      return (text) => column.mapFromDriverValue(text);
    case 'integer':
      return Number;
    case 'boolean':
      return (text) => text === 't';
    case 'timestamp with time zone':
      return momentOf;
    default:
      throw new Fault('bug', `a run's column of the type ${column.getSQLType()}`);
  }
}

/** The head of a chain and the product time; undefined: no such chain. */
export async function readHead(reader: Reader, runId: string): Promise<LockedHead | undefined> {
  const [answer] = await fly(reader.$client, [{ name: 'ledger_head', text: HEAD, values: [runId] }]);
  const row = answer?.rows[0];
  return row === undefined ? undefined : headOf(row);
}

function headOf(row: Answer['rows'][number]): LockedHead {
  const [runId, installationId, log, repositoryId, genesis, seq, hash, now] = row;
  if (runId == null || installationId == null || log == null || genesis == null || now == null) {
    throw new Fault('bug', 'a head with a column that is null');
  }
  return {
    head: {
      runId,
      installationId,
      log,
      repositoryId: repositoryId ?? null,
      genesis: bytesOf(genesis),
      seq: Number(seq),
      hash: hash == null ? null : bytesOf(hash),
    },
    now: momentOf(now),
  };
}

/** A `bytea` as Postgres writes it: a backslash, an x, hex. */
function bytesOf(text: string): Buffer {
  return Buffer.from(text.slice(2), 'hex');
}

/** Locks the chain of an installation, which has no run to lock, until the end of the transaction, and reads its head; undefined: it has not begun. */
export async function lockChain(tx: Tx, runId: string): Promise<LockedHead | undefined> {
  // a statement of its own before the head is read, as with a run
  const [, answer] = await fly(tx.$client, [
    { name: 'chain_lock', text: LOCK_CHAIN, values: [runId] },
    { name: 'ledger_head', text: HEAD, values: [runId] },
  ]);
  const row = answer?.rows[0];
  return row === undefined ? undefined : headOf(row);
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

/** The one statement that appends signed rows to one chain, none when there are none; Postgres refuses what does not continue the chain. */
export function rowStatements(runId: string, rows: readonly StoredRow[]): Statement[] {
  if (rows.length === 0) return [];
  if (rows.length > MOST_ROWS) throw new Fault('bug', `${rows.length} rows in one statement`);
  const values: (string | Buffer)[] = [runId];
  for (const row of rows) values.push(String(row.seq), row.prev, row.hash, row.mac, row.kind, row.body);
  const text = texts.get(rows.length) ?? insertText(rows.length);
  // small sizes come again and again: parsed once a connection
  return [{ name: rows.length <= 16 ? `ledger_append_${rows.length}` : '', text, values }];
}

/** Appends signed rows to one chain in one statement. */
export async function appendRows(reader: Reader, runId: string, rows: readonly StoredRow[]): Promise<void> {
  await fly(reader.$client, rowStatements(runId, rows));
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
