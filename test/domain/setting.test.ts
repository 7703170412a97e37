import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parsePolicy, STARTER_POLICY } from '../../app/domain/policy.ts';
import { holdPolicy } from '../../app/domain/setting/hold.ts';
import { POLICY_SETTINGS, readSettingKey, readSettingValue, slotsOf } from '../../app/domain/setting/key.ts';

const LINT = `version: 1
reviewers:
  lint: {uses: command, run: [lint, "{path}"], output: sarif, paths: ["**"], trusted: true}
`;
const held = (file: string, settings: Record<string, unknown>) => {
  const found = holdPolicy(
    Buffer.from(file),
    new Map(Object.entries(settings).map(([key, value]) => [`policy.${key}`, value])),
  );
  const reading = parsePolicy(found.bytes);
  if (!reading.ok) throw new Error(JSON.stringify(reading.errors));
  return { ...found, policy: reading.policy, keys: found.held.map(({ key, why }) => `${key} ${why}`) };
};

describe('POL-2: keys and values of settings', () => {
  test('an unknown key names the nearest, and says what there is', () => {
    for (const [text, near] of [
      ['kil', 'kill'],
      ['slot', 'slots'],
      ['ceiling.token', 'ceiling.tokens'],
      ['policy.gate.blok_at', 'policy.gate.block_at'],
    ] as const)
      expect(() => readSettingKey(text)).toThrow(`did you mean ${near}?`);
    expect(() => readSettingKey('policy.reviewers')).toThrow('there is no setting');
    expect(readSettingKey('slots.openai@llm.example.com:8443')).toBe('slots.openai@llm.example.com:8443');
  });

  test('values are checked by what the policy takes, and refused with what is accepted', () => {
    expect(readSettingValue('slots', '16')).toBe(16);
    expect(readSettingValue('policy.gate.patience', '1h')).toBe('1h');
    expect(readSettingValue('policy.people.solo', 'false')).toBe(false);
    expect(readSettingValue('policy.guard', '["infra/"]')).toEqual(['infra/']);
    for (const [key, text, accepted] of [
      ['slots.openai', '0', 'at least 1'],
      ['slots', '1025', 'at most 1024'],
      ['kill', 'off', 'settings unset kill'],
      ['ceiling.usd', '-1', 'above 0'],
      ['policy.gate.block_at', 'severe', 'critical, high, medium, low, info'],
      ['policy.gate.patience', 'soon', 'a duration'],
    ] as const) {
      let refusal: unknown;
      try {
        readSettingValue(key, text);
      } catch (error) {
        refusal = error;
      }
      expect(refusal, `${key} ${text}`).toMatchObject({
        code: 'bad_request',
        accepted: expect.stringContaining(accepted),
      });
    }
  });

  test('every key of a policy that can be set takes its own default', () => {
    const policy = parsePolicy(Buffer.from(STARTER_POLICY));
    expect(policy.ok).toBe(true);
    expect(POLICY_SETTINGS).toContain('allow.authors');
    expect(POLICY_SETTINGS).toContain('budget.month.tokens');
    expect(POLICY_SETTINGS.filter((key) => key.includes('*') || key.startsWith('reviewers'))).toEqual([]);
  });

  test('a provider has its own slots, else those of all, else four', () => {
    const of = (values: Record<string, number>) =>
      slotsOf(new Map(Object.entries(values).map(([key, value]) => [key, { value }])), 'openai');
    expect([of({}), of({ slots: 9 }), of({ slots: 9, 'slots.openai': 2 })]).toEqual([4, 9, 2]);
  });
});

describe('POL-2: a policy may only be stricter than the settings', () => {
  test('what it leaves out it has from them, also where that is laxer than the default', () => {
    const found = held(LINT, { 'gate.block_at': 'critical', 'people.approve': 'maintain', mode: 'enforce' });
    expect(found.policy.gate.block_at).toBe('critical');
    expect(found.policy.people.approve).toBe('maintain');
    expect(found.keys).toEqual(['gate.block_at left_out', 'people.approve left_out']);
  });

  test('what is laxer counts as they say, what is stricter stands', () => {
    const file = `${LINT}mode: advisory
gate: {block_at: critical, patience: 5m, allow_unreviewed: [generated, vendored]}
people: {approve: admin, override: maintain, solo: true}
review: {parallel: 16, reuse: on, max_lines: 100}
budget: {run: {sessions: 10}}
guard: [infra/]
allow: {authors: [1, 2]}
`;
    const found = held(file, {
      mode: 'enforce',
      'gate.block_at': 'high',
      'gate.patience': '1h',
      'gate.allow_unreviewed': ['generated'],
      'people.approve': 'maintain',
      'people.override': 'none',
      'people.solo': false,
      'review.parallel': 4,
      'review.max_lines': 3000,
      'budget.run.sessions': 50,
      'budget.run.tokens': 1000,
      guard: ['secrets/'],
      'allow.authors': [2, 3],
    });
    expect(found.policy).toMatchObject({
      mode: 'enforce',
      gate: { block_at: 'high', patience: 3_600_000, allow_unreviewed: ['generated'] },
      people: { approve: 'admin', override: 'none', solo: false },
      review: { parallel: 4, max_lines: 100 },
      budget: { run: { sessions: 10, tokens: 1000 } },
      guard: ['infra/', 'secrets/'],
      allow: { authors: ['2'] },
    });
    expect(found.keys).toContain('budget.run.tokens left_out');
    expect(found.keys).not.toContain('people.approve laxer');
    expect(found.bytes.toString()).toMatch(
      /^# [0-9a-f]{64} with the settings of the installation: allow\.authors, /,
    );
  });

  test('a setting without an order is a default and no more; nothing changed is the file itself', () => {
    const file = `${LINT}publish: {annotations: 10}\n`;
    const found = held(file, { 'publish.annotations': 100, 'publish.blocks': 'auto' });
    expect(found.bytes.toString()).toBe(file);
    expect(found.held).toEqual([]);
  });

  test('a file that is no policy stays as it is, and is refused as such', () => {
    const file = Buffer.from('version: 1\ngaet: {}\n');
    expect(holdPolicy(file, new Map([['policy.mode', 'enforce']])).bytes).toEqual(file);
  });

  test('held twice is held once, and never laxer than either', () => {
    const at = ['critical', 'high', 'medium', 'low', 'info'];
    fc.assert(
      fc.property(
        fc.constantFrom(...at),
        fc.constantFrom(...at),
        fc.integer({ min: 1, max: 16 }),
        fc.integer({ min: 1, max: 16 }),
        (own, set, mine, most) => {
          const settings = { 'gate.block_at': set, 'review.parallel': most };
          const file = `${LINT}gate: {block_at: ${own}}\nreview: {parallel: ${mine}}\n`;
          const found = held(file, settings);
          expect(at.indexOf(found.policy.gate.block_at)).toBe(Math.max(at.indexOf(own), at.indexOf(set)));
          expect(found.policy.review.parallel).toBe(Math.min(mine, most));
          expect(held(found.bytes.toString(), settings).held).toEqual([]);
        },
      ),
      { numRuns: 40 },
    );
  });
});
