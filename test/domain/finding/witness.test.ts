import { describe, expect, it } from 'vitest';
import { remarksOn } from '../../../app/domain/finding/remark.ts';
import { lacksConsensus, seenBy, witnessesOf } from '../../../app/domain/finding/witness.ts';

const a = { name: 'a', uses: 'openai', model: 'm' };
const alias = { name: 'alias', uses: 'openai', model: 'm' };
const b = { name: 'b', uses: 'openai', model: 'n' };
const c = { name: 'c', uses: 'anthropic', model: 'm' };
const raised = (reviewer: string, ...seen_by: string[]) => ({ reviewer, seen_by });

describe('RND-3: two reviewers of different provider or model', () => {
  it.each([
    ['L3, one of two', 'L3', raised('a'), [a, b], ['a']],
    ['L3, both', 'L3', raised('a', 'b'), [a, b], ['a', 'b']],
    ['L3, both of one model by another name', 'L3', raised('a', 'alias'), [a, alias, c], ['a']],
    ['L3, three of which two are one model', 'L3', raised('c', 'a', 'alias'), [a, alias, c], ['c', 'a']],
    ['L3, a name that did not complete', 'L3', raised('a', 'b'), [a, c], ['a']],
    ['L3, where nobody else could have seen it', 'L3', raised('a', 'alias'), [a, alias], null],
    ['L2', 'L2', raised('a', 'b'), [a, b], null],
    ['L3, of a command', 'L3', raised('lint'), [a, b], null],
  ] as const)('RND-3: %s', (_what, level, finding, complete, witnesses) => {
    expect(seenBy(level, finding, complete)).toEqual(witnesses);
  });

  it('RND-3: witnesses add up over rounds while the finding stands; one that blocked without any goes on', () => {
    const stood = { state: 'open', witnesses: ['a'] };
    expect(witnessesOf(undefined, { witnesses: ['b'] })).toEqual(['b']);
    expect(witnessesOf(stood, { witnesses: ['b'] })).toEqual(['a', 'b']);
    expect(witnessesOf({ ...stood, state: 'fixed' }, { witnesses: ['b'] })).toEqual(['b']);
    expect(witnessesOf({ state: 'open', witnesses: null }, { witnesses: ['b'] })).toBeNull();
    expect(witnessesOf(stood, {})).toBeNull();
  });

  it('RND-3: consensus is missing only where one of two saw it, under a lens that takes both', () => {
    const one = { witnesses: ['a'], lens: 'style' };
    expect(lacksConsensus(one, ['style'])).toBe(true);
    expect(lacksConsensus(one, ['security'])).toBe(false);
    expect(lacksConsensus({ ...one, witnesses: ['a', 'b'] }, ['style'])).toBe(false);
    expect(lacksConsensus({ ...one, witnesses: null }, ['style'])).toBe(false);
  });

  it('RND-1, RND-3: a person is told which it is', () => {
    const plain = { state: 'open', witnesses: null, readBefore: false };
    expect(remarksOn(plain)).toEqual([]);
    expect(remarksOn({ ...plain, witnesses: ['a'] })).toEqual(['single witness']);
    expect(remarksOn({ ...plain, witnesses: ['a', 'b'] })).toEqual(['seen by 2 reviewers']);
    expect(remarksOn({ ...plain, readBefore: true })).toEqual([
      'new on content that was read before: does not block',
    ]);
  });
});
