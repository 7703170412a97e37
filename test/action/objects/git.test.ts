import { describe, expect, test } from 'vitest';
import { parseRawDiff } from '../../../action/objects/diff.ts';
import { gitEnvironment } from '../../../action/objects/git.ts';

const of = {
  home: '/tmp/home',
  path: '/usr/bin',
  remote: 'https://github.example/octo/repo.git',
  token: 'ghs_the_token',
  serverUrl: 'https://github.example',
};

describe('the environment git gets', () => {
  test('AUT-4: the job’s token goes to the GitHub server of the job alone', () => {
    const env = gitEnvironment(of);
    const header = Object.entries(env).find(([, value]) => value.endsWith('.extraheader'));
    expect(header?.[1]).toBe('http.https://github.example/.extraheader');
    const secret = Buffer.from('x-access-token:ghs_the_token').toString('base64');
    expect(Object.values(env)).toContain(`AUTHORIZATION: basic ${secret}`);
    for (const remote of [
      'https://evil.example/octo/repo.git',
      'https://github.example.evil.org/x',
      'file:///x',
    ])
      expect(JSON.stringify(gitEnvironment({ ...of, remote }))).not.toContain(secret);
  });
  test('ACT-4: nothing of the machine is read, nothing is asked, no other transport is spoken', () => {
    expect(gitEnvironment({ ...of, token: '' })).toMatchObject({
      GIT_CONFIG_NOSYSTEM: '1',
      GIT_CONFIG_GLOBAL: '/dev/null',
      GIT_TERMINAL_PROMPT: '0',
      GIT_ALLOW_PROTOCOL: 'https:http:file',
    });
  });
});

describe('the raw diff', () => {
  const [a, b, zero] = ['a'.repeat(40), 'b'.repeat(40), '0'.repeat(40)];
  test('GIT-5, case 19: paths are bytes, absent sides are null', () => {
    const raw = Buffer.concat([
      Buffer.from(`:000000 100644 ${zero} ${a} A\0tab\t"\n.ts\0`),
      Buffer.from(`:100755 000000 ${b} ${zero} D\0`),
      Buffer.from([0xff, 0x2e, 0x74, 0]),
      Buffer.from(`:160000 120000 ${a} ${b} T\0vendor\0`),
    ]);
    expect(parseRawDiff(raw)).toEqual([
      { path: 'tab\t"\n.ts', mode: { base: null, head: '100644' }, blob: { base: null, head: a } },
      { path: { b64: '/y50' }, mode: { base: '100755', head: null }, blob: { base: b, head: null } },
      { path: 'vendor', mode: { base: '160000', head: '120000' }, blob: { base: a, head: b } },
    ]);
    expect(parseRawDiff(Buffer.alloc(0))).toEqual([]);
  });
  test('anything else is refused', () => {
    for (const text of [`:100644 100644 ${a} ${b} M`, `:100644 100644 ${a} ${b} R90\0x\0y\0`, 'x\0y\0'])
      expect(() => parseRawDiff(Buffer.from(text))).toThrow('diff-tree');
  });
});
