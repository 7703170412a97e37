import { execFileSync } from 'node:child_process';
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest';
import { LIMITS } from '../../app/domain/limits.ts';
import { innerHash } from '../../app/domain/redact/keyed.ts';
import type { LeasedTicket, ReviewerSpec, TicketResult } from '../../app/protocol/runner.ts';
import { makeRepository, startAction } from './harness.ts';
import { makeTicket, type ProtocolServer, SALT, startProtocolServer } from './server.ts';

type Command = NonNullable<ReviewerSpec['command']>;
const command = (name: string, more: Partial<Command> & Pick<Command, 'run'>): ReviewerSpec => ({
  name,
  uses: 'command',
  lenses: ['maintainability'],
  command: {
    output: 'sarif',
    paths: ['**'],
    ok_exit: [0, 1],
    deletions: false,
    config: [],
    severity: { error: 'high', warning: 'medium', note: 'low' },
    ...more,
  },
});
/** A reviewer that is a script in JavaScript: `file` is its path, `say(document)` prints. */
const script = (code: string, more: Partial<Command> = {}): ReviewerSpec =>
  command('script', {
    run: [
      process.execPath,
      '-e',
      `const fs = require('node:fs'), file = process.argv[1]; const say = (d) => process.stdout.write(JSON.stringify(d)); ${code}`,
      '--',
      '{path}',
    ],
    output: 'countersign',
    ...more,
  });
const finding = (more = {}) => ({
  start_line: 1,
  severity: 'medium',
  title: 'A title',
  body: 'A body',
  ...more,
});
const AWS = 'AKIAQWERTYUIOPASDFGH';
const token = 'ghp_abcdefghijABCDEFGHIJ0123456789abcdef';

const repository = makeRepository(
  {
    'biome.json': '{"linter":{"enabled":true}}',
    '.secretlintrc.json': '{"rules":[{"id":"@secretlint/secretlint-rule-preset-recommend"}]}',
    'ignore.json': '{"files":{"includes":["**","!src"]}}',
    'gone.ts': 'debugger;\n',
    'ok.ts': 'export const ok = 0;\n',
  },
  {
    'gone.ts': null,
    'biome.json': '{"linter":{"enabled":false}}',
    'ok.ts': 'export const ok = 1;\n',
    'src/bad.ts': 'const a = 1;\r\nif (a == 2) {\r\n  debugger;\r\n}\r\n',
    'secret.env': `first line\nKEY=${token}\nlast line\n`,
    '-n.txt': 'a dash\n',
    'a b/c d.md': 'spaces\n',
    'naïve.ts': 'export {};\n',
    'tab\t🐧".sh': 'echo\n',
    'trailing ': 'x\n',
    'logo.png': Buffer.from([0x89, 0x50, 0, 1, 2, 3]),
    'model.bin': `version https://git-lfs.github.com/spec/v1\noid sha256:${'a'.repeat(64)}\nsize 12345\n`,
    'utf16.txt': Buffer.from('\ufeffhello\n', 'utf16le'),
    'latin1.py': Buffer.from('# caf\u00e9 au lait\nx = 1\n', 'latin1'),
    'sjis.txt': Buffer.from('8365835883678365835883678365835883670a', 'hex'),
    'bom.ts': '\ufeffdebugger;\n',
    'anim.json': `{"a":"${'x'.repeat(374_000)}"}`,
    'big.sql': 'select 1;\n'.repeat(300),
    'odd.txt': 'a\r\nb\r\nc1\rc2\r\nd\r\ne1\u2028e2\r\nf\r\ng\fg2\r\nlast',
  },
  (git, dir) => {
    git('update-index', '--add', '--cacheinfo', `160000,${'b'.repeat(40)},vendor/lib`);
    git('update-index', '--add', '--cacheinfo', `120000,${git('hash-object', '-w', `${dir}/-n.txt`)},link`);
    const bytes = git('hash-object', '-w', `${dir}/ok.ts`);
    // a name that is not UTF-8, straight into the index
    const info = Buffer.concat([
      Buffer.from(`100644 ${bytes}\tbad-`),
      Buffer.from([0xff, 0xfe]),
      Buffer.from('.ts\n'),
    ]);
    feed(dir, info);
  },
);
function feed(dir: string, info: Buffer): void {
  execFileSync('git', ['update-index', '--index-info'], { cwd: dir, input: info });
}
afterAll(() => repository.remove());

let server: ProtocolServer;
beforeEach(async () => {
  server = await startProtocolServer();
});
afterEach(async () => {
  await server.close();
  expect(server.violations).toEqual([]);
});

type Case = [file: string, spec: ReviewerSpec | ReviewerSpec[], more?: Partial<LeasedTicket>];
/** Runs the bundle over tickets for these files and gives their results in order. */
async function review(cases: Case[], env: Record<string, string> = {}): Promise<TicketResult[]> {
  const tickets = cases.map(([file, spec, more]) =>
    makeTicket({ ...repository.at(file), reviewers: Array.isArray(spec) ? spec : [spec], ...more }),
  );
  for (const ticket of tickets) server.add(ticket);
  const run = await startAction({ server: server.url }, { ...server.env, ...env }).done;
  expect(run).toMatchObject({ code: 0, stderr: '' });
  output = run.stdout + run.summary;
  return tickets.map((ticket) => {
    const result = server.results.get(ticket.id);
    if (result === undefined) throw new Error(`no result for ${JSON.stringify(ticket.path)}: ${run.stdout}`);
    return result;
  });
}
let output = '';

const base = (path: string) => ({ path, blob: repository.blob('base', path) });
const biome = command('biome', {
  run: ['biome', 'lint', '--reporter=sarif', '{path}'],
  paths: ['**/*.ts', '**/*.json'],
  config: [base('biome.json')],
});
const secretlint = command('secretlint', {
  run: ['secretlint', '--format', '@secretlint/secretlint-formatter-sarif', '{path}'],
  config: [base('.secretlintrc.json')],
});

describe('real linters', () => {
  test('REV-1a: biome says the same in rdjson and in Checkstyle XML', async () => {
    const printing = (output: 'rdjson' | 'checkstyle') =>
      command(output, {
        ...biome.command,
        run: ['biome', 'lint', `--reporter=${output}`, '{path}'],
        output,
      });
    const results = await review([
      ['src/bad.ts', printing('rdjson')],
      ['src/bad.ts', printing('checkstyle')],
      ['ok.ts', printing('checkstyle')],
    ]);
    for (const bad of results.slice(0, 2))
      expect(bad.findings.map((f) => [f.title.split(':')[0], f.severity, f.start_line, f.quote])).toEqual([
        ['lint/suspicious/noDoubleEquals', 'high', 2, 'if (a == 2) {\r'],
        ['lint/suspicious/noDebugger', 'high', 3, '  debugger;\r'],
      ]);
    expect(results[2]).toMatchObject({ end: 'reviewed', verdict: 'approve' });
  });

  test('REV-1a: biome finds faults under the base’s config, with lines, quotes and mapped severities', async () => {
    const [bad, ok] = await review([
      ['src/bad.ts', biome],
      ['ok.ts', biome],
    ]);
    expect(bad).toMatchObject({ end: 'reviewed', verdict: 'findings', partial: false, detail: null });
    expect(
      bad?.findings.map((f) => [f.title.split(':')[0], f.severity, f.start_line, f.quote, f.lens]),
    ).toEqual([
      ['lint/suspicious/noDoubleEquals', 'high', 2, 'if (a == 2) {\r', 'maintainability'],
      ['lint/suspicious/noDebugger', 'high', 3, '  debugger;\r', 'maintainability'],
    ]);
    expect(bad?.findings.every((f) => f.grounded && f.reviewer === 'biome' && f.side === 'head')).toBe(true);
    expect(bad?.sessions).toMatchObject([{ reviewer: 'biome', end: 'complete', exit: 1, provider: null }]);
    expect(ok).toMatchObject({ end: 'reviewed', verdict: 'approve', findings: [] });
    expect(server.of('admit')).toEqual([]);
  });

  test('REV-8: secretlint finds a leaked token, and the token itself leaves neither in the result nor in the log', async () => {
    const [leak] = await review([['secret.env', secretlint]]);
    expect(leak?.findings).toMatchObject([
      { start_line: 2, severity: 'high', quote: 'KEY=[redacted:github_token]', grounded: true },
    ]);
    expect(JSON.stringify(server.calls)).not.toContain(token);
    expect(output).not.toContain(token);
  });

  test('REV-10: a linter whose config ignores the file says nothing with exit 1: unavailable, not clean', async () => {
    const ignoring = command('biome', {
      run: ['biome', 'lint', '--reporter=sarif', '{path}'],
      config: [{ path: 'biome.json', blob: repository.blob('base', 'ignore.json') }],
    });
    const tiny = command('biome', {
      run: ['biome', 'lint', '--reporter=sarif', '--files-max-size=1', '{path}'],
    });
    const [ignored, unread] = await review([
      ['src/bad.ts', ignoring],
      ['ok.ts', tiny],
    ]);
    expect(ignored).toMatchObject({ end: 'bad_output', verdict: null });
    expect(ignored?.detail).toContain('exit 1 without a finding');
    // it says that it did not read the file, without a line: shown as text, and never an approval
    expect(unread).toMatchObject({ verdict: 'findings', partial: true, findings: [] });
  });

  test('attack 29: the pull request’s own edit of the config does not count; the edited config is still reviewed', async () => {
    const [config] = await review([['biome.json', biome]]);
    expect(config).toMatchObject({ end: 'reviewed', verdict: 'approve' });
  });
});

describe('REV-10: a reviewer that did not run is never "no findings"', () => {
  const cleanSay = 'say({version: 1, count: 0, findings: []});';
  const cases: [string, string, string, RegExp][] = [
    [
      'a crash after valid output',
      `${cleanSay} process.on('exit', () => process.abort())`,
      'worker_error',
      /SIGABRT/,
    ],
    ['an exit status that is not ok', `${cleanSay} process.exitCode = 2`, 'worker_error', /exit 2/],
    ['no output', 'console.error("why it failed")', 'empty_output', /exit 0\).*why it failed/],
    ['output that is no JSON', 'console.log("all good, approved")', 'bad_output', /not one JSON document/],
    ['case 80 (a): a second document', `${cleanSay} ${cleanSay}`, 'bad_output', /not one JSON document/],
    [
      'case 80 (b): a string for the list',
      'say({version: 1, count: 0, findings: "none"})',
      'bad_output',
      /findings/,
    ],
    ['case 80 (d): no findings key', 'say({version: 1, count: 0})', 'bad_output', /findings/],
    ['a count that disagrees', 'say({version: 1, count: 1, findings: []})', 'bad_output', /count says 1/],
    [
      'exit 1 without a finding',
      `${cleanSay} process.exitCode = 1`,
      'bad_output',
      /exit 1 without a finding/,
    ],
  ];
  test('REV-10, case 80: crashes, exit states, silence and broken output each have their end', async () => {
    const results = await review(cases.map(([, code]): Case => ['ok.ts', script(code)]));
    for (const [i, [name, , end, detail]] of cases.entries()) {
      const result = results[i];
      expect([name, result?.end, result?.verdict, result?.findings]).toEqual([name, end, null, []]);
      expect(result?.detail).toMatch(detail);
      expect(result?.sessions[0]?.end).not.toBe('complete');
    }
  });

  test('a program that is not there, and one that never ends', async () => {
    const [absent, endless] = await review([
      ['ok.ts', command('nope', { run: ['no-such-linter', '{path}'] })],
      ['secret.env', script('setInterval(() => {}, 1000)'), { timeout_ms: 500 }],
    ]);
    expect(absent).toMatchObject({ end: 'worker_error', detail: 'nope: could not start (ENOENT)' });
    expect(endless).toMatchObject({ end: 'timeout', sessions: [{ end: 'timeout' }] });
  });

  test('case 80 (c): one malformed finding among good ones: the good are kept, the ticket is partial', async () => {
    const list = [finding({ title: 'one' }), finding({ title: 'two' }), { title: 'no line' }];
    const [result] = await review([
      ['ok.ts', script(`say(${JSON.stringify({ version: 1, count: 3, findings: list })})`)],
    ]);
    expect(result).toMatchObject({ end: 'reviewed', verdict: 'findings', partial: true });
    expect(result?.findings.map((f) => f.title)).toEqual(['one', 'two']);
    expect(result?.unplaced).toHaveLength(1);
  });

  test('one reviewer of two unavailable: what the other found is kept, the ticket is not reviewed', async () => {
    const good = {
      ...script(`say(${JSON.stringify({ version: 1, count: 1, findings: [finding()] })})`),
      name: 'good',
    };
    const [result] = await review([['ok.ts', [good, script('process.abort()')]]]);
    expect(result).toMatchObject({ end: 'worker_error', verdict: null, findings: [{ reviewer: 'good' }] });
  });
});

describe('REV-1a: what a command is given', () => {
  test('an empty folder with the file and the base’s config; PATH and HOME and nothing else', async () => {
    const look = script(
      `const all = fs.readdirSync('.', {recursive: true}).sort(); const text = [all.join(), Object.keys(process.env).sort().join(), fs.readFileSync('biome.json', 'utf8')].join(' ; '); say({version: 1, count: 1, findings: [{start_line: 1, severity: 'info', title: 't', body: text}]})`,
      { config: [base('biome.json'), { path: 'absent.json', blob: null }] },
    );
    const [result] = await review([['src/bad.ts', look]], {
      ANTHROPIC_API_KEY: 'secret-key-of-a-model',
      GITHUB_TOKEN: 'x'.repeat(20),
    });
    expect(result?.findings[0]?.body).toBe(
      'biome.json,src,src/bad.ts ; HOME,PATH ; {"linter":{"enabled":true}}',
    );
  });

  test('a file outside `paths` is not given to it; no reviewer left is route_invalid', async () => {
    const [only, one] = await review([
      ['secret.env', script('process.abort()', { paths: ['**/*.ts'] })],
      ['ok.ts', [script('process.abort()', { paths: ['docs/'] }), biome]],
    ]);
    expect(only).toMatchObject({ end: 'route_invalid', sessions: [] });
    expect(one).toMatchObject({ end: 'reviewed', verdict: 'approve' });
  });

  test('case 24: a deletion goes to commands with deletions: true, on the base side', async () => {
    const reads = `const lines = fs.readFileSync(file, 'utf8'); say({version: 1, count: 1, findings: [{start_line: 1, severity: 'low', title: 'deleted', body: lines}]})`;
    const [without, taken] = await review([
      ['gone.ts', script(reads), { round: 1 }],
      ['gone.ts', script(reads, { deletions: true })],
    ]);
    expect(without).toMatchObject({ end: 'route_invalid' });
    expect(taken?.findings).toMatchObject([{ side: 'base', quote: 'debugger;', grounded: true }]);
    expect(taken?.blobs).toEqual({ base: repository.blob('base', 'gone.ts'), head: null });
  });

  test('case 19: names with a dash, spaces, emoji, tabs, quotes, a space at the end, or no UTF-8 come through', async () => {
    const names = ['-n.txt', 'a b/c d.md', 'naïve.ts', 'tab\t🐧".sh', 'trailing '];
    const reads = script(
      `say({version: 1, count: 1, findings: [{path: file, start_line: 1, severity: 'low', title: fs.readFileSync(file, 'utf8').trim(), body: 'x'}]})`,
    );
    const odd = {
      path: {
        b64: Buffer.concat([Buffer.from('bad-'), Buffer.from([0xff, 0xfe]), Buffer.from('.ts')]).toString(
          'base64',
        ),
      },
      blob: { base: null, head: repository.blob('head', 'ok.ts') },
    };
    const results = await review([
      ...names.map((name): Case => [name, reads]),
      ['ok.ts', reads, { ...odd, mode: { base: null, head: '100644' } }],
    ]);
    expect(results.map((r) => [r.end, r.findings[0]?.title])).toEqual([
      ['reviewed', 'a dash'],
      ['reviewed', 'spaces'],
      ['reviewed', 'export {};'],
      ['reviewed', 'echo'],
      ['reviewed', 'x'],
      ['reviewed', 'export const ok = 1;'],
    ]);
  });

  test('ACT-2: objects by id and no checkout: alone in its folder, the bytes of the blob, a symbolic link as its text', async () => {
    const own = makeRepository(
      { 'other.ts': 'secret of the tree\n' },
      { 'src/a.ts': '$Id$\nb\n' },
      (git, dir) => {
        const put = (mode: string, file: string, text: string) => {
          const blob = execFileSync('git', ['hash-object', '-w', '--stdin'], { cwd: dir, input: text });
          git('update-index', '--add', '--cacheinfo', `${mode},${blob.toString().trim()},${file}`);
        };
        put('100644', '.gitattributes', '* ident eol=crlf working-tree-encoding=UTF-16\n');
        put('120000', 'src/link.ts', '../../../../etc/passwd');
      },
    );
    const looks = script(
      `const seen = []; const walk = (d) => { for (const e of fs.readdirSync(d, {withFileTypes: true})) { if (e.isDirectory()) walk(d + '/' + e.name); else seen.push((e.isSymbolicLink() ? 'link ' : '') + d + '/' + e.name); } }; walk('.');
       say({version: 1, count: 1, findings: [{start_line: 1, severity: 'low', title: seen.join(' '), body: fs.readFileSync(file).toString('hex')}]})`,
    );
    const tickets = ['src/a.ts', 'src/link.ts'].map((file) =>
      makeTicket({
        ...own.at(file),
        mode: { base: null, head: file === 'src/link.ts' ? '120000' : '100644' },
        reviewers: [looks],
      }),
    );
    for (const ticket of tickets) server.add(ticket);
    const run = await startAction({ server: server.url }, server.env).done;
    own.remove();
    expect(run).toMatchObject({ code: 0, stderr: '' });
    const said = tickets.map((ticket) => {
      const [one] = server.results.get(ticket.id)?.findings ?? [];
      return [one?.title, Buffer.from(one?.body ?? '', 'hex').toString()];
    });
    expect(said).toEqual([
      ['./src/a.ts', '$Id$\nb\n'],
      ['./src/link.ts', '../../../../etc/passwd'],
    ]);
  });

  test('T21: a path that leaves the folder is a bad ticket and runs nothing', async () => {
    const [result] = await review([
      [
        'ok.ts',
        script('process.abort()', {
          config: [{ path: '../escape.json', blob: repository.blob('base', 'biome.json') }],
        }),
      ],
    ]);
    expect(result).toMatchObject({ end: 'bad_ticket', sessions: [] });
  });
});

describe('TKT-5: what is not text is said by name', () => {
  const counts = script(
    `say({version: 1, count: 1, findings: [{start_line: fs.readFileSync(file).toString('latin1').split('\\n').filter((l) => l !== '').length, severity: 'low', title: 'last line', body: 'x'}]})`,
  );
  test('case 25, 26, 28: binary, LFS pointer, submodule, UTF-16, unknown encoding, too many lines', async () => {
    const results = await review([
      ['logo.png', counts],
      ['model.bin', counts],
      ['vendor/lib', counts, { mode: { base: null, head: '160000' } }],
      ['utf16.txt', counts],
      ['sjis.txt', counts],
      ['big.sql', counts, { max_lines: 299 }],
      ['anim.json', counts],
    ]);
    expect(results.map((r) => [r.end, r.detail])).toEqual([
      ['content_unread', 'binary'],
      ['content_unread', `lfs pointer: sha256:${'a'.repeat(64)}, 12345 bytes not fetched`],
      ['content_unread', `submodule: none to ${'b'.repeat(40)}`],
      ['content_unread', 'undecodable: utf-16 byte order mark'],
      ['content_unread', 'undecodable: not UTF-8'],
      ['too_large', '300 lines, the limit is 299'],
      ['reviewed', null],
    ]);
    expect(results.slice(0, 6).every((r) => r.sessions.length === 0 && r.verdict === null)).toBe(true);
  });

  test('case 28: latin-1 and a byte order mark are reviewed with the blob’s line numbers and ids', async () => {
    const [latin, bom] = await review([
      ['latin1.py', counts],
      ['bom.ts', biome],
    ]);
    expect(latin?.findings).toMatchObject([{ start_line: 2, quote: 'x = 1', grounded: true }]);
    expect(latin?.blobs.head).toBe(repository.blob('head', 'latin1.py'));
    expect(bom?.findings).toMatchObject([{ start_line: 1, quote: 'debugger;', grounded: true }]);
  });

  test('TKT-5: a symbolic link is reviewed as its text, which is not followed', async () => {
    const reads = script(
      `say({version: 1, count: 1, findings: [{start_line: 1, severity: 'low', title: String(fs.lstatSync(file).isFile()) + fs.readFileSync(file, 'utf8').trim(), body: 'x'}]})`,
    );
    const [link] = await review([['link', reads, { mode: { base: null, head: '120000' } }]]);
    expect(link?.findings).toMatchObject([{ title: 'truea dash' }]);
  });

  test('case 29: a line beyond the blob’s LF count goes to the text, not to a line', async () => {
    const says = (line: number) =>
      script(
        `say(${JSON.stringify({ version: 1, count: 1, findings: [finding({ start_line: line, title: 'at the end' })] })})`,
      );
    const [last, beyond] = await review([
      ['odd.txt', says(8)],
      ['odd.txt', says(12), { round: 1 }],
    ]);
    expect(last?.findings).toMatchObject([{ start_line: 8, quote: 'last', grounded: true }]);
    expect(beyond).toMatchObject({
      findings: [],
      unplaced: ['script: at the end'],
      partial: true,
      verdict: 'findings',
    });
  });
});

test('REV-4: a flood of findings carries the worst, says how many were left out, and is never an approval', async () => {
  const flood = script(
    `const f = (i) => ({start_line: 1, severity: i === 4999 ? 'critical' : 'low', title: 't' + i, body: 'b'}); say({version: 1, count: 5000, findings: Array.from({length: 5000}, (_, i) => f(i))})`,
  );
  const [result] = await review([['ok.ts', flood]]);
  expect(result).toMatchObject({ end: 'reviewed', verdict: 'findings', partial: true });
  expect(result?.findings).toHaveLength(200);
  expect(result?.findings[0]).toMatchObject({ severity: 'critical', title: 't4999' });
  expect(result?.unplaced.join()).toContain('4600 more findings of script');
});

test('OPS-10: a result of long texts stays under what the server takes in one submit', async () => {
  const long = script(
    `const f = (i) => ({start_line: 1, severity: 'low', title: 't' + i, body: '\\u0001'.repeat(8000)}); say({version: 1, count: 200, findings: Array.from({length: 200}, (_, i) => f(i))})`,
  );
  const [result] = await review([['ok.ts', long]]);
  expect(result?.findings.length).toBeGreaterThan(5);
  expect(result?.unplaced.join()).toMatch(/\d+ more findings than one result can carry/);
  expect(Buffer.byteLength(JSON.stringify(server.of('submit')[0]?.body))).toBeLessThan(
    LIMITS.submitBytes.default,
  );
});

describe('foreign text', () => {
  test('ACT-4, T15: a title cannot be a workflow command or leave its table cell', async () => {
    const title = `x\n::set-output name=a::b\u001b[31m ##[error]boo | \`code\` ${AWS}`;
    await review([
      ['ok.ts', script(`say(${JSON.stringify({ version: 1, count: 1, findings: [finding({ title })] })})`)],
    ]);
    const commands = output
      .split('\n')
      .filter((line) => /^\s*::(?!group::|endgroup::|add-mask::|debug::ID token url)/.test(line));
    expect(commands).toEqual([]);
    expect(output).not.toContain('##[error]');
    expect(output).not.toContain('\u001b');
    expect(output).not.toContain(AWS);
  });

  test('REV-8: a secret of the job that a reviewer prints is redacted in findings, details and unplaced text', async () => {
    const key = 'the-key-of-a-model-provider';
    const say = finding({
      body: `sends ${key} and ${Buffer.from(key).toString('base64')}`,
      title: `t ${encodeURIComponent(`${key}/`)}`,
    });
    const [found, failed] = await review(
      [
        ['ok.ts', script(`say(${JSON.stringify({ version: 1, count: 1, findings: [say] })})`)],
        ['secret.env', script(`console.error(${JSON.stringify(key)}); process.exitCode = 3`)],
      ],
      { ANTHROPIC_API_KEY: key },
    );
    expect(found?.findings[0]?.body).toBe('sends [redacted:secret] and [redacted:secret]');
    // what it was is told by hash alone, under the salt of the ticket
    const hashes = (found?.findings[0]?.redacted ?? []).map((one) => one.hash);
    expect(hashes).toContain(innerHash(SALT, key));
    expect(hashes).not.toContain(innerHash('another salt', key));
    expect(failed?.detail).toContain('[redacted:secret]');
    expect(JSON.stringify(server.calls)).not.toContain(key);
    expect(output).not.toContain(key);
  });
});
