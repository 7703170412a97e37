/**
 * FND-1 as a property: whatever comes in whatever order (reports that forget, answers, dismissals,
 * renames, pushes forth and back), every finding is in one state, and nothing that blocked is lost.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { fingerprint } from '../../../app/domain/finding.ts';
import type { DecidedPath } from '../../../app/domain/ledger/row-fields.ts';
import { pathKey } from '../../../app/domain/path.ts';
import { raisedAgain } from '../../../app/domain/round.ts';
import { carryFindings, comparable, movesOf } from '../../../app/domain/run-state/carry-findings.ts';
import { gaps, isStanding } from '../../../app/domain/run-state/coverage.ts';
import { foldRows } from '../../../app/domain/run-state/fold.ts';
import { knownPaths, settleFindings } from '../../../app/domain/run-state/settle-findings.ts';
import type { RunState } from '../../../app/domain/run-state/state.ts';
import { commit, decided, FactList, sha } from '../../helpers/facts.ts';

/** What each content holds; the first two are similar, as git would say. */
const HOLDS: Readonly<Record<string, readonly string[]>> = { one: ['p', 'q'], more: ['p', 'q'], clean: [] };
const PATHS = ['a.ts', 'b.ts', 'c/a.ts'] as const;
const QUOTES = ['p', 'q'] as const;
const texts = new Map(QUOTES.flatMap((quote) => [quote, `on ${quote}`].map((text) => [sha(text), text])));
const blobOf = (content: string) => sha(content).slice(0, 40);
const contentOf = new Map(Object.keys(HOLDS).map((content) => [blobOf(content), content]));

type Files = Readonly<Record<string, string | null>>;
type Step =
  | { readonly kind: 'push'; readonly files: Files }
  | {
      readonly kind: 'report';
      readonly path: string;
      readonly says: readonly (readonly [string, 'high' | 'low'])[];
      /** How many pushes ago the content was pushed that it is of. */
      readonly ago: number;
    }
  | { readonly kind: 'answer' | 'dismiss'; readonly pick: number };

const push = fc.record({
  kind: fc.constant('push' as const),
  files: fc.record(
    Object.fromEntries(PATHS.map((path) => [path, fc.constantFrom(null, 'one', 'more', 'clean')])),
  ) as fc.Arbitrary<Files>,
});
const reported = fc.record({
  kind: fc.constant('report' as const),
  path: fc.constantFrom(...PATHS),
  ago: fc.constantFrom(0, 0, 0, 1, 2),
  says: fc.uniqueArray(
    fc.tuple(fc.constantFrom(...QUOTES), fc.constantFrom('high' as const, 'low' as const)),
    {
      selector: ([quote]) => quote,
    },
  ),
});
const person = fc.record({
  kind: fc.constantFrom('answer' as const, 'dismiss' as const),
  pick: fc.nat(20),
});
const steps = fc.array(fc.oneof({ weight: 3, arbitrary: push }, { weight: 3, arbitrary: reported }, person), {
  minLength: 1,
  maxLength: 25,
});

class Life {
  readonly list = new FactList().policy();
  heads = 0;
  leases = 0;
  readonly were: (readonly DecidedPath[])[] = [];
  get state(): RunState {
    return foldRows(this.list.rows);
  }

  take(step: Step): void {
    if (step.kind === 'push') this.push(step.files);
    else if (step.kind === 'report') this.report(step.path, step.says, step.ago);
    else this.act(step.kind, step.pick);
  }

  push(wanted: Files): void {
    const before = this.state;
    const files = Object.entries(wanted).flatMap(([path, content]): DecidedPath[] =>
      content === null
        ? []
        : [
            decided(path, {
              status: 'A',
              blob: { base: null, head: blobOf(content) },
              key: sha(path + content),
            }),
          ],
    );
    const head = sha(`head ${++this.heads}`).slice(0, 40);
    const { rows } = this.list;
    const moving = { findings: before.findings, before: before.files, files, known: knownPaths(rows, files) };
    const { gone, came } = comparable(moving);
    const left = [...came];
    const similar = gone.flatMap(({ path, blob }) => {
      const at = left.findIndex((one) => isLike(blob, one.blob));
      return at < 0 ? [] : left.splice(at, 1).map((to) => ({ from: path, to: to.path }));
    });
    const carried = carryFindings(movesOf({ ...moving, similar }), before.findings, texts);
    this.list.head(files, { head });
    this.were.push(files);
    for (const one of carried) this.list.add('finding.carried', { ...one, head });
    const now = this.state.findings;
    const settled = settleFindings(rows, now, files, new Set(carried.map((one) => one.finding)));
    for (const one of settled.ended)
      this.list.add('finding.ended', { ...one, state: 'fixed', head, text: null });
    let next = now.size + 1;
    const anew = settled.anew.map(({ data }) => ({ data: { ...data, finding: next++ } }));
    for (const { data } of [...settled.raised, ...anew]) this.list.add('finding.raised', data);
    this.nothingLost(before);
  }

  /** A reviewer that forgets: of what the content holds it says some, and its silence on new content ends what is gone. */
  report(path: string, says: readonly (readonly [string, 'high' | 'low'])[], ago = 0): void {
    const before = this.state;
    const file =
      ago === 0 ? before.files.get(path) : this.were.at(-1 - ago)?.find((one) => one.path === path);
    if (file == null || file.key === null) return;
    // a result of a head that is over: recorded, and what it raises is ended at once (RUN-4)
    const late = before.files.get(path)?.key !== file.key;
    const holds = holdsOf(file.blob.head);
    const found = says.filter(([quote]) => holds.includes(quote));
    const prints = found.map(([quote]) => printOf(path, quote));
    const from = this.list.rows.length;
    this.list.end(file, { verdict: found.length > 0 ? 'findings' : 'approve', findings: prints });
    let next = before.findings.size + 1;
    const here = [...before.findings.values()].filter((one) => pathKey(one.path) === path);
    for (const [index, [quote, severity]] of found.entries()) {
      const known = here.find((one) => one.fingerprint === prints[index]);
      const worst = raisedAgain(known && { ...known, command: false }, {
        grounded: true,
        severity,
        command: false,
      });
      if (worst === null) continue;
      const number = known?.number ?? next++;
      const stood = known !== undefined && (isStanding(known) || known.state === 'dismissed');
      this.list.finding(number, file, {
        fingerprint: prints[index] ?? '',
        severity: worst,
        title: sha(`on ${quote}`),
        quote: sha(quote),
      });
      if (late && !stood && isStanding(this.state.findings.get(number) ?? { state: 'fixed' }))
        this.list.add('finding.ended', { ...over(number), reason: 'left_the_change' });
    }
    for (const one of late ? [] : here)
      if (isStanding(one) && one.blob !== file.blob.head && !holds.includes(texts.get(one.quote) ?? ''))
        this.list.add('finding.ended', { ...over(one.number), reason: 'gone' });
    const cause = { kind: 'lease', id: `l${++this.leases}`, sha256: null } as const;
    for (const [i, row] of this.list.rows.entries())
      if (i >= from) this.list.rows[i] = { ...row, cause } as (typeof this.list.rows)[number];
  }

  act(kind: 'answer' | 'dismiss', pick: number): void {
    const standing = [...this.state.findings.values()].filter(isStanding);
    const one = standing[pick % Math.max(1, standing.length)];
    if (one === undefined) return;
    const { number, severity } = one;
    this.list.add('human.acted', {
      act: kind,
      head: commit('a'),
      permission: 'write',
      clause: `F${number}`,
      paths: [],
      self: false,
      text: null,
      severity,
    });
    if (kind === 'answer') this.list.add('finding.answered', { finding: number, text: sha('why') });
    else
      this.list.add('finding.ended', {
        finding: number,
        state: 'dismissed',
        reason: 'by_a_person',
        head: commit('a'),
        text: null,
      });
  }

  /** What stood on a path that is gone stands where its content is now, or that on which it was found, or was dismissed there. */
  nothingLost(before: RunState): void {
    const { findings, files } = this.state;
    for (const one of before.findings.values()) {
      const blob = before.files.get(pathKey(one.path))?.blob.head;
      const holds = (to: DecidedPath | undefined) => to?.blob.head === blob || to?.blob.head === one.blob;
      const gone = !files.has(pathKey(one.path)) && [...files.values()].some((to) => to.blob.head === blob);
      // of a content that holds it no more, a review may have said so before
      const held = holdsOf(blob ?? null).includes(texts.get(one.quote) ?? '');
      if (!isStanding(one) || !gone || !held) continue;
      const same = [...findings.values()].filter(
        (other) => other.quote === one.quote && holds(files.get(pathKey(other.path))),
      );
      expect(
        same.some((other) => isStanding(other) || other.state === 'dismissed'),
        `F${one.number}`,
      ).toBe(true);
    }
  }

  /** FND-1: one state each, one number a name, and what a present content is known to hold is on the list. */
  check(): void {
    const { state } = this;
    expect(state.anomalies).toEqual([]);
    expect(gaps(state)).toEqual([]);
    const names = [...state.findings.values()].map((one) => `${pathKey(one.path)} ${one.fingerprint}`);
    expect(new Set(names).size).toBe(names.length);
    expect(state.findingIndex.size).toBe(state.findings.size);
    const said = new Map<string, string>();
    for (const row of this.list.rows) {
      if (row.kind === 'finding.raised') said.set(`${row.data.key} ${row.data.quote}`, row.data.key);
    }
    for (const [word, key] of said) {
      const file = [...state.files.values()].find((one) => one.key === key);
      if (file === undefined) continue;
      const there = [...state.findings.values()].filter(
        (one) => `${key} ${one.quote}` === word && pathKey(one.path) === pathKey(file.path),
      );
      expect(
        there.some((one) => isStanding(one) || one.state === 'dismissed'),
        word,
      ).toBe(true);
    }
  }
}

function holdsOf(blob: string | null): readonly string[] {
  return HOLDS[contentOf.get(blob ?? '') ?? ''] ?? [];
}

function over(finding: number) {
  return { finding, state: 'fixed' as const, head: commit('a'), text: null };
}

function printOf(path: string, quote: string): string {
  return fingerprint({ path, lens: 'correctness', title: `on ${quote}`, quote, ordinal: 0 });
}

function isLike(a: string, b: string): boolean {
  const [one, other] = [contentOf.get(a), contentOf.get(b)];
  return one !== 'clean' && other !== 'clean';
}

describe('FND-1: the life of findings', () => {
  test('FND-1, REV-5: every finding is in one state, and no order of things loses one that blocks', () => {
    fc.assert(
      fc.property(steps, (taken) => {
        const life = new Life();
        life.push({ 'a.ts': 'one', 'b.ts': null, 'c/a.ts': null });
        for (const step of taken) life.take(step);
        life.check();
      }),
      { numRuns: 300 },
    );
  });
});
