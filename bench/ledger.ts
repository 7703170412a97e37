/** What the benches of the ledger share: a run, a row of the usual size, and the raw table that they are measured against. */
import type pg from 'pg';
import type { AnyDraft, StoredRow } from '../app/domain/ledger/row.ts';
import { openRun } from '../app/flow/append-rows.ts';
import { newKeys } from '../app/signing/keys.ts';
import { type ChainTip, createSigner, type Signer } from '../app/signing/signer.ts';
import type { Database } from '../db/client.ts';
import { readHead } from '../db/store/ledger.ts';

const sha = '4c42d56de3c2441a51038378ff4ace48615754e1608df59e5bf5e59f18a1f8ef';

/** A row whose body has about 560 bytes, as in the baselines. */
export const draft: AnyDraft = {
  kind: 'receipt.waiting',
  block: 'login',
  actor: { kind: 'runner', id: 'r-01jdx', via: 'oidc' },
  cause: { kind: 'lease', id: '01JDXR0A0A0A0A0A0A0A0A0A0A', sha256: sha },
  data: { block: 'login', receipt: 'RCP-001', why: 'no_run' },
};

/** A signer with fresh keys. */
export const benchSigner = (): Signer => createSigner(newKeys('bench.test'));

/** Opens a run of its own and gives where its chain stands. */
export async function openBenchRun(
  database: Database,
  signer: Signer,
  id: string,
  pull: number,
): Promise<ChainTip> {
  const now = new Date();
  const record = {
    id,
    installationId: '5',
    repositoryId: '74',
    pull: String(pull),
    epoch: 1,
    status: 'open',
    toldHead: 'a'.repeat(40),
    baseRef: 'main',
    headAt: now,
    openedAt: now,
  } as const;
  await openRun({ database, signer }, record, async (unit) => unit.append('receipt.waiting', draft as never));
  const found = await readHead(database.db, id);
  if (found?.head.hash == null) throw new Error('the run was not opened');
  return {
    log: found.head.log,
    run: id,
    repo: found.head.repositoryId,
    seq: found.head.seq,
    hash: found.head.hash,
  };
}

/** Signs the next `count` rows at a tip; gives them and the tip after them. */
export function signNext(signer: Signer, tip: ChainTip, count: number): { rows: StoredRow[]; tip: ChainTip } {
  const rows: StoredRow[] = [];
  const at = new Date();
  let next = tip;
  for (let i = 0; i < count; i++) {
    const row = signer.signRow(next, at, draft);
    rows.push(row);
    next = { ...next, seq: row.seq, hash: row.hash };
  }
  return { rows, tip: next };
}

/** The peer: a table with the same columns and the same primary key, and nothing that guards it. */
export async function makeRawTables(url: string, Client: typeof pg.Client): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  await client.query(`create table raw_row (run_id text not null, seq bigint not null, prev bytea not null, hash bytea not null,
    mac bytea not null, kind text not null, body bytea not null, primary key (run_id, seq))`);
  await client.query(
    'create table raw_run (id text primary key, version bigint not null, title text not null)',
  );
  await client.query('grant all on raw_row, raw_run to countersign_app');
  await client.end();
}

/** The peer's statement. */
export const RAW_INSERT = {
  name: 'raw_insert',
  text: 'insert into raw_row (run_id, seq, prev, hash, mac, kind, body) values ($1, $2, $3, $4, $5, $6, $7)',
};

/** The same bytes as parameters of the peer's statement. */
export const rawValues = (run: string, seq: number, row: StoredRow) => [
  run,
  seq,
  row.prev,
  row.hash,
  row.mac,
  row.kind,
  row.body,
];
