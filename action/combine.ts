/** Several reviewers' outcomes as one ticket's result: the worst verdict counts, an unavailable reviewer is never outvoted (REV-9). */
import { fingerprint, ground, groundingText } from '../app/domain/finding.ts';
import { LIMITS } from '../app/domain/limits.ts';
import { redactedOf } from '../app/domain/redact/keyed.ts';
import { type Redactor, redactor } from '../app/domain/redact.ts';
import type { LeasedTicket, SubmittedFinding, TicketResult } from '../app/protocol/runner.ts';
import type { RawFinding, ReviewOutcome, ReviewText } from './reviewers/reviewer.ts';

type Combined = Pick<
  TicketResult,
  | 'end'
  | 'detail'
  | 'retry_after_ms'
  | 'verdict'
  | 'partial'
  | 'findings'
  | 'unplaced'
  | 'answers'
  | 'clauses'
>;

const severities = ['critical', 'high', 'medium', 'low', 'info'] as const;
const MOST_FINDINGS = 200;
const MOST_UNPLACED = 50;
const MOST_ANSWERS = 100;
const MOST_CLAUSE_WORDS = 200;
/** Longest text of what is said beside the findings. */
const MOST_SAID = 300;
/** The findings' share of what the server takes in one submit; the rest of a result fits in what is left. */
const FINDINGS_BYTES = Math.floor(LIMITS.submitBytes.default * 0.6);
/** Each finding is looked for in the whole file: of a flood only the worst are. */
const MOST_CONSIDERED = 400;

/** Grounds, redacts and names the findings and says what the ticket came to; pure. */
export function combine(
  ticket: LeasedTicket,
  review: ReviewText,
  outcomes: readonly ReviewOutcome[],
  secrets: readonly string[],
): Combined {
  // a secret in the file itself is known from then on, so that its middle quoted alone is masked too
  const known = redactor(secrets).learn(`${review.base ?? ''}\n${review.text}`);
  const { redact } = known;
  const clean = (text: string): string => redact(text).replaceAll('\0', '\ufffd').toWellFormed();
  const file = groundingText(clean(review.text));
  const byPrint = new Map<string, SubmittedFinding>();
  const unplaced: string[] = [];
  const answers: NonNullable<TicketResult['answers']> = [];
  const earlier = new Map(ticket.earlier.map((one) => [one.finding, one]));
  const isGone = (quote: string | undefined): boolean | null =>
    quote === undefined ? null : !ground(file, { quote, startLine: 1, endLine: file.lines }).grounded;
  const clauses: NonNullable<TicketResult['clauses']> = [];
  for (const outcome of outcomes) {
    if (outcome.kind === 'given_up') continue;
    // what was found in a part of the file is kept, though the file was not reviewed
    const spoken =
      outcome.kind === 'reviewed'
        ? outcome
        : {
            reviewer: outcome.reviewer,
            findings: outcome.found ?? [],
            unplaced: [],
            answers: [],
            clauses: [],
          };
    unplaced.push(...spoken.unplaced.map((said) => cut(clean(said), MOST_SAID)));
    for (const { finding, proposal, reason } of spoken.answers) {
      const about = earlier.get(finding);
      if (about !== undefined && answers.length < MOST_ANSWERS)
        answers.push({
          finding,
          proposal,
          reason: cut(clean(reason), MOST_SAID),
          reviewer: spoken.reviewer,
          gone: isGone(about.quote),
        });
    }
    for (const { index, status } of spoken.clauses ?? [])
      if (clauses.length < MOST_CLAUSE_WORDS) clauses.push({ index, status, reviewer: spoken.reviewer });
    const worst = [...spoken.findings].sort((a, b) => rank(a) - rank(b)).slice(0, MOST_CONSIDERED);
    if (worst.length < spoken.findings.length)
      unplaced.push(
        `${spoken.findings.length - worst.length} more findings of ${spoken.reviewer} were left out`,
      );
    for (const raw of worst) {
      const one = {
        ...submitted(ticket, review, raw, spoken.reviewer, clean, file),
        ...redactedIn(ticket, raw, known),
      };
      const before = byPrint.get(one.fingerprint);
      // two reviewers agree by fingerprint (RND-3): the worse severity stands, and both are named
      if (before === undefined) byPrint.set(one.fingerprint, one);
      else byPrint.set(one.fingerprint, agreed(rank(one) < rank(before) ? one : before, before, one));
    }
  }
  const all = [...byPrint.values()].sort((a, b) => rank(a) - rank(b) || a.start_line - b.start_line);
  const carriable = carried(all);
  const over = all.length - carriable.length;
  if (over > 0) unplaced.unshift(`${over} more findings than one result can carry were left out`);
  if (unplaced.length > MOST_UNPLACED)
    unplaced.splice(
      MOST_UNPLACED - 1,
      Number.POSITIVE_INFINITY,
      `and ${unplaced.length - MOST_UNPLACED + 1} more`,
    );
  const missing = outcomes.find((outcome) => outcome.kind === 'unavailable');
  const reviewed = outcomes.filter((outcome) => outcome.kind === 'reviewed');
  const verdict =
    all.length > 0 || unplaced.length > 0
      ? 'findings'
      : reviewed.some((outcome) => outcome.verdict === 'cannot_review')
        ? 'cannot_review'
        : 'approve';
  return {
    end: missing?.end ?? 'reviewed',
    detail: missing === undefined ? null : cut(clean(missing.detail), 500),
    retry_after_ms: missing?.retryAfterMs ?? null,
    verdict: missing === undefined ? verdict : null,
    partial: unplaced.length > 0,
    findings: carriable,
    unplaced,
    ...(answers.length === 0 ? {} : { answers }),
    ...(clauses.length === 0 ? {} : { clauses }),
  };
}

function rank(finding: Pick<SubmittedFinding, 'severity'>): number {
  return severities.indexOf(finding.severity);
}

/** The one that stands, with every other reviewer that said the same. */
function agreed(kept: SubmittedFinding, ...same: readonly SubmittedFinding[]): SubmittedFinding {
  const all = same.flatMap((one) => [one.reviewer, ...(one.seen_by ?? [])]);
  const others = [...new Set(all)].filter((name) => name !== kept.reviewer);
  return others.length === 0 ? kept : { ...kept, seen_by: others.slice(0, 10) };
}

/** The worst findings that one submit can carry. */
function carried(all: readonly SubmittedFinding[]): SubmittedFinding[] {
  let left = FINDINGS_BYTES;
  const kept: SubmittedFinding[] = [];
  for (const one of all.slice(0, MOST_FINDINGS)) {
    left -= Buffer.byteLength(JSON.stringify(one), 'utf8');
    if (left < 0) break;
    kept.push(one);
  }
  return kept;
}

function cut(text: string, max: number): string {
  return text.length <= max ? text : `${text.slice(0, max - 1).toWellFormed()}…`;
}

/** What was redacted of a finding, told by hash alone (REV-8); nothing where the server told no salt. */
function redactedIn(
  { redaction_salt: salt }: LeasedTicket,
  raw: RawFinding,
  known: Redactor,
): Pick<SubmittedFinding, 'redacted'> {
  if (salt === undefined) return {};
  const redacted = redactedOf(known, salt, [raw.title, raw.quote, raw.body, raw.suggestion]);
  return redacted.length === 0 ? {} : { redacted };
}

function submitted(
  ticket: LeasedTicket,
  review: ReviewText,
  raw: RawFinding,
  reviewer: string,
  clean: (text: string) => string,
  file: ReturnType<typeof groundingText>,
): SubmittedFinding {
  const whole = clean(raw.quote);
  // what is named is what is sent: the server makes the fingerprint again from it
  const quote = cut(whole, 4000);
  const lens = raw.lens.slice(0, 60);
  const title = cut(clean(raw.title), 300);
  const suggestion = raw.suggestion === null ? null : clean(raw.suggestion);
  const place = ground(file, { quote: whole, startLine: raw.startLine, endLine: raw.endLine });
  const bound = Math.max(1, review.lines);
  return {
    fingerprint: fingerprint({
      path: ticket.path,
      lens,
      title,
      quote,
      ordinal: place.grounded ? place.ordinal : 0,
    }),
    side: review.side,
    start_line: place.grounded ? place.startLine : Math.min(raw.startLine, bound),
    end_line: place.grounded ? place.endLine : Math.min(Math.max(raw.startLine, raw.endLine), bound),
    severity: raw.severity,
    lens,
    title,
    body: cut(clean(raw.body), 8000),
    quote,
    // half a suggestion would be wrong code
    suggestion: suggestion !== null && suggestion.length <= 8000 ? suggestion : null,
    grounded: place.grounded,
    reviewer,
  };
}
