/**
 * What a policy that a pull request brings would decide for it (RUN-9): the same gate over the present
 * verified rows, as if the proposed policy were the base's. It decides nothing and is no row.
 */
import { filesDigest } from './file-set.ts';
import { decideGate, type GateDecision, type GateFacts } from './gate/decide.ts';
import { gatePolicyOf } from './gate/policy.ts';
import type { GateReason } from './gate/reason.ts';
import type { DecidedPath } from './ledger/row-fields.ts';
import type { RowData, RowKind } from './ledger/row-kinds.ts';
import { pathKey, type WirePath } from './path.ts';
import type { Policy } from './policy.ts';
import { routeFile } from './routing.ts';
import type { Fact } from './run-state/fact.ts';
import { foldRow, foldRows } from './run-state/fold.ts';

/** A file set and the policy it was decided under. */
export interface DecidedSet {
  readonly policy: Policy;
  readonly files: readonly DecidedPath[];
}

/** What a preview is made from. */
export interface PreviewInput {
  /** The run's verified rows; none where the base branch is not enrolled. */
  readonly rows: readonly Fact[];
  /** Rows as the first reading of a run would append them, before the policy's own: none where there is a run. */
  readonly opening: readonly {
    readonly kind: RowKind;
    readonly data: unknown;
    readonly block: string | null;
  }[];
  /** What stands under the base's policy: null where it has no valid one. */
  readonly present: (DecidedSet & { readonly decision: GateDecision }) | null;
  readonly proposed: DecidedSet & { readonly hash: string };
  /** The head as it was read. */
  readonly head: Omit<RowData<'run.head'>, 'files' | 'files_digest'>;
  readonly facts: GateFacts;
  /** Lines of head blobs, where a route of either policy asks for them. */
  readonly lines: ReadonlyMap<string, number>;
  /** Product time in ms. */
  readonly now: number;
}

/** How one path is treated under a policy. */
export interface Treatment {
  readonly level: string;
  /** Empty: nobody reads it. */
  readonly reviewers: readonly string[];
  readonly ownership: string;
}

/** A path that another policy treats otherwise. */
export interface PathChange {
  readonly path: WirePath;
  readonly before: Treatment;
  readonly after: Treatment;
}

/** What would be, and how it differs. */
export interface Preview {
  readonly decision: GateDecision;
  readonly after: readonly { readonly path: WirePath; readonly treatment: Treatment }[];
  /** Null where nothing stands to compare with. */
  readonly difference: {
    readonly decision: GateDecision;
    readonly paths: readonly PathChange[];
    readonly come: readonly GateReason[];
    readonly go: readonly GateReason[];
  } | null;
}

/** Decides as if the proposed policy were the base's. */
export function decideProposed(input: PreviewInput): Preview {
  const { proposed, present, facts, now } = input;
  const state = foldRows(input.rows);
  const gone = [...state.files.values()].map((file) => file.path);
  const { policy, hash, files } = proposed;
  const mode = policy.mode;
  const add = (kind: RowKind, data: unknown, block: string | null = null) => {
    const by = {
      actor: { kind: 'app', id: 'preview', via: 'schedule' },
      cause: { kind: 'schedule', id: 'preview', sha256: null },
    };
    foldRow(state, { seq: state.seq + 1, at: new Date(now).toISOString(), kind, block, ...by, data } as Fact);
  };
  for (const { kind, data, block } of input.opening) add(kind, data, block);
  add('run.policy', { state: 'valid', hash, commit: null, mode });
  const level = { question: 'level', source: 'rules', head: input.head.head, policy: hash };
  add('decision', { ...level, gone, paths: files });
  const digest = filesDigest(files.map((file) => file.path));
  add('run.head', { ...input.head, files: files.length, files_digest: digest });
  const decision = decideGate(state, gatePolicyOf(policy), { ...facts, mode }, now);
  const after = files.map((file) => ({ path: file.path, treatment: treatmentOf(policy, file, input.lines) }));
  return { decision, after, difference: present === null ? null : differ(input, present, decision, after) };
}

function differ(
  input: PreviewInput,
  present: NonNullable<PreviewInput['present']>,
  decision: GateDecision,
  after: Preview['after'],
): Preview['difference'] {
  const before = new Map(
    present.files.map((file) => [pathKey(file.path), treatmentOf(present.policy, file, input.lines)]),
  );
  const paths = after.flatMap(({ path, treatment }): PathChange[] => {
    const old = before.get(pathKey(path));
    return old === undefined || same(old, treatment) ? [] : [{ path, before: old, after: treatment }];
  });
  const codes = (of: GateDecision) => new Set(of.reasons.map((reason) => reason.code));
  const [then, now] = [codes(present.decision), codes(decision)];
  return {
    decision: present.decision,
    paths,
    come: decision.reasons.filter((reason) => !then.has(reason.code)),
    go: present.decision.reasons.filter((reason) => !now.has(reason.code)),
  };
}

function treatmentOf(policy: Policy, file: DecidedPath, lines: ReadonlyMap<string, number>): Treatment {
  const routed = routeFile(policy, {
    path: file.path,
    from: file.from ?? null,
    kind: file.kind,
    lines: file.blob.head === null ? null : (lines.get(file.blob.head) ?? null),
    level: file.level,
    guarded: file.ownership === 'guarded',
    deleted: file.status === 'D',
  });
  const reviewers = 'invalid' in routed ? [] : routed.reviewers;
  const level = file.level === 'L0' ? `L0 ${file.reason ?? ''}`.trim() : file.level;
  return { level, reviewers, ownership: file.ownership };
}

function same(a: Treatment, b: Treatment): boolean {
  return (
    a.level === b.level && a.ownership === b.ownership && a.reviewers.join('\n') === b.reviewers.join('\n')
  );
}
