/** A pull request before it costs anything: real git, GitHub and rows, a database that only reads, and the process as people call it. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Usage } from '../../app/cli/entry.ts';
import { simulateCommand } from '../../app/cli/simulate.ts';
import { showPull } from '../../app/cli/simulate-pull.ts';
import type { Pull } from '../../sandbox/pull.ts';
import type { Repository } from '../../sandbox/repository.ts';
import { type InboxStage, inboxStage, POLICY } from '../helpers/inbox.ts';
import { programFile } from '../helpers/process.ts';

let stage: InboxStage;
let repository: Repository;
let recorded: Pull;
const folder = mkdtempSync(join(tmpdir(), 'cs-simulate-'));
const root = resolve(import.meta.dirname, '../..');
beforeAll(async () => {
  stage = await inboxStage();
  ({ repository } = await stage.repository({ name: 'app' }));
  await stage.settle();
});
afterAll(async () => {
  expect(stage.gh.violations).toEqual([]);
  await stage.close();
  rmSync(folder, { recursive: true, force: true });
});

const BLOCKS = `${POLICY}  model: {uses: anthropic, model: m}
levels: {L1: [lint], L2: [lint], L3: [lint, model]}
routes:
  - when: {paths: [api/]}
    level: L3
`;

interface Shown {
  readonly code: number;
  readonly out: string;
}
/** The command's own function, on the server's configuration. */
async function simulate(pull: Pull | string, policy: string | null = null, json = false): Promise<Shown> {
  const [owner = '', name = '', number = ''] =
    typeof pull === 'string' ? pull.split(/[/#]/) : ['alice', pull.repository.name, String(pull.number)];
  const lines: string[] = [];
  const spy = vi.spyOn(console, 'log').mockImplementation((line: string) => void lines.push(line));
  try {
    const given = policy === null ? null : { bytes: Buffer.from(policy), file: 'proposed.yml' };
    const code = await showPull(stage.config, { owner, name, pull: number, policy: given, json });
    return { code, out: lines.join('\n') };
  } finally {
    spy.mockRestore();
  }
}
async function open(
  branch: string,
  files: Record<string, string>,
  message = `Change ${branch}`,
): Promise<Pull> {
  await repository.commit({ branch, message, author: stage.alice, files });
  return repository.openPull({ head: branch, user: stage.alice });
}
const counted = async () =>
  JSON.stringify(
    await stage.query(
      `select (select count(*) from ledger_row) as rows, (select count(*) from run) as runs, (select count(*) from ticket) as tickets,
              (select count(*) from graphile_worker.jobs) as jobs, (select count(*) from delivery) as deliveries, (select count(*) from preview) as previews`,
    ),
  );

describe('OPS-9, GAT-1: simulate OWNER/REPO#N', () => {
  it('a pull request that nobody told of: blocks, owners, levels, reviewers, tickets, sessions and verdict, and nothing is written', async () => {
    const pull = await open(
      'parser',
      { 'src/parse.ts': '1\n', 'api/v1.ts': '2\n', '.github/countersign.yml': `${POLICY}# more\n` },
      'Parse\n\nBlock: parser\nOwns: src/\nAfter: nothing-known',
    );
    await stage.gh.idle();
    const before = await counted();
    const asked = stage.gh.requests.length;
    const { code, out } = await simulate(pull, BLOCKS);
    expect(code, 'nothing stands to compare with').toBe(0);
    expect(out).toMatch(
      /^alice\/app#\d+ at [0-9a-f]{12} into main \([0-9a-f]{12}\)\npolicy: proposed\.yml \(/,
    );
    expect(out).toContain('recorded: no run of this head');
    expect(out).toMatch(/would be: failure: .*block waits for a block/);
    expect(out).toMatch(/bad_after \(broken\)[\s\S]*clears: correct the `After:` trailer; who: author/);
    expect(out).toMatch(/guarded \(person\) \[\.github\/countersign\.yml\]/);
    expect(out).toMatch(/blocks: 1\n {2}parser {2}\S+ {2}L3 {2}1 commit, 2 paths/);
    expect(out).toMatch(/ {2}src\/parse\.ts +parser +L2 +lint +to review/);
    expect(out).toMatch(/ {2}api\/v1\.ts +parser +L3 +lint, model +to review/);
    expect(out).toMatch(/ {2}\.github\/countersign\.yml +guarded +L3 +lint, model +to review/);
    expect(out).toContain('tickets: 3 to review');
    expect(out).toContain('sessions: 5, of models 2, of commands 3 (lint 3, model 2)');
    expect(await counted()).toBe(before);
    const written = stage.gh.requests.slice(asked).filter((one) => one.method !== 'GET');
    expect(
      written.map((one) => one.path).filter((path) => !/access_tokens|git-upload-pack/.test(path)),
    ).toEqual([]);
  });

  it('a recorded run decides by its rows; another policy shows what comes, what goes and how paths are treated', async () => {
    recorded = await open('recorded', { 'a.ts': '// recorded\n', 'docs/x.md': 'x\n' });
    await stage.settle();
    const pull = recorded;
    const same = await simulate(pull);
    expect(same.code).toBe(0);
    expect(same.out).toMatch(/policy: of main \(/);
    expect(same.out).toMatch(/recorded: run \S+, its rows up to \d+ verify and decide/);
    expect(same.out).toContain('the same as it is now');
    expect(same.out).toMatch(
      /would be: in progress: [\s\S]*reviews_pending \(machine\) \[a\.ts, docs\/x\.md\]/,
    );
    const other = await simulate(pull, `${POLICY}guard: [a.ts]\nclasses: {generated: [docs/]}\n`);
    expect(other.code).toBe(3);
    expect(other.out).toMatch(/is now: in progress[\s\S]* {2}\+ guarded \(person\) \[a\.ts\]/);
    expect(other.out).toContain('docs/x.md: L2, lint, owned → L0 generated, nobody, owned');
    const again = await simulate(pull, POLICY);
    expect(again).toMatchObject({ code: 0 });
    expect(again.out).toContain('proposed.yml, which is that of main');
    const json = JSON.parse((await simulate(pull, `${POLICY}mode: advisory\n`, true)).out);
    expect(json).toMatchObject({ version: 1, kind: 'pull', recorded: { seq: expect.any(Number) } });
    expect(json.tickets.counts).toMatchObject({ open: 2 });
    expect(json.paths.map((path: { path: string }) => path.path)).toEqual(['a.ts', 'docs/x.md']);
    expect(json.decision.mode).toBe('advisory');
  });

  it('BLK-7, ADM-3: a file that no reviewer reads is told before it holds anything', async () => {
    const pull = await open('unread', { 'a.ts': '// unread\n', 'x.css': 'a{}\n' });
    const { out } = await simulate(pull, POLICY.replace('["**"]', '["**/*.ts"]'));
    expect(out).toMatch(/ {2}x\.css +\S+ +L2 +nobody +read by nobody: route_invalid/);
    expect(out).toContain('tickets: 1 to review; 1 read by nobody: route_invalid');
  });

  it('a base without a policy, one with a broken one, a repository that nobody knows', async () => {
    const { repository: bare } = await stage.repository({ name: 'bare', policy: null });
    await stage.settle();
    await bare.commit({ branch: 't', message: 'T', files: { 'a.ts': '1\n' } });
    const pull = await bare.openPull({ head: 't', user: stage.alice });
    expect(await simulate(pull)).toMatchObject({
      code: 0,
      out: expect.stringContaining('main has no policy'),
    });
    expect((await simulate(pull, POLICY)).out).toContain('tickets: 1 to review');
    await bare.commit({ message: 'Break it', files: { '.github/countersign.yml': 'version: 2\n' } });
    const broken = await simulate(pull);
    expect(broken.code).toBe(1);
    expect(broken.out).toMatch(/the policy on main is not valid[\s\S]*line 1: version/);
    await expect(simulate('nobody/nothing#1')).rejects.toMatchObject({ code: 'not_found' });
  });

  it('text of a repository reaches a terminal without what terminals obey', async () => {
    const pull = await open('esc', { 'a.ts': '// esc\n' }, 'Esc\n\nBlock: esc\nAfter: \u001b[31mred\u202e');
    const { out } = await simulate(pull);
    for (const obeyed of ['\u001b', '\u202e']) expect(out.includes(obeyed)).toBe(false);
  });

  it('as people call it: exit code 3 for a change, of a pull request and of recorded runs by standard input', async () => {
    const file = join(folder, 'proposed.yml');
    writeFileSync(file, `${POLICY}guard: [a.ts]\n`);
    const key = join(folder, 'app.pem');
    writeFileSync(key, stage.config.privateKey);
    const env = {
      PATH: process.env['PATH'],
      HOME: folder,
      DATABASE_URL: stage.database.url,
      COUNTERSIGN_DATA_DIR: stage.config.dataDir,
      APP_ID: stage.config.appId,
      PRIVATE_KEY_PATH: key,
      WEBHOOK_SECRET: stage.config.webhookSecrets[0],
      GITHUB_API_URL: stage.gh.apiUrl,
      GITHUB_SERVER_URL: stage.gh.url,
    };
    const call = (args: string[], input = '') =>
      new Promise<{ code: number; out: string; err: string }>((done) => {
        const child = execFile(
          process.execPath,
          [programFile('cli'), 'simulate', ...args],
          { cwd: root, env },
          (error, out, err) => done({ code: typeof error?.code === 'number' ? error.code : 0, out, err }),
        );
        child.stdin?.end(input);
      });
    const [one, all] = await Promise.all([
      call([`alice/app#${recorded.number}`, '--policy', file]),
      call(['--runs', '--policy', '-', '--last', '50', '--json'], `${POLICY}guard: ["**"]\n`),
    ]);
    expect(one).toMatchObject({ code: 3, err: '' });
    expect(one.out).toContain('+ guarded (person)');
    expect(all).toMatchObject({ code: 3, err: '' });
    expect(JSON.parse(all.out).counts).toMatchObject({ runs: 3, faults: 0, changed: 2 });
  });

  it('attack 35: rows that do not verify decide nothing here either', async () => {
    const run = await stage.run(recorded);
    await stage.query(
      `insert into reason (run_id, code, since, detail) values ('${run?.id}', 'ledger_invalid', cs_now(), 'row 3 is missing')`,
    );
    await expect(simulate(recorded)).rejects.toMatchObject({ code: 'ledger_invalid' });
  });

  it('a wrong call is 2 and says what is right; a policy that is not valid is 1, told as config check does', async () => {
    const file = join(folder, 'broken.yml');
    writeFileSync(file, 'version: 1\nguard: ["/a"]\n');
    const wrong = async (...args: string[]) =>
      simulateCommand.run(args).then(
        (code) => `exit ${code}`,
        (error: Usage) => `${error.name} ${error.code} ${error.message}`,
      );
    expect(await wrong('--last', '3', 'a/b#1')).toBe('Usage 2 --since and --last go with --runs');
    expect(await wrong('--runs')).toMatch(/^Usage 2 --runs needs --policy/);
    expect(await wrong('--runs', '--policy', file, 'a/b#1')).toMatch(/^Usage 2 --runs takes no pull request/);
    expect(await wrong('--runs', '--policy', join(folder, 'none'))).toMatch(/^Usage 2 ENOENT/);
    expect(await wrong('a/b')).toMatch(/^Usage 2 one pull request as OWNER\/REPO#N/);
    expect(await wrong('--frob')).toMatch(/^Usage 2 /);
    const good = join(folder, 'good.yml');
    writeFileSync(good, POLICY);
    expect(await wrong('--runs', '--policy', good, '--last', '0')).toMatch(
      /^Usage 2 --last is a number from 1 to/,
    );
    expect(await wrong('--runs', '--policy', good, '--since', 'monday')).toMatch(/^Usage 2 --since is a day/);
    const said: string[] = [];
    const spy = vi.spyOn(console, 'error').mockImplementation((line: string) => void said.push(line));
    expect(await wrong('--runs', '--policy', file)).toBe('exit 1');
    spy.mockRestore();
    expect(said.join('\n')).toMatch(/broken\.yml:2: guard\[0\]: \/a: .*; accepted: /);
  });
});
