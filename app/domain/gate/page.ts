/** docs/gate.md, made of the table of reasons (GAT-2, GAT-3): its test holds the page to this text. */
import { COMMANDS } from '../command/table.ts';
import { laterKeys } from '../policy/later.ts';
import { conclude, DEFAULT_DEADLINE_MS } from './decide.ts';
import { OUTAGES } from './next.ts';
import { isOverridable } from './override.ts';
import { BY_A_PERSON, CLASSES, REASONS, type ReasonClass, type ReasonCode } from './reason.ts';
import { STILL } from './still.ts';

/** Reasons of what this version refuses: a policy key that is a matter of time, a command that is not available. */
const LATER = [
  ...(isLater('review.rounds') ? ['rounds_exhausted'] : []),
  ...(isLater('budget') ? ['budget'] : []),
  ...(COMMANDS.pause.available ? [] : ['paused']),
  ...(COMMANDS.stop.available ? [] : ['stopped']),
];

const CODES = Object.keys(REASONS) as ReasonCode[];

/** What each class means to who reads it. */
const MEANS: Readonly<Record<ReasonClass, string>> = {
  broken: 'something does not hold together, and has to be mended before anything else counts',
  held: 'nothing moves by itself: somebody has to let it go on',
  machine: 'work is under way, and ends by itself until its deadline',
  wrong: 'what was found, or what is missing, has to be put right',
  person: 'a person who made none of it has to look',
};

/** The whole page, ending in a line end. */
export function gatePage(): string {
  return [
    '# The gate',
    '',
    '<!-- Made from the tables in app/domain/gate: change them there, then run npx vitest run test/domain/gate/page.test.ts -u. -->',
    '',
    'The check `countersign` is decided by a pure function of the verified rows of a run, the policy of its base branch, and',
    'facts that are recorded with the verdict. The same rows, facts and time give the same verdict, in the server, in',
    '`countersign simulate` and for whoever verifies later.',
    '',
    '## Verdict',
    '',
    'Each reason has one class, and the first class that is present decides:',
    '',
    '| Class | Check run | What it means |',
    '|---|---|---|',
    ...CLASSES.map(
      (name) => `| ${name} | \`${conclude([{ class: name, past: false }])}\` | ${MEANS[name]} |`,
    ),
    `| none | \`${conclude([])}\` | every changed path is counted on this head, and the rows verify |`,
    '',
    `- A machine reason past its deadline is a \`${conclude([{ class: 'machine', past: true }])}\`. The deadline is \`gate.deadline\`, ${DEFAULT_DEADLINE_MS / 3_600_000} hours by default,`,
    '  counted from the arrival of the head, its consent, or the last rerun; a merge group has its queue’s.',
    '- A finding blocks when it is open or answered, grounded, and at or above `gate.block_at`; milder ones are shown.',
    '- A draft is `queued`. The check is never `neutral` or `skipped`, which GitHub counts as passed.',
    '- With `mode: advisory` the same is reported as `countersign (advisory)`, which satisfies no rule.',
    `- Under ${words(CODES.filter((code) => STILL.has(code)))} nothing moves, so \`reviews_pending\` and \`verify_pending\` are not`,
    '  said beside them.',
    '',
    '## Reasons',
    '',
    'In the order in which they are listed. Who "made none of it" is neither author of the pull request, nor author,',
    'committer or pusher of a commit that changes what is concerned. Where a person with `write` is named for an approval,',
    '`people.approve` may ask for more.',
    '',
    '| Reason | Class | What it means | What clears it | Who may |',
    '|---|---|---|---|---|',
    ...CODES.map((code) => {
      const { class: of, what, clears, who } = REASONS[code];
      const clear =
        OUTAGES.has(code) || code === 'ticket_unavailable' ? `${clears}; or, see below, by a person` : clears;
      return `| \`${code}\` | ${of ?? 'that of what holds the other'} | ${cell(what)} | ${cell(clear)} | ${cell(who)} |`;
    }),
    '',
    ...(LATER.length === 0
      ? []
      : [`Of these no run has one yet, since what would give it comes later: ${words(LATER)}.`, '']),
    '## Files that nobody could read',
    '',
    `After \`gate.patience\`, where \`review.on_unavailable\` is \`human\`, a person may answer for files that no reviewer`,
    `could read: ${BY_A_PERSON}.`,
    '',
    '## Override',
    '',
    `\`/override REASON\`, where \`people.override\` lets somebody, holds for one head and is shown as what it is. It takes away`,
    'every reason but these, and no finding that is critical:',
    `${words(CODES.filter((code) => !isOverridable({ code, class: REASONS[code].class ?? 'wrong' })))}.`,
    '',
  ].join('\n');
}

function isLater(path: string): boolean {
  return laterKeys.some((one) => one.path === path && one.values === undefined);
}

function words(codes: readonly string[]): string {
  return codes.map((code) => `\`${code}\``).join(', ');
}

const cell = (text: string) => text.replaceAll('|', '\\|');
