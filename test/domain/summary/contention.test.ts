import { describe, expect, it } from 'vitest';
import { decideGate } from '../../../app/domain/gate/decide.ts';
import { foldRows } from '../../../app/domain/run-state/fold.ts';
import { notesPart } from '../../../app/domain/summary/block-notes.ts';
import { contentionPart } from '../../../app/domain/summary/contention.ts';
import { renderReport } from '../../../app/domain/summary/render.ts';
import { makeReport } from '../../../app/domain/summary/report.ts';
import { decided, FactList } from '../../helpers/facts.ts';
import { facts, NOW, policy } from '../../helpers/gate-facts.ts';

const one = (pull: string, ...paths: string[]) => ({
  pull,
  kind: 'touches' as const,
  count: paths.length,
  paths,
});

describe('OWN-3, PUB-7: contention with other pull requests', () => {
  it('OWN-3: names the pull requests with their first paths and how many more', () => {
    expect(contentionPart([]).text).toBe('');
    const { text } = contentionPart([
      one('7', 'a.ts', 'b.ts', 'c.ts', 'd.ts', 'e.ts'),
      { ...one('9', 'z.ts'), kind: 'reserves' },
    ]);
    expect(text).toContain('- Pull request #7 touches `a.ts`, `b.ts`, `c.ts`, 2 more\n');
    expect(text).toContain('- Pull request #9 reserves `z.ts`');
  });

  it('PUB-4, case 35: paths of strangers stay text, and a number is a number', () => {
    const { text } = contentionPart([one('7](http://evil)', 'a`b', '@org/team', '</details>\n# APPROVED')]);
    expect(text).toContain('Pull request ? touches');
    expect(text.split('\n').some((line) => line.startsWith('#'))).toBe(false);
    expect(text).not.toMatch(/(^|[^`\w])@org/);
  });

  it('PUB-7: at most ten lines', () => {
    const many = Array.from({ length: 14 }, (_, i) => one(String(i + 1), 'a.ts'));
    expect(contentionPart(many).text.match(/Pull request #/g)).toHaveLength(10);
    expect(contentionPart(many).text).toContain('… and 4 more lines');
  });
});

describe('BLK-3, BLK-5: what is told of blocks', () => {
  it('BLK-3: notes are told, folded, as text; what the gate holds for is told there', () => {
    expect(notesPart([]).text).toBe('');
    const { text } = notesPart([{ block: 'one', code: 'bad_trailer', detail: 'Level: @all <b>' }]);
    expect(text).toContain('1 note on blocks');
    expect(text).toContain('`one` `bad_trailer` `Level: @all <b>`');
  });

  it('BLK-5: the table says which block waits, and notes stand below it', () => {
    const [a, b] = [decided('a.ts', { block: 'one' }), decided('b.ts', { block: 'two' })];
    const note = { code: 'bad_trailer', detail: 'Level: L9' };
    const list = new FactList()
      .policy()
      .block('one')
      .block('two', { after: ['one'], notes: [note, { code: 'bad_after', detail: 'After: x' }] })
      .head([a, b])
      .allow();
    const state = foldRows(list.rows);
    const decision = decideGate(state, policy, facts(), NOW);
    const report = makeReport(state, decision, new Map(), {
      published: { run: 'r', seq: 1, hash: '0'.repeat(64), note: 'note' },
      places: { run: 'https://cs.test/runs/r', repository: 'https://github.test/acme/shop' },
      shared: [],
      contention: [one('7', 'a.ts')],
    });
    expect(report.blocks.map((line) => [line.id, line.verdict])).toEqual([
      ['one', 'reviewing'],
      ['two', 'waiting'],
    ]);
    expect(report.notes).toEqual([{ block: 'two', ...note }]);
    const text = renderReport(report);
    expect(text).toContain('⏸ waits for another');
    expect(text).toContain('Pull request #7 touches `a.ts`');
    expect(text).toContain('Level: L9');
  });
});
