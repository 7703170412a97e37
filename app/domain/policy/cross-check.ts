/** What one key of a policy says about another (POL-1): names exist, fallbacks end, nothing is doubled. */
import { dotted, nearest, type PolicyError } from './explain.ts';
import type { LineOf } from './read-yaml.ts';
import type { ReviewerEntry } from './reviewer.ts';
import type { PolicyFile } from './schema.ts';

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
    if (route.level === undefined && route.reviewers === undefined && route.timeout === 300_000) {
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

  const files = new Set<string>();
  file.pools.forEach((pool, i) => {
    if (files.has(pool.workflow))
      refuse(['pools', i], `${pool.workflow} is listed twice`, 'each workflow file once');
    files.add(pool.workflow);
  });

  const levelsOpen = (['L1', 'L2', 'L3'] as const).some((level) => file.levels[level] === undefined);
  if (!levelsOpen) {
    for (const name of known) {
      if (!used.has(name))
        notes.push(note(['reviewers', name], `${name} is used by no level and no route`, lineOf));
    }
  }
  if (known.length === 0)
    notes.push(note(['reviewers'], 'no reviewer: runs wait with setup_incomplete', lineOf));
  errors.sort((a, b) => a.line - b.line);
  return { errors, notes };
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
