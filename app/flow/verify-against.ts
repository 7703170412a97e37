/**
 * Verifies a run for a person who holds a head that was published outside the database (LED-9, LED-10,
 * attack 35). A cut tail leaves a chain that is whole in itself, so without such a head nobody can tell.
 *
 * Reads: run, ledger rows and head. Writes: nothing. Calls: the signer. May fail with: what Postgres does.
 */
import { findRun } from '../../db/store/run.ts';
import { openHead } from '../domain/ledger/head.ts';
import type { UnitDeps } from './append-rows.ts';
import { verifyRun } from './verify-run.ts';

/** What a person brings from outside: the hash of a row in lower-case hex, a signed note, or both. */
export interface OutsideHead {
  readonly hash?: string;
  readonly note?: string;
}

/** The answer: 0 intact, 1 tampered, 2 cannot tell, and what to print, line by line. */
export interface VerifyAnswer {
  readonly code: 0 | 1 | 2;
  readonly says: readonly string[];
}

/** Verifies every row of a run, and that its chain goes through the head given. 0 never without a head. */
export async function verifyAgainst(
  deps: UnitDeps,
  runId: string,
  outside: OutsideHead,
): Promise<VerifyAnswer> {
  const signed = outside.note === undefined ? undefined : openHead(outside.note, deps.signer.vkey);
  if (outside.note !== undefined && signed === undefined)
    return { code: 2, says: [`cannot tell: the note is not one that ${deps.signer.vkey} signed`] };
  if (signed !== undefined && signed.run !== runId)
    return { code: 2, says: [`cannot tell: the note is of run ${signed.run}`] };
  const run = await findRun(deps.database.db, runId);
  if (run === null) {
    // a hash alone does not say of which run it is, so a wrong name could be told by it
    return signed === undefined
      ? { code: 2, says: [`cannot tell: there is no run ${runId}`] }
      : { code: 1, says: [`tampered: there is no run ${runId}, and a head of it was signed`] };
  }
  const published = outside.note === undefined ? [] : [outside.note];
  const { verdict, rows } = await verifyRun(deps, run, { full: true, published });
  if (verdict.kind === 'invalid')
    return { code: 1, says: [`tampered: row ${verdict.seq}: ${verdict.fault} (${verdict.detail})`] };
  if (verdict.kind === 'unverifiable')
    return { code: 2, says: [`cannot tell: row ${verdict.seq} needs key ${verdict.kid}`] };
  const last = verdict.head.hash.toString('hex');
  // a row's hash is what the next one follows
  const hashes = [...rows.slice(1).map((row) => row.prev), last];
  const at = outside.hash === undefined ? signed?.seq : hashes.indexOf(outside.hash) + 1;
  if (at === 0)
    return {
      code: 1,
      says: [
        `tampered: row ${rows.length + 1}: truncated (none of ${rows.length} rows has the hash ${outside.hash})`,
      ],
    };
  if (at === undefined)
    return {
      code: 2,
      says: [
        `cannot tell: ${rows.length} rows follow each other, head ${last}`,
        'not proved: that no row was cut from the end; give --head or --note of a check run on GitHub',
      ],
    };
  const proved = Math.max(at, signed?.seq ?? 0);
  return {
    code: 0,
    says: [
      `intact: ${rows.length} rows, head ${last}`,
      proved === rows.length
        ? 'the head given is its last row'
        : `the head given is row ${proved}; whether rows after row ${rows.length} were cut, it does not prove`,
    ],
  };
}
