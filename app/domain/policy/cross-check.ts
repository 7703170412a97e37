/** What one key of a policy says about another (POL-1): names exist, fallbacks end, nothing is doubled. */
import { LIMITS } from '../limits.ts';
import { budgetFaults } from './budget.ts';
import { codeownersNote } from './codeowners.ts';
import { dotted, nearest, type PolicyError } from './explain.ts';
import { poolName, servesReviews } from './pool.ts';
import type { LineOf } from './read-yaml.ts';
import type { ReviewerEntry } from './reviewer.ts';
import type { PolicyFile } from './schema.ts';
import { consensusFaults, isAloneAtL3 } from './witnesses.ts';

/** Something in a valid policy that a person may want to know. */
export interface PolicyNote {
  readonly line: number;
  readonly path: string;
  readonly message: string;
}

/** The errors and notes of a policy that its schema already accepts. */
export function crossCheck(file: PolicyFile, lineOf: LineOf): { errors: PolicyError[]; notes: PolicyNote[] } {
  const errors: PolicyError[] = [];
  const notes: PolicyNote[] = [];
  // a map: names such as toString are on every object
  const reviewers = new Map(Object.entries(file.reviewers));
  const known = [...reviewers.keys()];
  const used = new Set<string>();
  const commands = new Map(Object.entries(file.verify));
  const commandsUsed = new Set<string>();

  const refuse = (path: (string | number)[], message: string, accepted: string) =>
    errors.push({
      code: 'config_invalid',
      line: lineOf(path),
      path: dotted(path),
      message,
      accepted,
    });

  const checkNames = (path: (string | number)[], names: readonly string[]) => {
    names.forEach((name, i) => {
      used.add(name);
      if (!known.includes(name)) {
        const near = nearest(name, known);
        const hint = near === null ? '' : `; did you mean ${near}?`;
        refuse(
          [...path, i],
          `no reviewer is named ${name}${hint}`,
          known.join(', ') || 'a name under reviewers',
        );
      } else if (names.indexOf(name) !== i) {
        refuse([...path, i], `${name} is listed twice`, 'each reviewer once');
      }
    });
  };

  for (const level of ['L1', 'L2', 'L3'] as const) {
    checkNames(['levels', level], file.levels[level] ?? []);
  }
  file.routes.forEach((route, i) => {
    checkNames(['routes', i, 'reviewers'], route.reviewers ?? []);
    const lines = route.when.lines;
    if (lines?.min !== undefined && lines.max !== undefined && lines.min > lines.max) {
      refuse(['routes', i, 'when', 'lines'], 'min is larger than max', 'min at most max');
    }
    (route.verify ?? []).forEach((name, at) => {
      commandsUsed.add(name);
      if (commands.has(name)) return;
      const near = nearest(name, [...commands.keys()]);
      const hint = near === null ? '' : `; did you mean ${near}?`;
      refuse(
        ['routes', i, 'verify', at],
        `no verify command is named ${name}${hint}`,
        [...commands.keys()].join(', ') || 'a name under verify',
      );
    });
    const isPlain = route.level === undefined && route.reviewers === undefined && route.verify === undefined;
    if (isPlain && route.human !== true && route.timeout === LIMITS.sessionTimeoutMs.default) {
      notes.push(note(['routes', i], 'this route changes nothing', lineOf));
    }
  });

  for (const [name, reviewer] of Object.entries(file.reviewers)) {
    if (reviewer.uses === 'command') continue;
    const path = ['reviewers', name, 'fallbacks'];
    checkNames(path, reviewer.fallbacks);
    reviewer.fallbacks.forEach((fallback, i) => {
      if (reviewers.get(fallback)?.uses === 'command') {
        refuse([...path, i], `${fallback} is a command and cannot stand in for a model`, 'a model reviewer');
      }
    });
  }
  for (const cycle of fallbackCycles(reviewers)) {
    const first = cycle[0] ?? '';
    refuse(
      ['reviewers', first, 'fallbacks'],
      `fallbacks go in a circle: ${cycle.join(' → ')}`,
      'fallbacks that end',
    );
  }

  for (const { path, message, accepted } of [
    ...consensusFaults(file, reviewers),
    ...budgetFaults(file.budget, reviewers),
  ])
    refuse(path, message, accepted);
  if (isAloneAtL3(file, reviewers))
    notes.push(
      note(['levels', 'L3'], 'one model at L3: a second, different one would check what it says', lineOf),
    );

  const files = new Set<string>();
  file.pools.forEach((pool, i) => {
    const name = poolName(pool);
    if (files.has(name)) refuse(['pools', i], `${name} is listed twice`, 'each pool once');
    files.add(name);
  });
  if (!file.pools.some(servesReviews))
    refuse(['pools'], 'no pool reviews files', 'a pool that serves review');
  const running = file.pools.flatMap((pool) =>
    pool.kind === 'resident' && pool.serves.includes('verify') ? [pool.name] : [],
  );

  for (const [name, command] of commands) {
    if (command.from === 'pool' && !running.includes(command.pool))
      refuse(
        ['verify', name, 'pool'],
        `no resident pool ${command.pool} serves verify`,
        running.join(', ') || `{kind: resident, name: ${command.pool}, serves: [review, verify]} under pools`,
      );
    if (command.from !== 'pool' && files.has(command.workflow))
      refuse(
        ['verify', name, 'workflow'],
        `${command.workflow} is the workflow of a pool, which runs on the default branch and never runs code of a pull request`,
        'another workflow file, one that runs on pull_request',
      );
    if (!commandsUsed.has(name))
      notes.push(note(['verify', name], `${name} is named by no route, so it holds nothing`, lineOf));
  }

  const levelsOpen = (['L1', 'L2', 'L3'] as const).some((level) => file.levels[level] === undefined);
  if (!levelsOpen) {
    for (const name of known) {
      if (!used.has(name))
        notes.push(note(['reviewers', name], `${name} is used by no level and no route`, lineOf));
    }
  }
  if (known.length === 0)
    notes.push(note(['reviewers'], 'no reviewer: runs wait with setup_incomplete', lineOf));
  notes.push(...patternNotes(file, lineOf));
  errors.sort((a, b) => a.line - b.line);
  return { errors, notes };
}

const MOST_PATTERN_NOTES = 20;

/** Patterns that would mean something else in CODEOWNERS (case 22). */
function patternNotes(file: PolicyFile, lineOf: LineOf): PolicyNote[] {
  const lists: [path: (string | number)[], patterns: readonly string[]][] = [
    [['guard'], file.guard],
    ...(['generated', 'vendored', 'lockfile'] as const).map((name): [string[], readonly string[]] => [
      ['classes', name],
      file.classes[name],
    ]),
    ...file.routes.map((route, i): [(string | number)[], readonly string[]] => [
      ['routes', i, 'when', 'paths'],
      route.when.paths ?? [],
    ]),
    ...Object.entries(file.reviewers).map(([name, reviewer]): [string[], readonly string[]] => [
      ['reviewers', name, 'paths'],
      reviewer.uses === 'command' ? reviewer.paths : [],
    ]),
  ];
  const found = lists.flatMap(([path, patterns]) =>
    patterns.flatMap((pattern, i) => {
      const message = codeownersNote(pattern);
      return message === null ? [] : [note([...path, i], message, lineOf)];
    }),
  );
  return found.slice(0, MOST_PATTERN_NOTES);
}

function note(path: (string | number)[], message: string, lineOf: LineOf): PolicyNote {
  return { line: lineOf(path), path: dotted(path), message };
}

/** Each circle of fallbacks once, from its first reviewer in the order of the file back to it. */
function fallbackCycles(reviewers: ReadonlyMap<string, ReviewerEntry>): string[][] {
  const cycles: string[][] = [];
  const done = new Set<string>();
  const visit = (name: string, trail: readonly string[]) => {
    const seen = trail.indexOf(name);
    if (seen >= 0) {
      cycles.push([...trail.slice(seen), name]);
      return;
    }
    if (done.has(name)) return;
    const reviewer = reviewers.get(name);
    if (reviewer !== undefined && reviewer.uses !== 'command') {
      for (const next of reviewer.fallbacks) visit(next, [...trail, name]);
    }
    done.add(name);
  };
  for (const name of reviewers.keys()) visit(name, []);
  return cycles;
}
