/** What a ticket asks a runner for: plain types, which app/protocol's schemas take (compiled against each other when leased). */
import type { RowData } from './ledger/row-kinds.ts';
import type { WirePath } from './path.ts';
import type { AgentKind } from './transcript.ts';

/** Severities, worst first. */
export type Severity = 'critical' | 'high' | 'medium' | 'low' | 'info';
/** All severities, worst first. */
export const SEVERITIES: readonly Severity[] = ['critical', 'high', 'medium', 'low', 'info'];
/** How a ticket can end (TKT-2). */
export type TicketEnd = RowData<'ticket.ended'>['end'];

/** A reviewer as a ticket brings it (REV-1). */
export interface TicketReviewer {
  name: string;
  uses: 'anthropic' | 'openai' | 'xai' | 'openai-compatible' | AgentKind | 'command';
  model?: string | undefined;
  base_url?: string | undefined;
  key?: string | undefined;
  max_output?: number | undefined;
  lenses?: string[] | undefined;
  fallbacks?: string[] | undefined;
  command?:
    | {
        run: string[];
        output: 'sarif' | 'rdjson' | 'checkstyle' | 'eslint-json' | 'countersign';
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
  /** The block's acceptance clauses; absent in tickets of before. */
  clauses?: string[] | undefined;
  /** The files of the block nearest to this one (REV-2). */
  near?: WirePath[] | undefined;
  max_lines: number;
  timeout_ms: number;
  prompt_version: string;
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
  quote: string;
}
