/** What `countersign simulate OWNER/REPO#N` prints: the verdict, what holds it, blocks, paths, tickets. */
import type { Block } from '../block.ts';
import type { GateDecision } from '../gate/decide.ts';
import type { GateReason } from '../gate/reason.ts';
import type { DecidedPath } from '../ledger/row-fields.ts';
import { showPath } from '../path.ts';
import type { Preview, Treatment } from '../preview.ts';
import { count, titleOf } from '../summary/title.ts';
import type { TicketFate, TicketPlan } from './tickets.ts';

/** A planned block as far as it is shown. */
export interface ShownBlock {
  readonly block: Pick<Block, 'id' | 'named' | 'commits'>;
  readonly kind: string;
  readonly level: string;
  readonly detail: {
    readonly after: readonly string[];
    readonly notes: readonly { readonly code: string; readonly detail: string }[];
  };
}

/** A simulation as far as it is shown. */
export interface ShownPull {
  /** `owner/name#7`. */
  readonly name: string;
  readonly head: string;
  readonly baseRef: string;
  readonly base: string;
  /** Where the policy is from, in words. */
  readonly policy: string;
  readonly recorded: { readonly run: string; readonly seq: number } | null;
  readonly blocks: readonly ShownBlock[];
  readonly files: readonly DecidedPath[];
  readonly preview: Preview;
  readonly tickets: TicketPlan;
}

/** Whether the policy that was taken changes anything against what stands: verdict, reasons, or how a path is treated. */
export function changesPull({ difference, decision }: Preview): boolean {
  if (difference === null) return false;
  const { come, go, paths } = difference;
  return difference.decision.conclusion !== decision.conclusion || come.length + go.length + paths.length > 0;
}

const FATES: Readonly<Record<TicketFate, string>> = {
  open: 'to review',
  reviewed: 'reviewed already',
  elsewhere: 'reviewed in another pull request',
  failed: 'tried and not reviewed',
  nobody: 'read by nobody: route_invalid',
  none: 'not reviewed, by decision',
};

/** The lines of the answer. */
export function pullText(shown: ShownPull): string[] {
  const { name, head, baseRef, base, policy, recorded, preview } = shown;
  return [
    `${name} at ${head.slice(0, 12)} into ${baseRef} (${base.slice(0, 12)})`,
    `policy: ${policy}`,
    recorded === null
      ? 'recorded: no run of this head, decided as if it were opened now'
      : `recorded: run ${recorded.run}, its rows up to ${recorded.seq} verify and decide`,
    '',
    `would be: ${verdict(preview.decision)}`,
    ...reasons(preview.decision),
    ...compared(preview),
    '',
    ...blocks(shown),
    '',
    ...paths(shown),
    '',
    ...tickets(shown.tickets),
  ];
}

function verdict(decision: GateDecision): string {
  const advisory = decision.mode === 'advisory' ? ', advisory' : '';
  return `${decision.conclusion.replace('_', ' ')}${advisory}: ${titleOf(decision)}`;
}

function reasons(decision: GateDecision): string[] {
  return decision.reasons.flatMap((reason, i) => {
    const step = decision.next[i];
    return [
      `  ${named(reason)}`,
      ...(step === undefined ? [] : [`      clears: ${step.what}; who: ${step.who}`]),
    ];
  });
}

function named({ code, class: of, count: n, detail, paths: where, findings }: GateReason): string {
  const concerns = [
    ...where.slice(0, 3).map(showPath),
    ...findings.slice(0, 5).map((number) => `F${number}`),
  ];
  const more = concerns.length > 0 && n > concerns.length ? ` and ${n - concerns.length} more` : '';
  const list = concerns.length === 0 ? '' : ` [${concerns.join(', ')}${more}]`;
  return `${code} (${of})${detail === null ? '' : `: ${detail}`}${list}`;
}

function compared({ difference, decision }: Preview): string[] {
  if (difference === null) return [];
  if (!changesPull({ difference, decision, after: [] })) return ['the same as it is now'];
  return [
    `is now: ${verdict(difference.decision)}`,
    ...difference.come.map((reason) => `  + ${named(reason)}`),
    ...difference.go.map((reason) => `  - ${named(reason)}`),
    ...difference.paths.map(
      ({ path, before, after }) => `  ${showPath(path)}: ${treated(before)} → ${treated(after)}`,
    ),
  ];
}

function blocks({ blocks: all, files }: ShownPull): string[] {
  const owned = new Map<string, number>();
  for (const { block } of files) owned.set(block, (owned.get(block) ?? 0) + 1);
  return [
    `blocks: ${all.length}`,
    ...all.flatMap(({ block, kind, level, detail }) => [
      `  ${block.id}${block.named ? '' : ' (unnamed)'}  ${kind}  ${level}  ${count(block.commits.length, 'commit')}, ${count(owned.get(block.id) ?? 0, 'path')}${detail.after.length === 0 ? '' : `, after ${detail.after.join(', ')}`}`,
      ...detail.notes.map((note) => `      ${note.code}: ${note.detail}`),
    ]),
  ];
}

function paths({ files, preview, tickets: plan }: ShownPull): string[] {
  const rows = files.map((file, i) => [
    showPath(file.path),
    file.ownership === 'owned' ? file.block : file.ownership,
    preview.after[i]?.treatment.level ?? file.level,
    (preview.after[i]?.treatment.reviewers ?? []).join(', ') || 'nobody',
    FATES[plan.fates[i] ?? 'none'] + (file.human === true ? ', and a person' : ''),
  ]);
  const widths = [0, 1, 2, 3].map((i) =>
    Math.max(0, ...rows.map((row) => Math.min(row[i]?.length ?? 0, 60))),
  );
  return [
    `paths: ${files.length} (path, owner, level, reviewers, ticket)`,
    ...rows.map((row) => `  ${row.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join('  ')}`.trimEnd()),
  ];
}

function tickets({ counts, sessions }: TicketPlan): string[] {
  const kinds = (Object.keys(FATES) as TicketFate[]).filter((fate) => counts[fate] > 0);
  const by = Object.entries(sessions.byReviewer).map(([name, n]) => `${name} ${n}`);
  const all = sessions.models + sessions.commands;
  return [
    `tickets: ${kinds.map((fate) => `${counts[fate]} ${FATES[fate]}`).join('; ') || 'none'}`,
    `sessions: ${all === 0 ? 'none' : `${all}, of models ${sessions.models}, of commands ${sessions.commands} (${by.join(', ')})`}; retries, fallbacks and further rounds come on top`,
  ];
}

const treated = ({ level, reviewers, ownership }: Treatment) =>
  `${level}, ${reviewers.join(' and ') || 'nobody'}, ${ownership}`;
