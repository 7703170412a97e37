/**
 * Reviews of the same keys in other runs of the repository, by rows that verify (TKT-4).
 *
 * Reads: tickets, runs, ledgers. Writes: findings; rows `ticket.reused finding.raised`. Calls: the signer;
 * GitHub's lists of check runs, outside of any transaction. May fail with: what GitHub does (retryable).
 */
import {
  listFindings,
  nextFindingNumber,
  projectRaised,
  type StoredFinding,
} from '../../../db/store/finding.ts';
import { listReviewsElsewhere } from '../../../db/store/reuse.ts';
import { findRun, type Run } from '../../../db/store/run.ts';
import type { AnyRow } from '../../domain/ledger/row.ts';
import type { Actor, Cause } from '../../domain/ledger/row-fields.ts';
import type { RowData } from '../../domain/ledger/row-kinds.ts';
import { encodePath, pathKey, type WirePath } from '../../domain/path.ts';
import type { Policy } from '../../domain/policy.ts';
import { type KnownReview, reviewsOf } from '../../domain/reuse.ts';
import { raisedAgain } from '../../domain/round.ts';
import { stateRaised } from '../../domain/run-state/fold.ts';
import { Fault } from '../../errors.ts';
import type { RunUnit, UnitDeps } from '../append-rows.ts';
import type { Deps } from '../deps.ts';
import { proveRun } from '../prove-run.ts';
import { wholeRows } from '../verify-run.ts';

/** A review of a key in another run. */
export interface ReviewThere extends KnownReview {
  readonly run: string;
}

/** Reviews elsewhere, by key; of each run its newest. */
export type ReviewsThere = ReadonlyMap<string, readonly ReviewThere[]>;

/** Most (run, key) pairs that are looked at in one cut, newest first: a change of 4,000 files that five pull requests share. */
const MOST_PAIRS = 20_000;

/**
 * What other runs of the same repository and installation say of these keys. Each is verified first
 * (from this process's memory on), and held against what GitHub keeps of it where it says what was not
 * taken over before: a run that does not verify, or was cut, gives nothing.
 */
export async function readReviews(
  deps: Deps,
  run: Run,
  policy: Policy | null,
  keys: readonly string[],
): Promise<ReviewsThere> {
  if (policy === null || policy.review.reuse === 'off') return new Map();
  const { db } = deps.database;
  const place = { installationId: run.installationId, repositoryId: run.repositoryId, runId: run.id };
  const wanted = new Map<string, Set<string>>();
  for (const { runId, key } of await listReviewsElsewhere(db, place, keys, MOST_PAIRS))
    wanted.set(runId, (wanted.get(runId) ?? new Set<string>()).add(key));
  const found = new Map<string, ReviewThere[]>();
  if (wanted.size === 0) return found;
  const rowsHere = await wholeRows(deps, run);
  if (rowsHere === null) return found;
  const taken = takenIn(rowsHere);
  for (const [id, keysThere] of wanted) {
    const there = await findRun(db, id);
    // the table says where to look; whose run it is, its own record and its rows say
    if (there?.installationId !== run.installationId || there.repositoryId !== run.repositoryId) continue;
    // a sealed run is evidence, also if a key that was absent comes back (LED-8)
    if (there.next !== null) continue;
    const rows = await wholeRows(deps, there);
    if (rows === null) continue;
    // people's acts in a group are its members' (GAT-5)
    const dismissals = run.groupHead === null ? 'stays_open' : 'closed';
    const reviews = [...reviewsOf(rows, keysThere, dismissals)];
    const isNews = reviews.some(([key, review]) => review.seq > (taken.get(`${key} ${id}`) ?? 0));
    // a tail that was cut can be a finding that stood: not visible from inside (LED-9)
    if (!isNews || !(await isProved(deps, there))) continue;
    for (const [key, review] of reviews) found.set(key, [...(found.get(key) ?? []), { run: id, ...review }]);
  }
  return found;
}

/** What this run took over before, from its own verified rows: `key run` → seq of the row there. Null where they do not verify. */
export async function readTaken(deps: UnitDeps, unit: RunUnit): Promise<ReadonlyMap<string, number> | null> {
  const rows = await wholeRows(deps, unit.run, { reader: unit.tx });
  return rows === null ? null : takenIn(rows);
}

/** Where GitHub cannot be asked of a run any more, nobody knows what was cut: it gives nothing. */
async function isProved(deps: Deps, run: Run): Promise<boolean> {
  try {
    return (await proveRun(deps, run)) !== null;
  } catch (error) {
    if (!(error instanceof Fault) || error.retryable) throw error;
    return false;
  }
}

function takenIn(rows: readonly AnyRow[]): ReadonlyMap<string, number> {
  const taken = new Map<string, number>();
  for (const row of rows)
    if (row.kind === 'ticket.reused') taken.set(`${row.data.key} ${row.data.run}`, row.data.seq);
  return taken;
}

/** Who writes the rows of a take-over, and why. */
export interface TakeOver {
  readonly ticket: string;
  readonly key: string;
  readonly path: Buffer;
  readonly block: string;
  readonly actor: Actor;
  readonly cause: Cause;
}

/** A row holds at most so many fingerprints; every finding is raised by its own row all the same. */
const MOST_FINGERPRINTS = 200;

/**
 * Takes reviews of one key over: a row names each, its findings are raised here under numbers of this
 * run, with the same fingerprints. A finding that stands here already says nothing new (RND-1).
 * Answers the row of the last one.
 */
export async function takeOver(
  unit: RunUnit,
  from: readonly ReviewThere[],
  { ticket, key, path, block, ...by }: TakeOver,
): Promise<number> {
  const { tx, run } = unit;
  const wire = encodePath(path);
  const known = new Map(
    (await listFindings(tx, run.id, wire)).map((one): [string, Known] => [one.fingerprint, one]),
  );
  let next = await nextFindingNumber(tx, run.id);
  let seq = 0;
  for (const review of from) {
    const findings = review.findings.filter((one) => isOf(one, wire));
    seq = unit.append('ticket.reused', {
      block,
      ...by,
      data: {
        ticket,
        key,
        path: wire,
        run: review.run,
        seq: review.seq,
        findings: [...new Set(findings.map((one) => one.fingerprint))].slice(0, MOST_FINGERPRINTS),
        ...(review.clauses.length === 0 ? {} : { clauses: review.clauses }),
        ...(review.calls.length === 0 ? {} : { calls: review.calls }),
      },
    });
    // that its model had read it before was so there: what comes over counts in full
    for (const { read_before: _, ...one } of findings) {
      const before = known.get(one.fingerprint);
      const severity = raisedAgain(before, {
        grounded: one.state === 'open',
        severity: one.severity,
        command: one.command,
      });
      // what a person dismissed here stays so (FND-2)
      if (severity === null || stateRaised(before, { state: one.state, severity }) === 'dismissed') continue;
      if (before?.state === 'open' && before.severity === severity) continue;
      const data = { ...one, finding: before?.number ?? next++, severity, ticket, key };
      await raise(unit, block, by, data);
      known.set(one.fingerprint, {
        number: data.finding,
        state: data.state,
        severity,
        command: data.command,
        dismissals: before?.dismissals ?? [],
      });
    }
  }
  return seq;
}

type Known = Pick<StoredFinding, 'number' | 'state' | 'severity' | 'command' | 'dismissals'>;

function isOf(finding: RowData<'finding.raised'>, path: WirePath): boolean {
  return pathKey(finding.path) === pathKey(path);
}

async function raise(
  { tx, run, append }: RunUnit,
  block: string,
  by: { readonly actor: Actor; readonly cause: Cause },
  data: RowData<'finding.raised'>,
): Promise<void> {
  const seq = append('finding.raised', { block, ...by, data });
  await projectRaised(tx, run.id, data, data.state, seq);
}
