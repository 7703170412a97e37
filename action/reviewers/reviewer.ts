/** What a reviewer is given and what it may answer (REV-3, REV-9, REV-10). */
import type * as z from 'zod';
import type { severitySchema, ticketEndSchema } from '../../app/domain/ledger/row-fields.ts';
import type { LeasedTicket, ReviewerSpec } from '../../app/protocol/runner.ts';
import type { ChangedFile } from '../objects/diff.ts';
import type { Neighbour } from '../objects/neighbours.ts';

/** A severity, worst first (REV-6). */
export type Severity = z.infer<typeof severitySchema>;
/** A ticket's end as a reviewer can cause it: never `reviewed`, which is the ticket's to say. */
export type Unavailable = Exclude<z.infer<typeof ticketEndSchema>, 'reviewed'>;

/** A finding as a reviewer said it: not yet grounded, redacted or named. */
export type RawFinding = Readonly<{
  startLine: number;
  endLine: number;
  severity: Severity;
  lens: string;
  title: string;
  body: string;
  quote: string;
  suggestion: string | null;
}>;

/** A proposal about an earlier finding, by its number in the run. */
export type EarlierAnswer = Readonly<{
  finding: number;
  proposal: 'fixed' | 'persists' | 'withdrawn';
  reason: string;
}>;

/** What a model says of an acceptance clause of the ticket, by its index; one that it cannot tell is left out. */
export type ClauseAnswer = Readonly<{ index: number; status: 'met' | 'unmet' }>;

/** What became of a reviewer. A reviewer that did not run is `unavailable`, never "no findings" (REV-10). */
export type ReviewOutcome =
  | Readonly<{
      kind: 'reviewed';
      reviewer: string;
      verdict: 'approve' | 'findings' | 'cannot_review';
      findings: readonly RawFinding[];
      /** Findings that came malformed or for another file: shown as text; they make the ticket partial. */
      unplaced: readonly string[];
      /** What it proposes for earlier findings (RND-1); a command proposes nothing. */
      answers: readonly EarlierAnswer[];
      /** What it says of the acceptance clauses; absent: nothing (REV-3). */
      clauses?: readonly ClauseAnswer[];
    }>
  | Readonly<{
      kind: 'unavailable';
      reviewer: string;
      end: Unavailable;
      detail: string;
      retryAfterMs: number | null;
      /** What it had found in the ranges that it did read: kept, and no review (REV-2). */
      found?: readonly RawFinding[];
    }>
  /** Stopped, recalled or fenced: the ticket goes back, nothing is submitted. */
  | Readonly<{ kind: 'given_up'; why: 'stopping' | 'fenced' | 'recalled' | 'lost' }>;

/** The text under review: the head's, for a deletion the base's. */
export type ReviewText = Readonly<{
  side: 'head' | 'base';
  text: string;
  bytes: Buffer;
  lines: number;
  note: string | null;
  /** The base's text where there is one and it can be read. */
  base: string | null;
  /** Unified diff from base to head, empty for an added or deleted file. */
  diff: string;
}>;

/** What a reviewer of a ticket works with. */
export type ReviewTask = Readonly<{
  ticket: LeasedTicket;
  spec: ReviewerSpec;
  review: ReviewText;
  /** The other files of the change, for the prompt's list. */
  others: readonly ChangedFile[];
  /** Hunks of the nearest of them, for models. */
  neighbours: readonly Neighbour[];
  /** Blobs of the config files that a command names, from the base commit. */
  config: ReadonlyMap<string, Buffer>;
  /** A folder of this reviewer's own, which it makes where it needs one. */
  dir: string;
  path: string;
  secret: (name: string) => string | null;
  /** Redacts what is declared or known as a secret (REV-8). */
  redact: (text: string) => string;
  sessions: Sessions;
  signal: AbortSignal;
}>;

/** How one session ended, for the record. */
export type SessionRecord = Readonly<{
  id: string;
  reviewer: string;
  provider: string | null;
  model: string | null;
  end: 'complete' | 'invalid' | 'failed' | 'timeout' | 'abandoned';
  detail: string | null;
  exit: number | null;
  tokens_in: number;
  tokens_out: number;
  cost_micro: number;
  ms: number;
  /** What an agent did, so that the server can scan it again (REV-7). */
  log?: string;
}>;

/** The answer to a wish to spend: a session, or why not. */
export type Admission =
  | Readonly<{ kind: 'admitted'; session: string }>
  | Readonly<{ kind: 'refused'; outcome: ReviewOutcome }>;

/** The sessions of a ticket: admitted one by one by the server before anything is spent (ADM-1). */
export type Sessions = Readonly<{
  admit: (of: {
    reviewer: string;
    purpose: 'review' | 'fallback' | 'repair';
    promptTokens: number;
  }) => Promise<Admission>;
  /** Reports an admitted session's end, and keeps it for the result. */
  ended: (record: SessionRecord) => Promise<void>;
  /** Keeps a session that needed no admission: a command's. */
  ran: (record: Omit<SessionRecord, 'id'>) => void;
}>;
