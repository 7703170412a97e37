/** What a run's verified rows say, folded. The ledger decides; tables are projections of the same rows. */
import type { DecidedPath } from '../ledger/row-fields.ts';
import type { RowData } from '../ledger/row-kinds.ts';
import type { WirePath } from '../path.ts';

/** A head the run has had (RUN-3). */
export type Head = RowData<'run.head'> & { readonly seq: number; readonly at: string };

/** A path of the present file set, as decided by row `seq`. */
export type FileFact = DecidedPath & { readonly seq: number };

/** A block as its rows left it. */
export interface BlockFact {
  readonly id: string;
  /** SHA-256 of the title's text. */
  readonly title: string;
  readonly kind: string;
  readonly level: string;
  readonly named: boolean;
  readonly attempt: number;
  readonly after: readonly string[];
  readonly acceptHuman: readonly string[];
  readonly notes: readonly { readonly code: string; readonly detail: string }[];
  readonly ended: 'passed' | 'failed' | 'dropped' | null;
}

/** The last word on who owns a path by claim: a block, or null once released (OWN-6). */
export interface ClaimFact {
  readonly block: string | null;
  readonly auto: boolean;
  readonly seq: number;
}

/** What is known of one review key over all its results (RUN-4, TKT-4). */
export interface KeyFact {
  /** A complete review with a verdict: approving, or with all its findings. Once true it stays. */
  counted: boolean;
  /** The row of the newest counting result. */
  countedSeq: number | null;
  /** The newest end that does not count; null when there is none. */
  failed: {
    readonly end: string;
    readonly final: boolean;
    readonly detail: string | null;
    readonly seq: number;
  } | null;
  readonly path: WirePath;
}

/** A finding in the one state it is in, by number (FND-1). */
export interface FindingFact {
  readonly number: number;
  readonly fingerprint: string;
  readonly path: WirePath;
  readonly side: 'head' | 'base';
  readonly startLine: number;
  readonly endLine: number;
  readonly severity: RowData<'finding.raised'>['severity'];
  readonly lens: string;
  readonly state: 'open' | 'answered' | 'fixed' | 'dismissed' | 'ungrounded' | 'withdrawn';
  readonly reviewer: string;
  readonly key: string;
  readonly blob: string | null;
  /** SHA-256 of the texts. */
  readonly title: string;
  readonly body: string;
  readonly suggestion: string | null;
  readonly seq: number;
}

/** Consent to spend (RUN-10). */
export type Allowance = RowData<'run.allowed'> & { readonly seq: number };

/** What a person did; `revoked` once a later row took it back (GAT-6). */
export type ActFact = RowData<'human.acted'> & {
  readonly seq: number;
  readonly actor: string;
  revoked: boolean;
};

/** What does not add up between rows: each fails the gate as `coverage_gap`. */
export interface Anomaly {
  readonly seq: number;
  readonly detail: string;
}

/** A run as its verified rows say. Advanced in place by `foldRow`, by committed rows only. */
export interface RunState {
  /** The last row folded; 0 before the first. */
  seq: number;
  opened: (RowData<'run.opened'> & { readonly seq: number }) | null;
  closed: (RowData<'run.closed'> & { readonly seq: number }) | null;
  sealed: boolean;
  heads: Head[];
  /** When work on the present head could last begin (a head, consent, a rerun, a reopening): ISO; deadlines count from it. */
  wokenAt: string | null;
  policy: (RowData<'run.policy'> & { readonly seq: number }) | null;
  /** The present file set by exact path bytes. */
  files: Map<string, FileFact>;
  blocks: Map<string, BlockFact>;
  claims: Map<string, ClaimFact>;
  keys: Map<string, KeyFact>;
  findings: Map<number, FindingFact>;
  /** Numbers by path bytes and fingerprint. */
  findingIndex: Map<string, number>;
  /** Fingerprints of counted results, to hold against the findings raised. */
  promised: Map<string, number>;
  allowances: Allowance[];
  acts: ActFact[];
  ruleBreaks: { readonly ticket: string; readonly detail: string; readonly seq: number }[];
  /** Conflicting results of one grant (LSE-4), by ticket; the key they concern is that of the ticket's last end. */
  conflicts: { readonly ticket: string; readonly seq: number }[];
  ticketKeys: Map<string, string>;
  /** The newest verdict, and the newest of each head: what was published (PUB-2). */
  gate: (RowData<'gate.decided'> & { readonly seq: number; readonly at: string }) | null;
  /** Verdicts on earlier heads, newest of each, for "what changed since". */
  gates: Map<string, RowData<'gate.decided'> & { readonly seq: number }>;
  usage: { sessions: number; tokensIn: number; tokensOut: number; costMicro: number; ms: number };
  anomalies: Anomaly[];
}

/** A run of which no row was folded yet. */
export function emptyState(): RunState {
  return {
    seq: 0,
    opened: null,
    closed: null,
    sealed: false,
    heads: [],
    wokenAt: null,
    policy: null,
    files: new Map(),
    blocks: new Map(),
    claims: new Map(),
    keys: new Map(),
    findings: new Map(),
    findingIndex: new Map(),
    promised: new Map(),
    allowances: [],
    acts: [],
    ruleBreaks: [],
    conflicts: [],
    ticketKeys: new Map(),
    gate: null,
    gates: new Map(),
    usage: { sessions: 0, tokensIn: 0, tokensOut: 0, costMicro: 0, ms: 0 },
    anomalies: [],
  };
}

/** The head the file set stands for; null before the first reading. */
export function presentHead(state: RunState): Head | null {
  return state.heads.at(-1) ?? null;
}
