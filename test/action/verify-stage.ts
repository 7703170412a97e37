/** A pull request as a job of `pull_request` has it: a repository to fetch from, a checkout, an event, and the built Action. */
import { execFileSync } from 'node:child_process';
import { appendFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { RECEIPT_TITLE, type ReceiptDetail, readReceiptMessage } from '../../app/protocol/receipt.ts';
import { type ActionRun, type RunningAction, root, startAction } from './harness.ts';

const built = new Map<string, string>();

/** The bundle of these sources, built once a process into a folder that goes with it. */
export function buildBundle(): string {
  const known = built.get(root);
  if (known !== undefined) return known;
  const dir = mkdtempSync(path.join(tmpdir(), 'cs-bundle-'));
  process.once('exit', () => rmSync(dir, { recursive: true, force: true }));
  execFileSync(path.join(root, 'node_modules/.bin/tsx'), ['action/build.ts', dir], { cwd: root });
  const bundle = path.join(dir, 'index.js');
  built.set(root, bundle);
  return bundle;
}

export type Stage = {
  /** The checkout. */
  workspace: string;
  /** RUNNER_TEMP, which stays after the job as it does until the runner cleans it. */
  temp: string;
  /** A folder that stands first on the job's PATH. */
  bin: string;
  base: string;
  head: string;
  start: (inputs?: Record<string, string>, env?: Record<string, string | undefined>) => RunningAction;
  run: (inputs?: Record<string, string>, env?: Record<string, string | undefined>) => Promise<ActionRun>;
  git: (...args: string[]) => string;
  event: (change: (pull: { head: { repo: unknown } }) => void) => void;
  remove: () => void;
};

/** A policy of these verify commands, each an argv or more. */
export function policyOf(verify: Record<string, Record<string, unknown>>): string {
  const commands = Object.fromEntries(
    Object.entries(verify).map(([name, more]) => [name, { from: 'action', ...more }]),
  );
  return JSON.stringify({
    version: 1,
    reviewers: {
      lint: { uses: 'command', run: ['true', '{path}'], output: 'sarif', paths: ['**'], trusted: true },
    },
    routes:
      Object.keys(verify).length === 0 ? [] : [{ when: { paths: ['**'] }, verify: Object.keys(verify) }],
    verify: commands,
  });
}

/** A pull request whose base has `policy` and `files`, and whose head adds `changed`. */
export function stagePull(of: {
  policy: string;
  files?: Record<string, string>;
  changed?: Record<string, string>;
}): Stage {
  const dir = mkdtempSync(path.join(tmpdir(), 'cs-verify-'));
  const origin = path.join(dir, 'origin/octo/repo.git');
  const workspace = path.join(dir, 'work');
  const temp = path.join(dir, 'temp');
  const bin = path.join(dir, 'bin');
  for (const folder of [temp, bin]) mkdirSync(folder);
  const call = (cwd: string, program: string, ...args: string[]): string =>
    execFileSync(program, args, {
      cwd,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
      env: {
        PATH: process.env['PATH'],
        HOME: dir,
        GIT_CONFIG_NOSYSTEM: '1',
        GIT_AUTHOR_NAME: 'a',
        GIT_AUTHOR_EMAIL: 'a@example.org',
        GIT_COMMITTER_NAME: 'a',
        GIT_COMMITTER_EMAIL: 'a@example.org',
      },
    }).trim();
  const git = (cwd: string, ...args: string[]): string => call(cwd, 'git', ...args);
  // one start for three: this process is large, and a fork of it costs more than git's work
  const commit = (message: string): string =>
    call(workspace, 'sh', '-c', `git add -A -f && git commit -q -m ${message} && git rev-parse HEAD`);
  const write = (files: Record<string, string>): void => {
    for (const [file, text] of Object.entries(files)) {
      mkdirSync(path.dirname(path.join(workspace, file)), { recursive: true });
      writeFileSync(path.join(workspace, file), text);
    }
  };
  mkdirSync(workspace, { recursive: true });
  git(workspace, 'init', '-q', '-b', 'main');
  write({ '.github/countersign.yml': of.policy, 'a.txt': 'one\n', '.gitignore': '/out\n', ...of.files });
  const base = commit('base');
  write({ 'b.txt': 'two\n', ...of.changed });
  const head = commit('head');
  git(dir, 'clone', '-q', '--bare', workspace, origin);
  appendFileSync(
    path.join(origin, 'config'),
    '[uploadpack]\n\tallowFilter = true\n\tallowAnySHA1InWant = true\n',
  );

  const repo = { id: 74, full_name: 'octo/repo' };
  const pull = {
    number: 7,
    base: { sha: base, repo },
    head: { sha: head, repo: repo as unknown },
  };
  const eventFile = path.join(dir, 'event.json');
  const event: Stage['event'] = (change) => {
    change(pull);
    writeFileSync(eventFile, JSON.stringify({ action: 'synchronize', pull_request: pull }));
  };
  event(() => undefined);

  const start: Stage['start'] = (inputs = {}, env = {}) => {
    const all = {
      GITHUB_SERVER_URL: `file://${path.join(dir, 'origin')}`,
      GITHUB_EVENT_NAME: 'pull_request',
      GITHUB_EVENT_PATH: eventFile,
      GITHUB_REF: 'refs/pull/7/merge',
      GITHUB_WORKSPACE: workspace,
      RUNNER_TEMP: temp,
      PATH: `${bin}:${process.env['PATH']}`,
      RUNNER_ENVIRONMENT: 'github-hosted',
      RUNNER_OS: 'Linux',
      RUNNER_ARCH: 'X64',
      ImageOS: 'ubuntu24',
      ImageVersion: '20261122.1',
      ...env,
    };
    const given = Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== undefined);
    return startAction({ mode: 'verify', ...inputs }, Object.fromEntries(given), buildBundle());
  };
  return {
    workspace,
    temp,
    bin,
    base,
    head,
    start,
    run: (inputs, env) => start(inputs, env).done,
    git: (...args) => git(workspace, ...args),
    event,
    remove: () => rmSync(dir, { recursive: true, force: true }),
  };
}

/** The receipts as GitHub would keep them: notices of our title, unescaped, cut at 4,096 characters. */
export function receiptsIn(stdout: string): ReceiptDetail[] {
  return stdout.split('\n').flatMap((line) => {
    const match = /^::notice title=([^:,]*)::(.*)$/.exec(line);
    if (match?.[1] !== RECEIPT_TITLE) return [];
    const message = (match[2] ?? '')
      .replaceAll('%0D', '\r')
      .replaceAll('%0A', '\n')
      .replaceAll('%25', '%')
      .slice(0, 4096);
    const read = readReceiptMessage(message);
    if (read === null) throw new Error(`a receipt that does not read: ${message.slice(0, 300)}`);
    return [read];
  });
}
