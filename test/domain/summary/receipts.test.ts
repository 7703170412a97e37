import { describe, expect, it } from 'vitest';
import { foldRows } from '../../../app/domain/run-state/fold.ts';
import { receiptLines, receiptsPart } from '../../../app/domain/summary/receipts.ts';
import { commit, decided, FactList, HEAD, sha } from '../../helpers/facts.ts';

const reserve = (list: FactList, receipt: string, commands: string[], head = HEAD) =>
  list.add('receipt.reserved', {
    block: 'work',
    receipt,
    commands,
    from: 'action',
    definition: sha(commands.join()),
    head,
  });
const output = { bytes: 0, sha256: sha(''), tail: sha('') };
const told = {
  environment: sha('e'),
  input: sha('i'),
  exit: 0,
  signal: null,
  ms: 5,
  tree: { before: commit('a'), after: commit('b') },
  mutated: ['src/`odd`.ts', '@everyone/[x](y)'],
  mutated_count: 9,
  stdout: output,
  stderr: output,
  found: [],
  missing: [],
  missing_count: 0,
};
const end = (list: FactList, receipt: string, state: 'passed' | 'failed', why: string | null) =>
  list.add('receipt.ended', {
    block: 'work',
    receipt,
    state,
    why,
    job: { workflow_run: '900', attempt: 2, job: '77' },
    conclusion: 'success',
    ms: 65_400,
    ...(why === 'mutated' ? { told } : {}),
  });

describe('PUB-7: the summary lists the receipts of the head', () => {
  it('VER-2: what did not pass first, each with its time and its job at GitHub', () => {
    const list = new FactList()
      .policy()
      .block('work')
      .head([decided('a.ts')]);
    end(reserve(list, 'RCP-001', ['unit']), 'RCP-001', 'passed', null);
    end(reserve(list, 'RCP-002', ['e2e', 'slow']), 'RCP-002', 'failed', 'mutated');
    list.add('receipt.waiting', { block: 'work', receipt: 'RCP-001', why: 'queued' });
    reserve(list, 'RCP-003', ['old'], commit('f'));
    const lines = receiptLines(foldRows(list.rows));
    expect(lines.map(({ id, state, words }) => [id, state, words])).toEqual([
      ['RCP-002', 'failed', 'failed: it changed the tree it ran in'],
      ['RCP-001', 'waiting', 'waiting: its workflow has begun, and its job has not'],
    ]);
    const { text } = receiptsPart(lines, 'https://github.test/acme/shop');
    expect(text).toContain('https://github.test/acme/shop/actions/runs/900/job/77');
    expect(text).toContain('65 s');
    expect(text).toContain('`e2e`, `slow`');
    expect(text).toContain('7 more');
  });

  it('PUB-4: paths of a changed tree are shown as code, whatever they are named', () => {
    const list = new FactList()
      .policy()
      .block('work')
      .head([decided('a.ts')]);
    end(reserve(list, 'RCP-001', ['unit']), 'RCP-001', 'failed', 'mutated');
    const { text } = receiptsPart(receiptLines(foldRows(list.rows)), 'https://github.test/acme/shop');
    expect(text).toContain('``src/`odd`.ts``');
    expect(text).not.toMatch(/[^`]@everyone/);
  });

  it('says nothing where no command is asked for', () => {
    expect(receiptsPart([], 'https://github.test/acme/shop').text).toBe('');
  });
});
