/** The numbers of OPS-10: the table says what the rule says, the page is the table, and code has no twins of it. */
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { DEFAULT_DEADLINE_MS } from '../../app/domain/gate/decide.ts';
import { limitsPage } from '../../app/domain/limits/page.ts';
import { doubled, LIMITS, type Limit } from '../../app/domain/limits.ts';
import { parsePolicy } from '../../app/domain/policy.ts';
import { GIT_LIMITS } from '../../app/github/git/command.ts';

const MINUTE = 60_000;
const MIB = 1_048_576;

/** The words of the rule, in its order. */
const RULE = {
  leaseMs: 5 * MINUTE,
  heartbeatMs: 30_000,
  loginMs: 10 * MINUTE,
  runnerFreshMs: MINUTE,
  sessionTimeoutMs: 300_000,
  lostGrants: 3,
  idleMs: 20_000,
  actionParallel: 4,
  dispatchMs: 10 * MINUTE,
  missedDispatches: 2,
  gateDeadlineMs: 360 * MINUTE,
  waitMs: 55_000,
  answerBytes: 8 * MIB,
  publishIntervalMs: 5_000,
  gitFetchMs: 120_000,
  gitFetchBytes: 2_048 * MIB,
  reconcileMs: 5 * MINUTE,
  sweepMs: 10_000,
  deliveryBytes: 25 * MIB,
  submitBytes: MIB,
  restMs: 30_000,
  jobAttempts: 25,
  settledMinMs: 5 * MINUTE,
  settledMaxMs: 60 * MINUTE,
  deliveryDays: 30,
} as const;

const sources = ['app', 'action', 'db'].flatMap((root) =>
  readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !name.startsWith('dist'))
    .map((name) => `${root}/${name}`),
);

describe('the numbers', () => {
  it('OPS-10: are those of the rule, each within its bounds', () => {
    const defaults = Object.fromEntries(Object.entries(LIMITS).map(([name, { default: n }]) => [name, n]));
    expect(defaults).toMatchObject(RULE);
    expect(LIMITS.sessionTimeoutMs).toMatchObject({ min: 30_000, max: 3_600_000 });
    for (const [name, limit] of Object.entries<Limit>(LIMITS)) {
      expect(limit.min, name).toBeLessThanOrEqual(limit.default);
      expect(limit.max, name).toBeGreaterThanOrEqual(limit.default);
    }
  });

  it('OPS-10: docs/limits.md is the table; run with -u it writes it', async () => {
    await expect(limitsPage()).toMatchFileSnapshot('../../docs/limits.md');
  });

  it('OPS-10: each is used by code, so that the table says what is so', () => {
    const code = sources
      .filter((file) => file !== 'app/domain/limits.ts')
      .map((file) => readFileSync(file, 'utf8'))
      .join('\n');
    const unused = Object.keys(LIMITS).filter((name) => !new RegExp(`\\bLIMITS\\.${name}\\b`).test(code));
    expect(unused).toEqual([]);
  });

  it('OPS-10: what a file of another language says once more is the same', () => {
    const { inputs } = parse(readFileSync('action.yml', 'utf8')) as {
      inputs: Record<string, { default?: string }>;
    };
    expect(inputs['idle_ms']?.default).toBe(String(LIMITS.idleMs.default));
    expect(inputs['parallel']?.default).toBe(String(LIMITS.actionParallel.default));
    const of = (text: string) => {
      const reading = parsePolicy(
        Buffer.from(
          `version: 1\nreviewers: {a: {uses: command, run: [a, "{path}"], output: sarif, paths: ["**"], trusted: true}}\n${text}`,
        ),
      );
      return reading.ok ? reading.policy : null;
    };
    const policy = of('routes: [{when: {paths: ["a"]}, level: L2}]\n');
    expect(policy?.gate.deadline).toBe(LIMITS.gateDeadlineMs.default);
    expect(policy?.review.parallel).toBe(LIMITS.runParallel.default);
    expect(policy?.routes[0]?.timeout).toBe(LIMITS.sessionTimeoutMs.default);
    const timeout = (ms: number) =>
      of(`routes: [{when: {paths: ["a"]}, level: L2, timeout: ${ms / 1000}s}]\n`)?.routes[0]?.timeout;
    const deadline = (ms: number) => of(`gate: {deadline: ${ms / 1000}s}\n`)?.gate.deadline;
    for (const [read, { min, max }] of [
      [timeout, LIMITS.sessionTimeoutMs],
      [deadline, LIMITS.gateDeadlineMs],
    ] as const) {
      expect([read(min), read(max)]).toEqual([min, max]);
      expect([read(min - 1000), read(max + 1000)]).toEqual([undefined, undefined]);
    }
    expect(DEFAULT_DEADLINE_MS).toBe(policy?.gate.deadline);
    expect(GIT_LIMITS).toMatchObject({ fetchMs: RULE.gitFetchMs, bytes: RULE.gitFetchBytes });
  });

  it('TKT-2: a wait doubles up to its longest, for any number of times', () => {
    expect([0, 1, 2, 3, 99, -1].map((n) => doubled(5, 30, n))).toEqual([5, 10, 20, 30, 30, 5]);
  });
});
