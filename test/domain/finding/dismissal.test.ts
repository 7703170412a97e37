import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  type DismissalAsk,
  type GivenDismissal,
  holdsAtTheBar,
  judgeDismissal,
  peopleBehind,
  peopleNeeded,
  staysDismissed,
} from '../../../app/domain/finding/dismissal.ts';
import { SEVERITIES } from '../../../app/domain/review.ts';

const ask = (
  more: Partial<DismissalAsk> & { severity?: (typeof SEVERITIES)[number] } = {},
): DismissalAsk => ({
  finding: { severity: more.severity ?? 'high', dismissals: [] },
  actor: 'mara',
  permission: 'write',
  author: false,
  outside: true,
  solo: false,
  blockAt: 'high',
  least: 'write',
  ...more,
});
const by = (
  actor: string,
  severity: GivenDismissal['severity'] = 'critical',
  self = false,
): GivenDismissal => ({ actor, severity, self });

describe('FND-2: who may dismiss what', () => {
  test.each<[string, DismissalAsk, ReturnType<typeof judgeDismissal>]>([
    ['write without a part in it', ask(), { people: 1, needed: 1, self: false }],
    ['triage', ask({ permission: 'triage' }), { refused: 'permission' }],
    ['write where the policy asks maintain', ask({ least: 'maintain' }), { refused: 'permission' }],
    ['its author', ask({ author: true, outside: false }), { refused: 'own_work' }],
    [
      'its author, the only one with write',
      ask({ author: true, outside: false, solo: true }),
      { people: 1, needed: 1, self: true },
    ],
    ['a committer of the path', ask({ outside: false }), { refused: 'own_work' }],
    [
      'its author without write, below the bar',
      ask({ severity: 'medium', author: true, outside: false, permission: 'read' }),
      { people: 1, needed: 1, self: true },
    ],
    ['a stranger below the bar', ask({ severity: 'low', permission: 'read' }), { refused: 'permission' }],
    ['the first at critical', ask({ severity: 'critical' }), { people: 1, needed: 2, self: false }],
    [
      'the second at critical',
      ask({ finding: { severity: 'critical', dismissals: [by('max')] } }),
      { people: 2, needed: 2, self: false },
    ],
    [
      'the same twice at critical',
      ask({ finding: { severity: 'critical', dismissals: [by('mara')] } }),
      { refused: 'twice' },
    ],
    [
      'the second, the first having seen it as high',
      ask({ finding: { severity: 'critical', dismissals: [by('max', 'high')] } }),
      { people: 1, needed: 2, self: false },
    ],
    [
      'the second, the first being its author',
      ask({ finding: { severity: 'critical', dismissals: [by('alice', 'critical', true)] } }),
      { people: 1, needed: 2, self: false },
    ],
  ])('%s', (_, given, answer) => expect(judgeDismissal(given)).toEqual(answer));

  test('lottery: a dismissal never covers what is worse, and never the author alone at the bar', () => {
    const dismissal = fc.record({
      actor: fc.constantFrom('a', 'b', 'c'),
      severity: fc.constantFrom(...SEVERITIES),
      self: fc.boolean(),
    });
    fc.assert(
      fc.property(
        fc.array(dismissal, { minLength: 1 }),
        fc.constantFrom(...SEVERITIES),
        (given, severity) => {
          const rank = SEVERITIES.indexOf(severity);
          const people = new Set(
            given.filter((one) => SEVERITIES.indexOf(one.severity) <= rank).map((one) => one.actor),
          );
          expect(new Set(peopleBehind(given, severity))).toEqual(people);
          expect(staysDismissed(given, severity)).toBe(people.size >= peopleNeeded(severity));
          if (given.every((one) => one.self)) expect(holdsAtTheBar(given, severity)).toBe(false);
          if (holdsAtTheBar(given, severity)) expect(staysDismissed(given, severity)).toBe(true);
        },
      ),
    );
  });

  test('a dismissal of which the rows name nobody holds', () => {
    for (const severity of SEVERITIES) {
      expect(staysDismissed([], severity)).toBe(true);
      expect(holdsAtTheBar([], severity)).toBe(true);
    }
  });
});
