/** What the check `countersign (preview)` says (RUN-9): valid or not and where, and what would be decided. */
import { PREVIEW_NAME } from '../check.ts';
import type { GateDecision } from '../gate/decide.ts';
import { type GateReason, REASONS } from '../gate/reason.ts';
import { showPath } from '../path.ts';
import type { PolicyError } from '../policy/explain.ts';
import { POLICY_PATH } from '../policy.ts';
import type { Preview, Treatment } from '../preview.ts';
import { Markdown, md } from './markdown.ts';
import { LIMIT_BYTES } from './render.ts';
import { capital, count, titleOf } from './title.ts';

/** A check run's words: its conclusion is about validity alone. */
export interface PreviewText {
  readonly conclusion: 'success' | 'failure';
  readonly title: string;
  readonly summary: string;
}

/** Most paths and reasons a table shows. */
const MOST = 50;

/** A policy that is not valid: every fault by its line. */
export function invalidPreview(errors: readonly PolicyError[], baseRef: string): PreviewText {
  const [first] = errors;
  const rows = errors.map((error) => [
    md`${error.line}`,
    error.path === '' ? md`the file` : Markdown.code(error.path),
    md`${error.message}`,
    md`${error.accepted}`,
  ]);
  // what is wrong may quote the file: the title is shown as it is, the summary neutralises
  return text(
    'failure',
    `Not valid: ${count(errors.length, 'fault')}, the first at line ${first?.line ?? 1}`,
    [
      md`${Markdown.code(POLICY_PATH)} of this head is not valid. Merged like this, every pull request to ${Markdown.code(baseRef)} would be held.`,
      Markdown.table(['Line', 'Key', 'What is wrong', 'Accepted'], rows),
      foot,
    ],
  );
}

/** A policy that is valid: what it would decide here, beside what stands. */
export function validPreview(preview: Preview, notes: readonly string[], baseRef: string): PreviewText {
  const { decision, difference } = preview;
  const would = md`Merged to ${Markdown.code(baseRef)}, it would decide for this pull request: **${raw(verdict(decision))}** (${titleOf(decision)}).`;
  const stands =
    difference === null
      ? md`No valid policy is on ${Markdown.code(baseRef)} now, so there is nothing to compare with.`
      : md`Under the policy on ${Markdown.code(baseRef)} it is now: **${raw(verdict(difference.decision))}** (${titleOf(difference.decision)}).`;
  return text('success', `Valid: would be ${verdict(decision)} here: ${titleOf(decision)}`, [
    md`${Markdown.code(POLICY_PATH)} of this head is valid.`,
    would,
    stands,
    ...(difference === null ? [reasons('Reasons there would be', decision.reasons)] : compared(difference)),
    ...(difference === null ? [paths(preview.after)] : []),
    notes.length === 0
      ? md``
      : Markdown.join(
          [
            md`#### Notes`,
            Markdown.join(
              notes.map((note) => md`- ${note}`),
              '\n',
            ),
          ],
          '\n\n',
        ),
    foot,
  ]);
}

function compared({ come, go, paths: changed }: NonNullable<Preview['difference']>): Markdown[] {
  if (come.length + go.length + changed.length === 0)
    return [md`No reason comes or goes, and every path keeps its level, its reviewers and its owner.`];
  const table = Markdown.table(
    ['Path', 'Level', 'Reviewers', 'Ownership'],
    changed
      .slice(0, MOST)
      .map(({ path, before, after }) => [
        Markdown.code(showPath(path)),
        moved(before.level, after.level),
        moved(readers(before), readers(after)),
        moved(before.ownership, after.ownership),
      ]),
  );
  const listed =
    changed.length === 0 ? [] : [md`#### Paths that would be treated otherwise`, table, rest(changed.length)];
  return [reasons('Reasons that would come', come), reasons('Reasons that would go', go), ...listed];
}

function paths(all: Preview['after']): Markdown {
  if (all.length === 0) return md``;
  const table = Markdown.table(
    ['Path', 'Level', 'Reviewers', 'Ownership'],
    all
      .slice(0, MOST)
      .map(({ path, treatment }) => [
        Markdown.code(showPath(path)),
        md`${treatment.level}`,
        md`${readers(treatment)}`,
        md`${treatment.ownership}`,
      ]),
  );
  return Markdown.join([md`#### Paths`, table, rest(all.length)], '\n\n');
}

function reasons(heading: string, list: readonly GateReason[]): Markdown {
  if (list.length === 0) return md``;
  const table = Markdown.table(
    ['Reason', 'Concerns'],
    list.map((reason) => [
      md`${Markdown.code(reason.code)} ${capital(REASONS[reason.code].what)}`,
      md`${reason.detail ?? count(reason.count, 'item')}`,
    ]),
  );
  return Markdown.join([md`#### ${raw(heading)}`, table], '\n\n');
}

const readers = (treatment: Treatment) =>
  treatment.reviewers.length === 0 ? 'nobody' : treatment.reviewers.join(', ');
const moved = (before: string, after: string) =>
  before === after ? md`${before}` : md`${before} → ${after}`;
const rest = (all: number) => (all > MOST ? md`${all - MOST} more.` : md``);
const verdict = (decision: GateDecision) => decision.conclusion.replace('_', ' ');
const foot = md`${Markdown.code(PREVIEW_NAME)} says whether the policy file is valid, never whether the pull request may merge: until it is merged, the policy of the base branch decides.`;

function text(conclusion: PreviewText['conclusion'], title: string, parts: readonly Markdown[]): PreviewText {
  const summary = Markdown.join(parts, '\n\n').cut(LIMIT_BYTES, md`… the rest is cut.`).text;
  return { conclusion, title: oneLine(title), summary };
}

/** A title is plain text: GitHub shows it as it is. */
function oneLine(title: string): string {
  return title
    .replaceAll(/[\p{Cc}\p{Cf}\u2028\u2029]+/gu, ' ')
    .slice(0, 120)
    .toWellFormed();
}

/** Words of this folder. */
function raw(text: string): Markdown {
  return Markdown.md([text] as unknown as TemplateStringsArray);
}
