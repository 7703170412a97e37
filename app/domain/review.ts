/** What a ticket asks a runner for and what a runner says it came to: plain types, equal to the wire's (app/protocol). */
import type { RowData } from './ledger/row-kinds.ts';
import type { WirePath } from './path.ts';

/** Severities, worst first. */
export type Severity = 'critical' | 'high' | 'medium' | 'low' | 'info';
/** How a ticket can end (TKT-2). */
export type TicketEnd = RowData<'ticket.ended'>['end'];
/** How a session can end. */
export type SessionEnd = RowData<'ticket.ended'>['sessions'][number]['end'];

/** A reviewer as a ticket brings it (REV-1). */
export interface TicketReviewer {
  name: string;
  uses: 'anthropic' | 'openai' | 'xai' | 'openai-compatible' | 'command';
  model?: string | undefined;
  base_url?: string | undefined;
  key?: string | undefined;
  max_output?: number | undefined;
  lenses?: string[] | undefined;
  fallbacks?: string[] | undefined;
  command?:
    | {
        run: string[];
        output: 'sarif' | 'countersign';
        paths: string[];
        ok_exit: number[];
        deletions: boolean;
        config: { path: string; blob: string | null }[];
        severity: { error: Severity; warning: Severity; note: Severity };
      }
    | undefined;
}

/** What a runner is told of a ticket, fixed when it is cut (RUN-8); the rest is added when it is leased. */
export interface TicketSpec {
  kind: 'review';
  pull: string | null;
  mode: { base: string | null; head: string | null };
  blob: { base: string | null; head: string | null };
  head: string;
  merge_base: string;
  block: { id: string; title: string; brief: string };
  reviewers: TicketReviewer[];
  fallbacks: TicketReviewer[];
  lenses: string[];
  max_lines: number;
  timeout_ms: number;
  prompt_version: string;
}

/** A finding as a runner submits it (REV-4, REV-5). */
export interface ResultFinding {
  fingerprint: string;
  side: 'head' | 'base';
  start_line: number;
  end_line: number;
  severity: Severity;
  lens: string;
  title: string;
  body: string;
  quote: string;
  suggestion: string | null;
  grounded: boolean;
  reviewer: string;
}

/** A session as a runner reports it. */
export interface ResultSession {
  id: string;
  reviewer: string;
  provider: string | null;
  model: string | null;
  end: SessionEnd;
  detail: string | null;
  exit: number | null;
  tokens_in: number;
  tokens_out: number;
  cost_micro: number;
  ms: number;
}

/** What a runner says a ticket came to. */
export interface ReviewResult {
  end: TicketEnd;
  detail: string | null;
  retry_after_ms: number | null;
  blobs: { base: string | null; head: string | null };
  verdict: 'approve' | 'findings' | 'cannot_review' | null;
  partial: boolean;
  sessions: ResultSession[];
  findings: ResultFinding[];
  unplaced: string[];
  brief_sha256: string | null;
  ms: number;
}

/** An earlier finding of the path as a reviewer sees it (RND-1). */
export interface EarlierFinding {
  finding: number;
  fingerprint: string;
  severity: Severity;
  title: string;
  body: string;
  start_line: number;
  answer: string | null;
}

/** A path of a ticket with the one it was moved from. */
export interface TicketPath {
  path: WirePath;
  from: WirePath | null;
}
