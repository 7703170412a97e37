import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { HANDED_ON, TRACKING_VARIABLE } from '../../action/verify/environment.ts';
import { parsePolicy } from '../../app/domain/policy.ts';
import { commandDigest } from '../../app/domain/receipt/input-hash.ts';
import { receiptTrouble } from '../../app/protocol/receipt.ts';
import { root } from './harness.ts';
import { buildBundle, policyOf, receiptsIn, type Stage, stagePull } from './verify-stage.ts';

beforeAll(() => void buildBundle());

const stages: Stage[] = [];
const stage = (of: Parameters<typeof stagePull>[0]): Stage => {
  const one = stagePull(of);
  stages.push(one);
  return one;
};
afterEach(() => {
  for (const one of stages.splice(0)) one.remove();
});

const node = (code: string): string[] => [process.execPath, '-e', code];
const sh = (code: string): string[] => ['/bin/sh', '-c', code];
/** One command `t` of this argv. */
const one = (run: string[], more: Record<string, unknown> = {}) => policyOf({ t: { run, ...more } });

const until = async (what: () => boolean): Promise<void> => {
  const from = Date.now();
  while (!what()) {
    if (Date.now() - from > 60_000) throw new Error('did not happen');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
};
const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    // what ended and was not waited for is no process that runs
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
};

describe('where it runs', () => {
  test('VER-1: without a server, a login or any call to one, the receipt is an annotation of the job', async () => {
    const at = stage({ policy: one(['git', '--version']) });
    const run = await at.run();
    expect(run).toMatchObject({ code: 0, stderr: '' });
    const [receipt, ...more] = receiptsIn(run.stdout);
    expect(more).toEqual([]);
    expect(receipt).toMatchObject({
      v: 1,
      command: 't',
      base: at.base,
      head: at.head,
      started: true,
      exit: 0,
    });
    expect(receipt && receiptTrouble(receipt)).toBeNull();
    expect(receipt?.stdout.tail).toMatch(/^git version /);
    expect(run.outputs).toMatchObject({
      commands: '1',
      failed: '0',
      run_url: expect.stringMatching(/\/octo\/repo\/actions\/runs\/77$/),
    });
    expect(run.summary).toContain('| `t` | `passed` | 0 |');
  });

  test('VER-1: the command is the base policy’s; what the pull request writes into its own is not run', async () => {
    const base = one(sh('echo from the base'));
    const at = stage({
      policy: base,
      changed: { '.github/countersign.yml': one(sh('echo from the pull request')) },
    });
    const run = await at.run();
    expect(run.code).toBe(0);
    const [receipt] = receiptsIn(run.stdout);
    expect(receipt?.stdout.tail).toBe('from the base\n');
    expect(run.stdout).not.toContain('from the pull request');
    // the server makes the same digest of its own reading
    const reading = parsePolicy(Buffer.from(base));
    const command = reading.ok ? reading.policy.verify.get('t') : undefined;
    expect(receipt?.command_sha256).toBe(command?.from === 'action' ? commandDigest(command) : null);
  });

  test.each([
    ['pull_request_target', 'never runs on pull_request_target'],
    ['workflow_dispatch', 'started by workflow_dispatch'],
  ])('ACT-3: under %j no command of a pull request is started', async (event, said) => {
    const at = stage({ policy: one(sh('echo ran > ran.txt')) });
    const run = await at.run({}, { GITHUB_EVENT_NAME: event });
    expect(run.code).toBe(1);
    expect(run.stdout).toContain(said);
    expect(receiptsIn(run.stdout)).toEqual([]);
    expect(existsSync(path.join(at.workspace, 'ran.txt'))).toBe(false);
  });

  test('VER-1: a fork runs on GitHub’s machines and never on a self-hosted one', async () => {
    const at = stage({ policy: one(['git', '--version']) });
    at.event((pull) => {
      pull.head.repo = { id: 75, full_name: 'else/repo' };
    });
    const hosted = await at.run();
    expect(hosted.code).toBe(0);
    expect(hosted.stdout).toContain('from a fork');
    const refused = await at.run({}, { RUNNER_ENVIRONMENT: 'self-hosted' });
    expect(refused.code).toBe(1);
    expect(refused.stdout).toContain('::error::verify never runs on a self-hosted runner');
    expect(receiptsIn(refused.stdout)).toEqual([]);
  });

  test('ACT-4: one command by name, all without a name, and words for what is not there', async () => {
    const at = stage({
      policy: policyOf({
        a: { run: sh('echo one') },
        b: { run: sh('echo two') },
      }),
    });
    const both = await at.run();
    expect(receiptsIn(both.stdout).map(({ command }) => command)).toEqual(['a', 'b']);
    const named = await at.run({ command: 'b' });
    expect(receiptsIn(named.stdout).map(({ command }) => command)).toEqual(['b']);
    const unknown = await at.run({ command: 'd' });
    expect(unknown.code).toBe(1);
    expect(unknown.stdout).toContain('::error::the base policy has no verify command d; it has a, b');
  });

  test('VER-1: a base without a policy, or with one that is not valid, is said and runs nothing', async () => {
    const at = stage({ policy: 'version: 2\n', changed: { '.github/countersign.yml': one(['true']) } });
    const run = await at.run();
    expect(run.code).toBe(1);
    expect(run.stdout).toMatch(/::error::.*countersign\.yml of the base commit .* is not valid: line 1/);
    expect(receiptsIn(run.stdout)).toEqual([]);
  });
});

describe('what it runs in', () => {
  test('VER-2: the environment is built from a list: nothing of GitHub’s, no input, no secret', async () => {
    const at = stage({
      policy: one(sh('env; test "$GREETING" = hello'), { env: { GREETING: 'hello' } }),
    });
    const run = await at.run(
      {},
      {
        ACTIONS_RUNTIME_TOKEN: 'runtime-value-1',
        GITHUB_TOKEN: 'github-value-1',
        NPM_TOKEN: 'npm-value-1',
        JAVA_HOME: '/opt/java',
        HTTPS_PROXY: 'http://user:proxy-password@127.0.0.1:1',
        WHATEVER: 'other-value-1',
        RUNNER_TRACKING_ID: 'github_1',
      },
    );
    expect(run.code).toBe(0);
    const [receipt] = receiptsIn(run.stdout);
    const shown = receipt?.stdout.tail ?? '';
    const names = shown.split('\n').map((line) => line.slice(0, line.indexOf('=')));
    expect(names.filter((name) => /^(ACTIONS|GITHUB|INPUT)_|TOKEN|WHATEVER|PROXY/.test(name))).toEqual([]);
    expect(names).toEqual(
      expect.arrayContaining(['PATH', 'HOME', 'CI', 'JAVA_HOME', 'TMPDIR', 'COUNTERSIGN_OUTPUT', 'GREETING']),
    );
    expect(names).toContain('RUNNER_TRACKING_ID');
    expect(run.stdout).toContain('::warning::This job holds NPM_TOKEN');
    for (const value of ['runtime-value-1', 'github-value-1', 'npm-value-1', 'other-value-1'])
      expect(run.stdout).not.toContain(value);
  });

  test('VER-2: docs/receipts.md names every variable that is handed on, and no other of a job', () => {
    const page = readFileSync(path.join(root, 'docs/receipts.md'), 'utf8');
    const rows = page.split('\n').filter((line) => /^\|.*\| (the job|the same)[^|]*\|$/.test(line));
    const named = rows.flatMap((line) => [...line.matchAll(/`([A-Za-z_]+)`/g)].map(([, name]) => name));
    expect(named.sort()).toEqual([...HANDED_ON, TRACKING_VARIABLE].sort());
    expect(HANDED_ON.filter((name) => /^(ACTIONS|GITHUB|INPUT)_|TOKEN|KEY|SECRET/.test(name))).toEqual([]);
  });

  test('VER-2: named ports are free for the command, told by variable, and given back when it failed', async () => {
    const listen = `const {createServer} = require('node:http');
      const ports = [process.env.WEB, process.env.DATABASE].map(Number);
      if (new Set(ports).size !== 2) process.exit(3);
      Promise.all(ports.map((port) => new Promise((done, bad) => createServer().on('error', bad).listen(port, '127.0.0.1', done))))
        .then(() => process.exit(Number(process.argv[1])), () => process.exit(4));`;
    const at = stage({ policy: one([...node(listen), '7'], { ports: ['WEB', 'DATABASE'] }) });
    const run = await at.run();
    // its own code: both ports were there to listen on
    expect(run.code).toBe(7);
    expect(receiptsIn(run.stdout)[0]?.ports.map(({ name }) => name)).toEqual(['WEB', 'DATABASE']);
    expect(readdirSync(path.join(at.temp, 'countersign-ports'))).toEqual([]);
  });

  test('VER-2: output and evidence are in the folder that the environment names, and stay', async () => {
    const at = stage({ policy: one(sh('echo proof > "$COUNTERSIGN_OUTPUT/proof.txt"; echo said')) });
    const run = await at.run();
    const folder = path.join(run.outputs['evidence'] ?? '', 't');
    expect(path.dirname(path.dirname(folder))).toBe(at.temp);
    const seen = readdirSync(folder).sort();
    expect(seen).toEqual(['proof.txt', 'receipt.json', 'start.json', 'stderr.tail', 'stdout.tail']);
    const start = JSON.parse(readFileSync(path.join(folder, 'start.json'), 'utf8'));
    expect(start).toMatchObject({ command: 't', base: at.base, head: at.head, process: expect.any(String) });
    // nothing else of it is left beside
    expect(readdirSync(at.temp).filter((name) => !name.startsWith('countersign-evidence-'))).toEqual([]);
  });
});

describe('what a receipt says', () => {
  test('VER-3: the step’s exit code is the command’s, and a failure is an annotation', async () => {
    const at = stage({ policy: policyOf({ a: { run: sh('exit 9') }, b: { run: ['true'] } }) });
    const run = await at.run();
    expect(run.code).toBe(9);
    expect(run.stdout).toContain('::error::verify a exited with 9');
    expect(receiptsIn(run.stdout).map(receiptTrouble)).toEqual(['failed', null]);
    expect(run.outputs).toMatchObject({ commands: '2', failed: '1' });
  });

  test('VER-3: a program that is not there exits with 127, one that a signal ended says which', async () => {
    const at = stage({ policy: policyOf({ a: { run: ['no-such-program'] }, b: { run: sh('kill -9 $$') } }) });
    const run = await at.run();
    expect(run.code).toBe(127);
    const [a, b] = receiptsIn(run.stdout);
    expect(a).toMatchObject({ started: true, exit: 127, signal: null });
    expect(b).toMatchObject({ started: true, exit: null, signal: 'SIGKILL' });
  });

  test('VER-3: a tree that was changed fails the step and lists the paths; what git ignores is no change', async () => {
    const at = stage({
      policy: policyOf({
        clean: { run: sh('mkdir -p out && echo x > out/ignored') },
        dirty: { run: sh('echo more >> a.txt; rm b.txt; echo new > "n ü.txt"') },
      }),
    });
    const run = await at.run();
    expect(run.code).toBe(1);
    const [clean, dirty] = receiptsIn(run.stdout);
    expect(clean && receiptTrouble(clean)).toBeNull();
    expect(clean?.tree.before).toBe(clean?.tree.after);
    expect(dirty && receiptTrouble(dirty)).toBe('mutated');
    expect(dirty?.mutated).toEqual({ items: ['a.txt', 'b.txt', 'n ü.txt'], more: 0 });
    expect(run.stdout).toContain('::error::verify dirty exited with 0, but changed 3 file(s)');
  });

  test('VER-3: a change is seen where the checkout’s own git was told to look away', async () => {
    const at = stage({
      policy: one(
        sh('git update-index --assume-unchanged a.txt; git config core.fileMode false; echo x > a.txt'),
      ),
    });
    const run = await at.run();
    expect(receiptsIn(run.stdout)[0]?.mutated.items).toEqual(['a.txt']);
  });

  test('VER-2: the tree is that of git, untracked files with it', async () => {
    const at = stage({ policy: one(['true']) });
    const tracked = receiptsIn((await at.run()).stdout)[0]?.tree;
    writeFileSync(path.join(at.workspace, 'untracked.txt'), 'x');
    const more = receiptsIn((await at.run()).stdout)[0]?.tree;
    const head = at.git('rev-parse', 'HEAD^{tree}');
    expect(tracked).toEqual({ before: head, after: head });
    expect(more?.before).not.toBe(head);
  });

  test('VER-3: an artifact that is missing fails the step; one that is there has a digest and is no change', async () => {
    const wanted = ['out/report.xml', 'logs/', 'new.txt', 'cov/**/*.info'];
    const make = sh(
      'mkdir -p out logs cov/deep; echo r > out/report.xml; echo l > logs/l; echo n > new.txt; echo c > cov/deep/x.info',
    );
    const at = stage({
      policy: policyOf({
        all: { run: make, artifacts: wanted },
        none: { run: ['true'], artifacts: ['nowhere.txt', 'a-link'] },
      }),
      changed: { 'a.txt': 'one\n' },
    });
    const run = await at.run({ command: 'all' });
    const [all] = receiptsIn(run.stdout);
    expect(run.code).toBe(0);
    expect(all && receiptTrouble(all)).toBeNull();
    expect(all?.artifacts.found.items.map(({ pattern, files }) => [pattern, files])).toEqual(
      wanted.map((pattern) => [pattern, 1]),
    );
    const missing = await at.run({ command: 'none' });
    expect(missing.code).toBe(1);
    expect(receiptsIn(missing.stdout)[0]?.artifacts.missing.items).toEqual(['nowhere.txt', 'a-link']);
    expect(missing.stdout).toContain('left no nowhere.txt, a-link');
  });

  test('VER-3: a repository that a command leaves inside is seen, and nothing that it configures is run', async () => {
    const at = stage({
      policy: policyOf({
        make: {
          run: sh(
            'git init -q sub && cd sub && echo f > f && echo "f filter=evil" > .gitattributes && git add . && ' +
              'git -c user.name=a -c user.email=a@b commit -q -m x && echo g > f && touch -d 2001-01-01 f && ' +
              'git config filter.evil.clean "touch $PWD/../ran; cat"',
          ),
        },
        // now it is there before: a git that knows it would look into it for changes
        after: { run: ['true'] },
      }),
    });
    const made = receiptsIn((await at.run({ command: 'make' })).stdout)[0];
    expect(made?.mutated.items).toEqual(['sub']);
    const after = receiptsIn((await at.run({ command: 'after' })).stdout)[0];
    expect(after?.tree).toEqual({ before: made?.tree.after, after: made?.tree.after });
    expect(existsSync(path.join(at.workspace, 'ran'))).toBe(false);
  });

  test('VER-3: an artifact behind a link is missing, wherever the link leads', async () => {
    const at = stage({
      policy: one(sh('ln -s /etc out; ln -s /etc/passwd linked'), {
        artifacts: ['out/passwd', 'out/', 'out/**', 'linked'],
      }),
      changed: { '.gitignore': 'out\nlinked\n' },
    });
    const run = await at.run();
    expect(receiptsIn(run.stdout)[0]?.artifacts).toMatchObject({
      found: { items: [] },
      missing: { items: ['out/passwd', 'out/', 'out/**', 'linked'] },
    });
  });

  test('VER-2: a command whose start cannot be recorded is never let go, and exits 125', async () => {
    const at = stage({ policy: one(sh('echo ran > ran.txt')) });
    // a git that leaves the record of another start where this one's belongs
    const git = execFileSync('which', ['git'], { encoding: 'utf8' }).trim();
    const script = `#!/bin/sh
for folder in ${at.temp}/countersign-evidence-*/t; do [ -d "$folder" ] && : > "$folder/start.json"; done
exec ${git} "$@"
`;
    writeFileSync(path.join(at.bin, 'git'), script, { mode: 0o755 });
    const run = await at.run();
    expect(run.code).toBe(125);
    expect(receiptsIn(run.stdout)[0]).toMatchObject({ started: false, exit: 125 });
    expect(existsSync(path.join(at.workspace, 'ran.txt'))).toBe(false);
  });

  test('VER-3: a time-out ends the whole group, what ignores TERM and what left it too', async () => {
    const at = stage({
      policy: one(
        sh(
          'trap "" TERM; (trap "" TERM; while :; do sleep 0.2; done) & echo $! > out-1; ' +
            'setsid sh -c "trap \\"\\" TERM; while :; do sleep 0.2; done" & sleep 0.5; ' +
            'echo $! > out-2; while :; do sleep 0.2; done',
        ),
        { timeout: '10s' },
      ),
      changed: { '.gitignore': '/out*\n' },
    });
    const run = await at.run();
    expect(run.code).toBe(1);
    const [receipt] = receiptsIn(run.stdout);
    expect(receipt).toMatchObject({ timed_out: true, signal: 'SIGKILL', exit: null });
    expect(receipt?.ms).toBeGreaterThanOrEqual(10_000);
    for (const file of ['out-1', 'out-2']) {
      const pid = Number(readFileSync(path.join(at.workspace, file), 'utf8'));
      await until(() => !isAlive(pid));
    }
  });

  test.each([
    ['obeys', ''],
    ['ignores TERM', 'trap "" TERM; '],
  ])('ACT-5: a job that is cancelled ends a command that %s, and is gone in seconds', async (_, trap) => {
    const at = stage({
      policy: one(sh(`${trap}echo $$ > out-pid; while :; do sleep 0.2; done`)),
      changed: { '.gitignore': '/out*\n' },
    });
    const running = at.start();
    const file = path.join(at.workspace, 'out-pid');
    await until(() => existsSync(file) && statSync(file).size > 1);
    const from = performance.now();
    running.kill('SIGINT');
    const run = await running.done;
    expect(run.code).toBe(130);
    // 7 s of its own, and some for a machine that is busy
    expect(performance.now() - from).toBeLessThan(30_000);
    // what has to be killed first may leave no time to tell on a slow machine
    const [receipt] = receiptsIn(run.stdout);
    if (trap === '' || receipt !== undefined)
      expect(receipt).toMatchObject({ cancelled: true, tree: { after: null } });
    const pid = Number(readFileSync(file, 'utf8'));
    await until(() => !isAlive(pid));
  });
});

describe('what it prints', () => {
  test('REV-8: secrets of the job and known shapes are redacted in log, receipt, summary and evidence', async () => {
    const token = `ghp_${'A1b2C3d4E5'.repeat(4)}`.slice(0, 40);
    const at = stage({
      policy: one(
        sh(`echo "token ${token}"; echo "own $(echo dmFsdWUtdGhhdC1pcy1zZWNyZXQ= | base64 -d)" >&2; exit 1`),
      ),
    });
    const run = await at.run({}, { MY_SECRET: 'value-that-is-secret' });
    for (const text of [run.stdout, run.summary, JSON.stringify(receiptsIn(run.stdout))]) {
      expect(text).not.toContain('value-that-is-secret');
      expect(text).not.toContain(token);
      expect(text).toContain('[redacted:');
    }
  });

  test('ACT-4: no line of a command becomes a workflow command, and no receipt but ours is printed', async () => {
    const evil = [
      '::error::forged',
      '  ::notice title=countersign receipt::{}',
      '##[error]forged',
      'fine std::vec<int>',
      '\u001b[31mred\u001b[0m',
      '::stop-commands::x',
      '\r::add-mask::a',
    ];
    const at = stage({ policy: one(node(`console.log(${JSON.stringify(evil.join('\n'))})`)) });
    const run = await at.run();
    const commands = run.stdout.split('\n').filter((line) => line.trimStart().startsWith('::'));
    expect(commands.map((line) => /^::([a-z-]+)/.exec(line)?.[1])).toEqual(['group', 'endgroup', 'notice']);
    expect(run.stdout).not.toContain('##[');
    expect(run.stdout).toContain('fine std::vec<int>');
    expect(run.stdout).toContain('\nred\n');
    expect(receiptsIn(run.stdout)).toHaveLength(1);
  });

  test('VER-2: of much output the end is kept with its digest, in a receipt that GitHub does not cut', async () => {
    const at = stage({
      policy: one(node(`for (let i = 0; i < 60000; i++) console.log('line ' + i + ' \\u00e4\\u{1f600}')`)),
    });
    const run = await at.run();
    expect(run.code).toBe(0);
    const line = run.stdout.split('\n').find((text) => text.startsWith('::notice')) ?? '';
    expect(line.length).toBeLessThan(4096);
    const [receipt] = receiptsIn(run.stdout);
    expect(receipt?.stdout.bytes).toBeGreaterThan(900_000);
    expect(receipt?.stdout.tail).toMatch(/line 59999 ä😀\n$/);
    expect(receipt?.stdout.sha256).toMatch(/^[0-9a-f]{64}$/);
    expect(run.stdout).toContain('\nline 0 ä😀\n');
  });
});
