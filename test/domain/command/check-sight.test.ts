/** Case 38: what `/status` says of the rule and of checks of our name. */
import { describe, expect, it } from 'vitest';
import { type CheckSight, checkWarnings } from '../../../app/domain/command/check-sight.ts';
import { parseComment } from '../../../app/domain/command.ts';

const sight = (more: Partial<CheckSight> = {}): CheckSight => ({
  name: 'countersign',
  appId: '7',
  boundTo: '7',
  foreign: [],
  ...more,
});
const said = (more: Partial<CheckSight>) => checkWarnings(sight(more)).map((one) => one.text);

describe('case 38: /status', () => {
  it('is silent where the rule is bound to this App or none asks, and nobody else bears the name', () => {
    expect(said({})).toEqual([]);
    expect(said({ boundTo: 'no_rule' })).toEqual([]);
  });

  it('names a rule that believes everybody, or another App', () => {
    expect(said({ boundTo: 'any' })).toEqual([expect.stringMatching(/not bound to this App\*\* \(id 7\)/)]);
    expect(said({ boundTo: '15368' })).toEqual([
      expect.stringMatching(/believes another App\*\* \(id 15368, ours is 7\)/),
    ]);
  });

  it('counts checks of our name that are not ours, and repeats no text of theirs', () => {
    expect(said({ foreign: ['success'] })).toEqual([
      expect.stringMatching(/1 check of that name .* is not ours\*\* \(success\)/),
    ]);
    const many = said({ foreign: Array.from({ length: 9 }, () => 'success') });
    expect(many[0]).toContain('9 checks');
    expect(parseComment(many.join('\n'), { prefix: '', mention: 'countersign' })).toEqual({
      commands: [],
      nearMisses: [],
    });
  });
});
