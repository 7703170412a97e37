/**
 * Verifies the chain of a run and gives its rows (LED-8, LED-9). Incrementally, only rows after what
 * this process verified before are read, and the earlier ones come from its own memory: what was
 * verified in the database an hour ago proves nothing about what is there now.
 *
 * Reads: ledger rows and head. Writes: nothing. Calls: the signer. May fail with: what Postgres does.
 */
import type { Database, Reader } from '../../db/client.ts';
import { readHead, readRows } from '../../db/store/ledger.ts';
import { listReasons } from '../../db/store/reason.ts';
import type { Run } from '../../db/store/run.ts';
import {
  type ChainIdentity,
  type ChainVerdict,
  ChainVerifier,
  type VerifiedHead,
} from '../domain/ledger/chain.ts';
import { openHead, type RunHead } from '../domain/ledger/head.ts';
import { type AnyRow, genesisOf, installationRun, readRow } from '../domain/ledger/row.ts';
import { Fault } from '../errors.ts';
import type { Signer } from '../signing/signer.ts';
import { subjectOf, type UnitDeps } from './append-rows.ts';

/** How to verify. */
export interface VerifyOptions {
  /** True: every row from the first one, as before a gate first turns green on a head (LED-9). Default false. */
  readonly full?: boolean;
  /** Signed heads of this run as found outside the database, such as in our own check runs; each must be a prefix of the chain. */
  readonly published?: readonly string[];
  /** The transaction of the unit that asks; default the pool. */
  readonly reader?: Reader;
}

/** The verdict and, only where it is intact, the rows in order. */
export interface VerifiedRun {
  readonly verdict: ChainVerdict;
  readonly rows: readonly AnyRow[];
}

/** Verifies the chain of a run. */
export async function verifyRun(deps: UnitDeps, run: Run, options: VerifyOptions = {}): Promise<VerifiedRun> {
  const log = deps.signer.logOf(run.installationId);
  // from the run's own identity: the genesis that the ledger's table holds could have been changed with it
  const genesis = genesisOf(log, subjectOf(run));
  return verify(deps, { log, run: run.id, repo: run.repositoryId, genesis }, options);
}

/**
 * Whether a row may go on top of a run's chain: one that does not verify, or was found cut against what
 * is published, is evidence, and a row there would only hide where it broke (LED-8).
 */
export async function isWhole(deps: UnitDeps, run: Run, reader: Reader): Promise<boolean> {
  return (await wholeRows(deps, run, { reader })) !== null;
}

/** The rows of a chain that verifies and was not found cut; null: nothing may be built on it (LED-8). */
export async function wholeRows(
  deps: UnitDeps,
  run: Run,
  options: VerifyOptions = {},
): Promise<readonly AnyRow[] | null> {
  const reasons = await listReasons(options.reader ?? deps.database.db, run.id);
  if (reasons.some(({ code }) => code === 'ledger_invalid' || code === 'ledger_unverifiable')) return null;
  const { verdict, rows } = await verifyRun(deps, run, options);
  return verdict.kind === 'intact' ? rows : null;
}

/** Verifies the chain of an installation's own facts; `epoch` is the installation's present one. */
export async function verifyInstallation(
  deps: UnitDeps,
  installation: { readonly id: string; readonly epoch: number },
  options: VerifyOptions = {},
): Promise<VerifiedRun> {
  const log = deps.signer.logOf(installation.id);
  const run = installationRun(installation.id);
  const found = await readHead(options.reader ?? deps.database.db, run);
  // the chain began in one of the epochs so far and goes on through re-installs
  let genesis = genesisOf(log, { kind: 'installation', epoch: 1 });
  for (let epoch = 2; epoch <= installation.epoch && found?.head.genesis.equals(genesis) === false; epoch++) {
    genesis = genesisOf(log, { kind: 'installation', epoch });
  }
  return verify(deps, { log, run, repo: null, genesis }, options);
}

const BATCH = 500;
/** Rows kept in memory over all runs, about 1 kB each. */
const KEPT_ROWS = 50_000;

interface Kept {
  /** Whose keys verified it. */
  readonly signer: Signer;
  readonly head: VerifiedHead;
  readonly rows: readonly AnyRow[];
}

/** What each database's runs were verified to be, by this process. */
const memory = new WeakMap<Database, Map<string, Kept>>();

async function verify(deps: UnitDeps, chain: ChainIdentity, options: VerifyOptions): Promise<VerifiedRun> {
  const published: RunHead[] = [];
  for (const note of options.published ?? []) {
    const head = openHead(note, deps.signer.vkey);
    if (head === undefined) return { verdict: { kind: 'unverifiable', seq: 0, kid: 'log' }, rows: [] };
    published.push(head);
  }
  const kept = keptOf(deps.database);
  const before = options.full === true ? undefined : kept.get(chain.run);
  // a head older than what is in memory can only be compared by reading from the start
  const usable = before?.signer === deps.signer && published.every((head) => head.seq >= before.head.seq);
  const from = usable ? before : undefined;
  const verifier = new ChainVerifier(chain, deps.signer.checkMac, from?.head, published);
  const rows = from === undefined ? [] : [...from.rows];
  const verdict = await stream(options.reader ?? deps.database.db, chain.run, verifier, rows);
  if (verdict.kind !== 'intact') {
    kept.delete(chain.run);
    return { verdict, rows: [] };
  }
  keep(kept, chain.run, { signer: deps.signer, head: verdict.head, rows });
  return { verdict, rows };
}

/** Feeds the rows as they come from Postgres, then compares with the ledger's own head. */
async function stream(
  reader: Reader,
  run: string,
  verifier: ChainVerifier,
  rows: AnyRow[],
): Promise<ChainVerdict> {
  let told = 0;
  for (let at = verifier.head.seq; ; ) {
    const batch = await readRows(reader, run, at, BATCH);
    verifier.feed(batch);
    for (const row of batch) {
      const read = tryRead(row.body);
      if (read !== undefined) rows.push(read);
      // authentic and not readable: a newer version wrote it
      else if (verifier.head.seq >= row.seq)
        return { kind: 'invalid', seq: row.seq, fault: 'unknown_version', detail: 'its data' };
    }
    at = batch.at(-1)?.seq ?? at;
    if (batch.length === BATCH) continue;
    // the head after the rows, since it only grows: rows that were appended meanwhile are read next
    const table = (await readHead(reader, run))?.head;
    if (table !== undefined && table.seq > at && table.seq > told) {
      told = table.seq;
      continue;
    }
    const verdict = verifier.finish(table ?? { seq: 0, hash: null });
    // every chain has a first row from its beginning: none at all is not an empty chain
    if (verdict.kind !== 'intact' || verdict.head.seq > 0) return verdict;
    return { kind: 'invalid', seq: 1, fault: 'truncated', detail: 'the chain has no row' };
  }
}

function tryRead(body: Buffer): AnyRow | undefined {
  try {
    return readRow(body);
  } catch (error) {
    if (error instanceof Fault) return undefined;
    throw error;
  }
}

function keptOf(database: Database): Map<string, Kept> {
  const known = memory.get(database);
  if (known !== undefined) return known;
  const made = new Map<string, Kept>();
  memory.set(database, made);
  return made;
}

/** The least recently verified runs go first when the memory is full. */
function keep(kept: Map<string, Kept>, run: string, entry: Kept): void {
  kept.delete(run);
  kept.set(run, entry);
  let total = 0;
  for (const one of kept.values()) total += one.rows.length;
  for (const [name, one] of kept) {
    if (total <= KEPT_ROWS || name === run) break;
    kept.delete(name);
    total -= one.rows.length;
  }
}
