/** Runs the built bundle as GitHub's runner does: a child process, inputs and files in its environment, nothing of ours beside. */
import { execFileSync, spawn } from 'node:child_process';
import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { LeasedTicket } from '../../app/protocol/runner.ts';

export const root = path.resolve(import.meta.dirname, '../..');
const bundle = path.join(root, 'action/dist/index.js');

export type ActionRun = {
  code: number | null;
  signal: string | null;
  stdout: string;
  stderr: string;
  outputs: Record<string, string>;
  summary: string;
  ms: number;
};
export type RunningAction = {
  done: Promise<ActionRun>;
  kill: (signal: NodeJS.Signals) => void;
  stdout: () => string;
  temp: string;
};

/** Starts the bundle; RUNNER_TEMP is a folder of its own that is removed when it ended. */
export function startAction(
  inputs: Record<string, string>,
  env: Record<string, string> = {},
  bundleFile = bundle,
): RunningAction {
  const temp = mkdtempSync(path.join(tmpdir(), 'cs-action-'));
  const files = { GITHUB_OUTPUT: path.join(temp, 'output'), GITHUB_STEP_SUMMARY: path.join(temp, 'summary') };
  for (const file of Object.values(files)) writeFileSync(file, '');
  const given = Object.entries({ idle_ms: '150', ...inputs }).map(([name, value]) => [
    `INPUT_${name.toUpperCase()}`,
    value,
  ]);
  const from = performance.now();
  const child = spawn(process.execPath, [bundleFile], {
    env: {
      PATH: `${path.join(root, 'node_modules/.bin')}:${process.env['PATH']}`,
      HOME: temp,
      RUNNER_TEMP: temp,
      GITHUB_REPOSITORY: 'octo/repo',
      GITHUB_RUN_ID: '77',
      GITHUB_SERVER_URL: 'https://github.example',
      ...files,
      ...Object.fromEntries(given),
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk: Buffer) => {
    stdout += chunk.toString();
  });
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  const done = new Promise<ActionRun>((resolve) => {
    child.on('close', (code, signal) => {
      const outputs = Object.fromEntries(
        readFileSync(files.GITHUB_OUTPUT, 'utf8')
          .split('\n')
          .filter((line) => line !== '')
          .map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
      );
      const summary = readFileSync(files.GITHUB_STEP_SUMMARY, 'utf8');
      rmSync(temp, { recursive: true, force: true });
      resolve({ code, signal, stdout, stderr, outputs, summary, ms: performance.now() - from });
    });
  });
  return { done, kill: (signal) => void child.kill(signal), stdout: () => stdout, temp };
}

export type TestRepository = {
  dir: string;
  url: string;
  base: string;
  head: string;
  /** Blob id of a path at base or head, null where it is not there. */
  blob: (at: 'base' | 'head', file: string) => string | null;
  /** What a ticket needs of the repository for a path. */
  at: (file: string) => Pick<LeasedTicket, 'path' | 'head' | 'merge_base' | 'blob' | 'repository'>;
  git: (...args: string[]) => string;
  remove: () => void;
};

/** A real repository of two commits, served by path as GitHub serves it: objects by id, partial clones allowed. */
export function makeRepository(
  base: Record<string, string | Buffer>,
  head: Record<string, string | Buffer | null>,
  more?: (git: (...args: string[]) => string, dir: string) => void,
): TestRepository {
  const dir = mkdtempSync(path.join(tmpdir(), 'cs-repo-'));
  const call = (program: string, ...args: string[]): string =>
    execFileSync(program, args, {
      cwd: dir,
      encoding: 'utf8',
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
  const git = (...args: string[]): string => call('git', ...args);
  // what can go in one start does: this process is large, and a fork of it costs more than git's work
  git('init', '-q', '-b', 'main');
  appendFileSync(
    path.join(dir, '.git/config'),
    '[uploadpack]\n\tallowFilter = true\n\tallowAnySHA1InWant = true\n',
  );
  const commit = (message: string, first = 'git add -A -f && '): string =>
    call('sh', '-c', `${first}git commit -q --allow-empty -m ${message} && git rev-parse HEAD`);
  const write = (files: Record<string, string | Buffer | null>): void => {
    for (const [file, content] of Object.entries(files)) {
      const at = path.join(dir, file);
      if (content === null) rmSync(at);
      else {
        mkdirSync(path.dirname(at), { recursive: true });
        writeFileSync(at, content);
      }
    }
  };
  write(base);
  const baseId = commit('base');
  write(head);
  if (more !== undefined) {
    git('add', '-A', '-f');
    // what it puts into the index need not be a file
    more(git, dir);
  }
  const headId = commit('head', more === undefined ? undefined : '');
  git('update-ref', 'refs/pull/1/head', headId);
  const listed = (commitId: string) => {
    let entries: ReadonlyMap<string, string> | undefined;
    return (file: string): string | null => {
      entries ??= new Map(
        git('ls-tree', '-r', '-t', '-z', commitId)
          .split('\0')
          .map((line) => [line.slice(line.indexOf('\t') + 1), line.split(/[ \t]/, 3)[2] ?? ''] as const),
      );
      return entries.get(file) ?? null;
    };
  };
  const blobs = { base: listed(baseId), head: listed(headId) };
  const blob = (at: 'base' | 'head', file: string): string | null => blobs[at](file);
  return {
    dir,
    url: `file://${dir}`,
    base: baseId,
    head: headId,
    blob,
    git,
    at: (file) => ({
      path: file,
      head: headId,
      merge_base: baseId,
      blob: { base: blob('base', file), head: blob('head', file) },
      repository: { id: '1', owner: 'octo', name: 'repo', clone_url: `file://${dir}` },
    }),
    remove: () => rmSync(dir, { recursive: true, force: true }),
  };
}
