/** What is wrong with, or to be corrected in, a result that a runner submitted (AUT-3, REV-8, REV-9, REV-10): pure. */
import { createHash } from 'node:crypto';
import { fingerprint } from './finding.ts';
import type { WirePath } from './path.ts';
import { distinctRedacted, type Redacted, redactedOf } from './redact/keyed.ts';
import type { Redactor } from './redact.ts';
import type { TicketEnd, TicketSpec } from './review.ts';

/** A session as a runner reports it. */
export interface ReportedSession {
  readonly id: string;
  readonly reviewer: string;
  readonly provider: string | null;
  readonly model: string | null;
  readonly end: 'complete' | 'invalid' | 'failed' | 'timeout' | 'abandoned';
  readonly detail: string | null;
  readonly tokens_in: number;
  readonly tokens_out: number;
  readonly cost_micro: number;
  readonly ms: number;
}
/** A finding as a runner reports it. */
export interface ReportedFinding {
  readonly fingerprint: string;
  readonly side: 'head' | 'base';
  readonly start_line: number;
  readonly end_line: number;
  readonly severity: 'critical' | 'high' | 'medium' | 'low' | 'info';
  readonly lens: string;
  readonly title: string;
  readonly body: string;
  readonly quote: string;
  readonly suggestion: string | null;
  readonly grounded: boolean;
  readonly reviewer: string;
  /** Others of the ticket that said the same (RND-3). */
  readonly seen_by?: readonly string[] | undefined;
  /** Inner hashes of what was redacted of its texts (REV-8). */
  readonly redacted?: readonly Redacted[] | undefined;
}
/** A result as a runner reports it. */
export interface ReportedResult {
  readonly end: TicketEnd;
  readonly detail: string | null;
  readonly blobs: { readonly base: string | null; readonly head: string | null };
  readonly verdict: 'approve' | 'findings' | 'cannot_review' | null;
  readonly partial: boolean;
  readonly sessions: readonly ReportedSession[];
  readonly findings: readonly ReportedFinding[];
  readonly unplaced: readonly string[];
}

/** A result that may be recorded. */
export interface CheckedResult {
  readonly end: TicketEnd;
  readonly verdict: 'approve' | 'findings' | 'cannot_review' | null;
  readonly partial: boolean;
  readonly detail: string | null;
  readonly sessions: readonly ReportedSession[];
  readonly findings: readonly ReportedFinding[];
}

/** Ordinals of equal quotes that a fingerprint is looked for under; a file with more of one quote gets the first. */
const MOST_ORDINALS = 64;

/** AUT-3: whether the runner read the content of the ticket; an end without a review may have read none. */
export function readOtherContent(spec: Pick<TicketSpec, 'blob'>, result: ReportedResult): boolean {
  const differs = (told: string | null, wanted: string | null) =>
    result.end === 'reviewed' ? told !== wanted : told !== null && told !== wanted;
  return differs(result.blobs.head, spec.blob.head) || differs(result.blobs.base, spec.blob.base);
}

/** The first reviewer name that a result uses and its ticket does not know; null when there is none. */
export function foreignReviewer(spec: TicketSpec, result: ReportedResult): string | null {
  const known = new Set([...spec.reviewers, ...spec.fallbacks].map((one) => one.name));
  const used = [...result.sessions, ...result.findings].map((one) => one.reviewer);
  return used.find((name) => !known.has(name)) ?? null;
}

/**
 * A result as it may count. `reviewed` needs a verdict, and for each reviewer of the ticket a complete
 * session of it or of one of its fallbacks, for a model one that was admitted for that very reviewer
 * (`admitted`: reviewer by session id): a reviewer that did not run is never "no findings" (REV-10).
 * Findings are redacted again, their fingerprints made anew; `salt` is that of the runner (REV-8).
 */
export function checkResult(
  spec: TicketSpec,
  path: WirePath,
  result: ReportedResult,
  admitted: ReadonlyMap<string, string>,
  redactor: Redactor,
  salt: string,
): CheckedResult {
  const findings = distinct(result.findings.map((one) => cleanFinding(one, path, redactor, salt)));
  const missing = result.end === 'reviewed' ? missingReviewer(spec, result, admitted) : null;
  const broken =
    missing !== null
      ? ({ end: 'worker_error', why: `no complete session of ${missing}` } as const)
      : result.end === 'reviewed' && result.verdict === null
        ? ({ end: 'bad_output', why: 'a review without a verdict' } as const)
        : null;
  const partial = result.partial || result.unplaced.length > 0;
  const said = [broken?.why ?? result.detail, unplaced(result.unplaced.length)].filter((one) => one !== null);
  const detail = said.length === 0 ? null : clip(redactor.redact(said.join('; ')), 200);
  const end = broken?.end ?? result.end;
  return {
    end,
    verdict:
      end !== 'reviewed'
        ? null
        : result.verdict === 'approve' && findings.length > 0
          ? 'findings'
          : result.verdict,
    partial,
    detail,
    sessions: result.sessions.map((one) => ({
      ...one,
      id: clip(one.id, 64) || 'none',
      reviewer: clip(one.reviewer, 100),
      provider: one.provider === null ? null : clip(one.provider, 60) || 'none',
      model: one.model === null ? null : clip(one.model, 100) || 'none',
      detail: one.detail === null ? null : clip(redactor.redact(one.detail), 120),
    })),
    findings,
  };
}

function unplaced(n: number): string | null {
  return n === 0 ? null : `${n} findings without a place in the file`;
}

function missingReviewer(
  spec: TicketSpec,
  result: ReportedResult,
  admitted: ReadonlyMap<string, string>,
): string | null {
  const uses = new Map([...spec.reviewers, ...spec.fallbacks].map((one) => [one.name, one]));
  const complete = result.sessions.filter((one) => {
    const reviewer = uses.get(one.reviewer);
    if (reviewer === undefined || one.end !== 'complete') return false;
    return reviewer.uses === 'command' || admitted.get(one.id) === one.reviewer;
  });
  const spare = new Map(complete.map((one) => [one.id, one.reviewer]));
  /** Takes a session for a reviewer: none stands for two of them. */
  const take = (name: string) => {
    const found = [...spare].find(([, reviewer]) => reviewer === name);
    return found !== undefined && spare.delete(found[0]);
  };
  const rest = spec.reviewers.filter((reviewer) => !take(reviewer.name));
  return rest.find((reviewer) => !(reviewer.fallbacks ?? []).some(take))?.name ?? null;
}

/** Redacted text, line numbers in order, and a fingerprint that is ours (REV-5, REV-8). */
function cleanFinding(
  finding: ReportedFinding,
  path: WirePath,
  redactor: Redactor,
  salt: string,
): ReportedFinding {
  const clean = (text: string) => redactor.redact(text).toWellFormed().replaceAll('\u0000', '\ufffd');
  const title = clean(finding.title);
  const quote = clean(finding.quote);
  const lens = clip(finding.lens, 60) || 'correctness';
  const told = (ordinal: number) =>
    fingerprint({ path, lens: finding.lens, title: finding.title, quote: finding.quote, ordinal });
  let ordinal = 0;
  if (finding.grounded)
    for (let n = 0; n < MOST_ORDINALS; n++)
      if (told(n) === finding.fingerprint) {
        ordinal = n;
        break;
      }
  const raw = [finding.title, finding.quote, finding.body, finding.suggestion];
  return {
    ...finding,
    redacted: distinctRedacted([...(finding.redacted ?? []), ...redactedOf(redactor, salt, raw)]),
    lens,
    title,
    quote,
    body: clean(finding.body),
    suggestion: finding.suggestion === null ? null : clean(finding.suggestion),
    end_line: Math.max(finding.start_line, finding.end_line),
    fingerprint: fingerprint({ path, lens, title, quote, ordinal }),
  };
}

const SEVERITIES = ['critical', 'high', 'medium', 'low', 'info'] as const;

/** One finding a fingerprint: the worst severity stands, grounded before not. */
function distinct(findings: readonly ReportedFinding[]): ReportedFinding[] {
  const found = new Map<string, ReportedFinding>();
  for (const one of findings) {
    const known = found.get(one.fingerprint);
    if (known === undefined) found.set(one.fingerprint, one);
    else {
      const worse = SEVERITIES.indexOf(one.severity) < SEVERITIES.indexOf(known.severity) ? one : known;
      const redacted = distinctRedacted([...(known.redacted ?? []), ...(one.redacted ?? [])]);
      const seen_by = [known, one].flatMap((each) => [each.reviewer, ...(each.seen_by ?? [])]);
      found.set(one.fingerprint, { ...worse, redacted, seen_by, grounded: known.grounded || one.grounded });
    }
  }
  return [...found.values()];
}

/** Text that fits so many UTF-8 bytes, without NUL or lone surrogates, cut at a character. */
export function clip(text: string, bytes: number): string {
  const clean = text.toWellFormed().replaceAll('\u0000', '\ufffd');
  if (Buffer.byteLength(clean, 'utf8') <= bytes) return clean;
  let size = 0;
  let out = '';
  for (const character of clean) {
    size += Buffer.byteLength(character, 'utf8');
    if (size > bytes) break;
    out += character;
  }
  return out;
}

/** The digest a result is known by (LSE-4): SHA-256 over its JSON with sorted keys, hex. */
export function resultDigest(result: unknown): string {
  return createHash('sha256').update('countersign result 1\n').update(sortedJson(result)).digest('hex');
}

function sortedJson(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) =>
    inner !== null && typeof inner === 'object' && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}

/** A finding as far as RND-1 asks. */
export interface OpenCommandFinding {
  readonly number: number;
  readonly fingerprint: string;
  readonly reviewer: string;
  readonly command: boolean;
  readonly side: 'head' | 'base';
  readonly blob: string | null;
  /** The reviewer's entry of the ticket that raised it; undefined when that is not known any more. */
  readonly entry: TicketSpec['reviewers'][number] | undefined;
}

/** A command's finding that ended without being told so, and why. */
export type Silenced = readonly [number: number, reason: 'not_raised_again' | 'code_changed'];

/**
 * RND-1 for commands: open findings that the command of that name did not raise again on new content.
 * The same policy entry is believed. Another one may just no longer look for it, so then the anchored
 * code must have gone (`gone`, found by the server in the blob). On the same content, from a reviewer
 * that is no command now, or where it did not complete, they stand.
 */
export function silencedFindings(
  spec: TicketSpec,
  result: CheckedResult,
  open: readonly OpenCommandFinding[],
  gone: ReadonlySet<number>,
): Silenced[] {
  if (result.end !== 'reviewed' || result.partial) return [];
  const raised = new Set(result.findings.map((one) => one.fingerprint));
  const complete = new Set(
    result.sessions.filter((one) => one.end === 'complete').map((one) => one.reviewer),
  );
  return open.flatMap((one): Silenced[] => {
    if (!complete.has(one.reviewer) || raised.has(one.fingerprint)) return [];
    if (!one.command || spec.blob[one.side] === one.blob) return [];
    if (commandOf(spec, one.reviewer) === undefined) return [];
    if (!entryChanged(spec, one)) return [[one.number, 'not_raised_again']];
    return gone.has(one.number) ? [[one.number, 'code_changed']] : [];
  });
}

/** Whether a command of that name reviews now under another policy entry than the one that raised the finding. */
export function entryChanged(
  spec: TicketSpec,
  finding: Pick<OpenCommandFinding, 'reviewer' | 'entry'>,
): boolean {
  const entry = commandOf(spec, finding.reviewer);
  return entry !== undefined && (finding.entry === undefined || !sameEntry(entry, finding.entry));
}

function commandOf(spec: TicketSpec, name: string): TicketSpec['reviewers'][number] | undefined {
  return spec.reviewers.find((reviewer) => reviewer.name === name && reviewer.uses === 'command');
}

function sameEntry(a: TicketSpec['reviewers'][number], b: TicketSpec['reviewers'][number]): boolean {
  // the blobs of its config files are content of the base, not of the policy
  const bare = (one: typeof a) => ({
    ...one,
    command: one.command && { ...one.command, config: one.command.config.map((file) => file.path) },
  });
  return sortedJson(bare(a)) === sortedJson(bare(b));
}
