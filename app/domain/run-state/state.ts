/** What a run's verified rows say, folded. The ledger decides; tables are projections of the same rows. */
import type { Actor, DecidedPath, PeopleGroup } from '../ledger/row-fields.ts';
import type { RowData } from '../ledger/row-kinds.ts';
import type { WirePath } from '../path.ts';
import type { ReceiptFact } from '../receipt.ts';
import type { RoundFact } from './rounds.ts';

/** A head the run has had (RUN-3); `content` is a digest of its paths with modes and blobs of both sides (GAT-6, carry). */
export type Head = RowData<'run.head'> & {
  readonly seq: number;
  readonly at: string;
  readonly content: string;
};

/** Who made what the newest head changes (GAT-6). `complete` once its last row is there. */
export interface PeopleFact {
  readonly head: string;
  readonly mergeBase: string;
  complete: boolean;
  /** By exact path bytes. */
  readonly byPath: Map<string, PeopleGroup>;
  /** Every other path; null: nobody knows. */
  rest: PeopleGroup | null;
}

/** A path of the present file set, as decided by row `seq`. */
export type FileFact = DecidedPath & {
  readonly seq: number;
  /** The row that made it guarded where it was not before (OWN-8); absent or 0: none did. */
  readonly guardedSince?: number;
};

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
  /** SHA-256 of the texts of its clauses, in their order (BLK-3). */
  readonly accept: readonly string[];
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
  /** What its results say of clauses, by their texts' SHA-256; one that says `unmet` has the word (REV-3). */
  readonly clauses: Map<string, 'met' | 'unmet'>;
  /** Why its results call for a person, and the newest row that does (REV-9). */
  readonly calls: Map<string, number>;
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
  readonly command: boolean;
  readonly key: string;
  readonly blob: string | null;
  /** SHA-256 of the texts. */
  readonly title: string;
  readonly body: string;
  readonly quote: string;
  readonly suggestion: string | null;
  /** SHA-256 of the newest answer's text (FND-2). */
  readonly answer: string | null;
  /** Who asked to dismiss it, in order; whether that is enough is `dismissalHolds`. */
  readonly dismissals: readonly Dismissal[];
  readonly seq: number;
  /** The last row that carried it to another path; null: none (REV-5). */
  readonly carriedSeq: number | null;
  /** The reviewers that saw it at L3 where two could, over rounds; null: nothing hangs on who (RND-3). */
  readonly witnesses: readonly string[] | null;
  /** New, of a model that had read this very content before: it does not block (RND-1). */
  readonly readBefore: boolean;
}

/** One person's dismissal of a finding (FND-2). */
export interface Dismissal {
  readonly actor: string;
  /** The severity the finding had then; null in rows that do not tell. */
  readonly severity: FindingFact['severity'] | null;
  /** Whether it was given on the person's own work, and they were not the only one with write. */
  readonly self: boolean;
  readonly seq: number;
}

/** Consent to spend (RUN-10). */
export type Allowance = RowData<'run.allowed'> & { readonly seq: number };

/**
 * What a person did; `revoked` once a later row took it back (GAT-6). `content` is that of its head when it
 * was done, null where the head was not read by then.
 */
export type ActFact = RowData<'human.acted'> & {
  readonly seq: number;
  /** ISO product time. */
  readonly at: string;
  /** Account id. */
  readonly actor: string;
  readonly actorKind: Actor['kind'];
  readonly content: string | null;
  revoked: boolean;
};

/** What does not add up between rows: each fails the gate as `coverage_gap`. */
export interface Anomaly {
  readonly seq: number;
  readonly detail: string;
}

/** A merge group as its rows say (GAT-5). */
export interface GroupFact {
  readonly read: RowData<'group.read'>;
  /** By position, each as its newest row says. */
  readonly members: Map<number, RowData<'group.member'>>;
  /** How each known path is known, by its exact bytes. */
  readonly known: Map<string, RowData<'group.known'>['proof']>;
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
  /** What was decided under each key, for results to be held against. */
  decided: Map<string, Pick<FileFact, 'key' | 'level' | 'blob'>>;
  findings: Map<number, FindingFact>;
  /** Numbers by path bytes and fingerprint. */
  findingIndex: Map<string, number>;
  /** Numbers by the path bytes and fingerprints that findings had before they were carried (REV-5). */
  former: Map<string, number>;
  /** Numbers of the findings of a path, by its bytes. */
  numbersAt: Map<string, Set<number>>;
  /** Rounds that read content with findings of models on it, by path bytes, in order (RND-2). */
  rounds: Map<string, readonly RoundFact[]>;
  /** Fingerprints of counted results, to hold against the findings raised. */
  promised: Map<string, number>;
  /** By block and id (VER-2). */
  receipts: Map<string, ReceiptFact>;
  allowances: Allowance[];
  acts: ActFact[];
  people: PeopleFact | null;
  /** Accounts that pushed each head, by head. */
  pushers: Map<string, Set<string>>;
  /** The head with which each commit came, by commit. */
  arrivals: Map<string, string>;
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
  /** Null for a pull request, and for a group that was not read yet. */
  group: GroupFact | null;
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
    decided: new Map(),
    findings: new Map(),
    findingIndex: new Map(),
    former: new Map(),
    numbersAt: new Map(),
    rounds: new Map(),
    promised: new Map(),
    receipts: new Map(),
    allowances: [],
    acts: [],
    people: null,
    pushers: new Map(),
    arrivals: new Map(),
    ruleBreaks: [],
    conflicts: [],
    ticketKeys: new Map(),
    gate: null,
    gates: new Map(),
    usage: { sessions: 0, tokensIn: 0, tokensOut: 0, costMicro: 0, ms: 0 },
    anomalies: [],
    group: null,
  };
}

/** The head the file set stands for; null before the first reading. */
export function presentHead(state: RunState): Head | null {
  return state.heads.at(-1) ?? null;
}
