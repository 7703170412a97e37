import { describe, expect, test } from 'vitest';
import { DEFAULT_PEOPLE } from '../../../app/domain/people/rules.ts';
import { foldRows } from '../../../app/domain/run-state/fold.ts';
import { clauseLines, peoplePart, personLines } from '../../../app/domain/summary/people.ts';
import { titleOf } from '../../../app/domain/summary/title.ts';
import { FactList, sha } from '../../helpers/facts.ts';
import { a, b, HOUR, judge, NOW, policy } from '../../helpers/gate-facts.ts';

const texts = new Map([
  [sha('looks right'), 'Looks right, <!-- really -->'],
  [sha('reason'), 'Hotfix for @everyone'],
]);
const list = () =>
  new FactList()
    .policy()
    .block('work', { accept_human: [sha('looks right')] })
    .block('other')
    .made()
    .head([a, b])
    .allow();
const lenient = { ...policy, people: { ...DEFAULT_PEOPLE, override: 'maintain' as const } };

describe('what people did, as people read it', () => {
  test('GAT-7: an override is a state of its own in title and summary', () => {
    const rows = list().act({ act: 'override', permission: 'maintain' });
    const decision = judge(rows, {}, NOW, lenient);
    expect(titleOf(decision)).toBe('Overridden by a person: reviews_pending, human_check');
    const state = foldRows(rows.rows);
    const part = peoplePart(personLines(state, decision, texts), clauseLines(state, texts)).text;
    expect(part).toMatch(
      /Account `2` \(maintain\) overrode `reviews_pending`, `human_check`, row \d+: Hotfix/,
    );
    expect(part).toContain('`work/1` asks a person: Looks right');
    expect(part).not.toContain('<!--');
    expect(part).not.toMatch(/(^|\s)@everyone/);
  });

  test('POOL-3: files that a person answered for unread are counted in the title', () => {
    const rows = list().end(a);
    rows.at = new Date(NOW + HOUR).toISOString();
    rows.act({ clause: 'ticket_unavailable,human_check' });
    const decision = judge(rows, {}, NOW + HOUR);
    expect(decision.conclusion).toBe('success');
    expect(titleOf(decision)).toBe(
      'Passed: 1 file reviewed, 1 unread and approved by a person, nothing blocks',
    );
  });

  test('GAT-6: own work and erased words are said; nothing to say is no heading', () => {
    const rows = list().end(a).end(b).act({ by: '1', clause: 'human_check', solo: true, self: true });
    const decision = judge(rows, {}, NOW, { ...policy, people: { ...DEFAULT_PEOPLE, solo: true } });
    const state = foldRows(rows.rows);
    const part = peoplePart(personLines(state, decision, new Map()), clauseLines(state, new Map())).text;
    expect(part).toContain('(write, their own work) approved `human_check`');
    expect(part).toContain('text erased');
    expect(peoplePart([], []).text).toBe('');
  });
});
