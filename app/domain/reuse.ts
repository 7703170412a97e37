/**
 * What a run's verified rows say of review keys, for another run of the same repository that wants the
 * same (TKT-4). Pure. A key says the union of the findings of all its results, over rounds, that RND-1
 * did not close: no rerun, second model or second pull request is a lottery.
 */
import type { DecidedPath } from './ledger/row-fields.ts';
import type { RowData } from './ledger/row-kinds.ts';
import { pathKey } from './path.ts';
import { SEVERITIES, type Severity } from './review.ts';
import type { Fact, FactOf } from './run-state/fact.ts';
import { isOfOther } from './run-state/of-other.ts';

/** A key as reviewed in one run: the row of its newest counting result, and the findings that stand under it. */
export interface KnownReview {
  readonly seq: number;
  readonly findings: readonly RowData<'finding.raised'>[];
  /** What its results say of clauses, and why they call for a person (REV-3, REV-9). */
  readonly clauses: NonNullable<RowData<'ticket.ended'>['clauses']>;
  readonly calls: NonNullable<RowData<'ticket.ended'>['calls']>;
}

/** Whether what a person dismissed is closed for the reader too: a dismissal sticks to its own run (FND-2), a merge group has its members' acts (GAT-5). */
export type DismissalRule = 'stays_open' | 'closed';

interface Result {
  readonly seq: number;
  readonly key: string;
  readonly ticket: string;
  readonly lease: string | null;
  readonly clauses: KnownReview['clauses'];
  readonly calls: KnownReview['calls'];
  readonly promised: readonly string[];
  /** Findings that stood open on the path when it was reviewed; whoever read the content was told of them. */
  readonly heard: readonly RowData<'finding.raised'>[];
}

/**
 * The reviews of those of `keys` that count in a run: complete, at the level that was decided, accepted,
 * by nobody who broke a rule or gave two results. Nothing of a sealed run is reused (LED-8); a result
 * whose findings were not all raised gives nothing.
 */
export function reviewsOf(
  rows: Iterable<Fact>,
  keys: ReadonlySet<string>,
  dismissals: DismissalRule,
): ReadonlyMap<string, KnownReview> {
  const said = new Sayings(keys);
  for (const row of rows) {
    if (row.kind === 'run.sealed') return new Map();
    said.read(row);
  }
  return said.reviews(dismissals);
}

/** Everything that the rows say of the keys, read once in their order. */
class Sayings {
  readonly #keys: ReadonlySet<string>;
  readonly #decided = new Map<string, DecidedPath>();
  readonly #results = new Map<number, Result>();
  readonly #keyOfLease = new Map<string, string>();
  readonly #broken = new Set<string>();
  readonly #conflicts = new Map<string, number>();
  readonly #late = new Set<number>();
  readonly #fingerprints = new Set<string>();
  readonly #open = new Map<number, RowData<'finding.raised'>>();
  readonly #severity = new Map<number, Severity>();
  /** The severity a finding had when it was dismissed: found as worse, it is open again (FND-2). */
  readonly #dismissed = new Map<number, Severity>();
  /** The last word of a key on a finding: raised (its data), or null where a round under the key closed it. */
  readonly #words = new Map<string, Map<number, RowData<'finding.raised'> | null>>();
  /** Which leases ended which findings. */
  readonly #endedBy = new Map<string, Set<number>>();

  constructor(keys: ReadonlySet<string>) {
    this.#keys = keys;
  }

  read(row: Fact): void {
    switch (row.kind) {
      case 'decision':
        for (const path of row.data.paths) if (path.key !== null) this.#decided.set(path.key, path);
        return;
      case 'ticket.ended':
        this.#end(row);
        return;
      case 'ticket.late':
        this.#late.add(row.data.seq);
        return;
      case 'ticket.conflict':
        this.#conflicts.set(row.data.ticket, row.seq);
        return;
      case 'rule.break':
        this.#broken.add(row.data.ticket);
        return;
      case 'finding.raised':
        this.#raise(row.data);
        return;
      case 'finding.carried': {
        const { finding, path, fingerprint } = row.data;
        const open = this.#open.get(finding);
        if (open !== undefined) this.#open.set(finding, { ...open, path, fingerprint });
        return;
      }
      case 'finding.ended':
        this.#close(row);
        return;
      default:
    }
  }

  #end({ seq, cause, data }: FactOf<'ticket.ended'>): void {
    const lease = cause.kind === 'lease' ? cause.id : null;
    if (lease !== null) this.#keyOfLease.set(lease, data.key);
    if (!this.#keys.has(data.key)) return;
    if (isOfOther(data, this.#decided.get(data.key))) return;
    if (data.end !== 'reviewed' || data.partial) return;
    if (data.verdict !== 'approve' && data.verdict !== 'findings') return;
    const path = pathKey(data.path);
    const heard = [...this.#open.values()].filter((one) => pathKey(one.path) === path);
    this.#results.set(seq, {
      seq,
      key: data.key,
      ticket: data.ticket,
      lease,
      clauses: data.clauses ?? [],
      calls: data.calls ?? [],
      promised: data.findings,
      heard,
    });
  }

  #raise(data: RowData<'finding.raised'>): void {
    this.#fingerprints.add(data.fingerprint);
    this.#say(data.key, data.finding, data);
    this.#severity.set(data.finding, data.severity);
    const dismissed = this.#dismissed.get(data.finding);
    if (dismissed !== undefined && SEVERITIES.indexOf(data.severity) < SEVERITIES.indexOf(dismissed))
      this.#dismissed.delete(data.finding);
    if (data.state === 'open' && !this.#dismissed.has(data.finding)) this.#open.set(data.finding, data);
    else this.#open.delete(data.finding);
  }

  #close({ cause, data }: FactOf<'finding.ended'>): void {
    this.#open.delete(data.finding);
    if (data.state === 'dismissed')
      this.#dismissed.set(data.finding, this.#severity.get(data.finding) ?? 'info');
    // its content went away, which is no word on that content
    if (cause.kind !== 'lease' || data.reason === 'left_the_change') return;
    const ended = this.#endedBy.get(cause.id) ?? new Set();
    this.#endedBy.set(cause.id, ended.add(data.finding));
    const key = this.#keyOfLease.get(cause.id);
    if (key !== undefined) this.#say(key, data.finding, null);
  }

  #say(key: string, finding: number, word: RowData<'finding.raised'> | null): void {
    if (!this.#keys.has(key)) return;
    const words = this.#words.get(key) ?? new Map<number, RowData<'finding.raised'> | null>();
    this.#words.set(key, words.set(finding, word));
  }

  reviews(dismissals: DismissalRule): ReadonlyMap<string, KnownReview> {
    const reviews = new Map<string, KnownReview>();
    const refused = new Set<string>();
    const conflicts = new Map<string, number>();
    for (const { key, ticket, promised } of this.#results.values()) {
      conflicts.set(key, Math.max(conflicts.get(key) ?? 0, this.#conflicts.get(ticket) ?? 0));
      const whole = promised.every((fingerprint) => this.#fingerprints.has(fingerprint));
      if (!whole || this.#broken.has(ticket)) refused.add(key);
    }
    for (const result of this.#results.values()) {
      // as in the gate, a review after the conflict settles it
      if (refused.has(result.key) || result.seq < (conflicts.get(result.key) ?? 0)) continue;
      if (!this.#late.has(result.seq)) this.#keepHeard(result);
      const before = reviews.get(result.key);
      reviews.set(result.key, {
        seq: result.seq,
        findings: [],
        clauses: unionOf([...(before?.clauses ?? []), ...result.clauses]),
        calls: [...new Set([...(before?.calls ?? []), ...result.calls])].slice(0, 10),
      });
    }
    for (const [key, review] of reviews) {
      const findings = [...(this.#words.get(key) ?? [])].flatMap(([number, word]) =>
        word === null || (dismissals === 'closed' && this.#dismissed.has(number)) ? [] : [word],
      );
      reviews.set(key, { ...review, findings });
    }
    return reviews;
  }

  /** A finding of other content that the round was told of and did not end still stands on this content. */
  #keepHeard({ key, lease, heard }: Result): void {
    const ended = lease === null ? undefined : this.#endedBy.get(lease);
    for (const one of heard) {
      if (ended?.has(one.finding) === true || this.#words.get(key)?.has(one.finding) === true) continue;
      this.#say(key, one.finding, { ...one, key });
    }
  }
}

/** One word a clause over rounds: who denied it has the word (TKT-4). */
function unionOf(words: KnownReview['clauses']): KnownReview['clauses'] {
  const found = new Map<string, 'met' | 'unmet'>();
  for (const { clause, status } of words) if (found.get(clause) !== 'unmet') found.set(clause, status);
  return [...found].map(([clause, status]) => ({ clause, status }));
}
