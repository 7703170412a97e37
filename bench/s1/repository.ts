/** A repository with a pull request of 300 commits that change 4,000 files, as GitHub would serve it. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

const COMMITS = 300;
const FILES = 4_000;

const policy = `version: 1
reviewers:
  lint: {uses: command, run: [lint, "{path}"], output: sarif, paths: ["**"], trusted: true}
`;

/** Where it is and what is to be read. */
export interface LargePull {
  readonly bare: string;
  readonly base: string;
  readonly head: string;
}

/** Makes it under `folder`. */
export function makeLargePull(folder: string): LargePull {
  const bare = join(folder, 'o', 'large.git');
  const git = (...args: string[]) =>
    execFileSync('git', ['-C', bare, ...args], {
      encoding: 'utf8',
      env: { ...process.env, GIT_CONFIG_GLOBAL: '/dev/null' },
    }).trim();
  execFileSync('git', ['init', '-q', '--bare', '-b', 'main', bare]);
  git('config', 'uploadpack.allowFilter', 'true');
  git('config', 'uploadpack.allowAnySHA1InWant', 'true');
  const lines: string[] = [];
  const inline = (path: string, text: string) =>
    lines.push(`M 100644 inline ${path}`, `data ${Buffer.byteLength(text)}`, text);
  const commit = (ref: string, n: number, message: string) =>
    lines.push(
      `commit ${ref}`,
      `mark :${n + 1}`,
      `committer A <a@x.test> ${1_700_000_000 + n} +0000`,
      `data ${message.length}`,
      message,
    );
  const path = (i: number) => `packages/p${i % 80}/src/d${i % 7}/file${i}.ts`;
  commit('refs/heads/main', 0, 'Start');
  inline('.github/countersign.yml', policy);
  for (let i = 0; i < FILES; i++) inline(path(i), `export const value = ${i};\n`);
  for (let n = 1; n <= COMMITS; n++) {
    commit('refs/pull/1/head', n, `Change number ${n}`);
    lines.push(`from :${n === 1 ? 1 : n}`);
    for (let i = n - 1; i < FILES; i += COMMITS) inline(path(i), `export const value = ${i + 1};\n`);
  }
  execFileSync('git', ['-C', bare, 'fast-import', '--quiet'], { input: `${lines.join('\n')}\n` });
  return { bare, base: git('rev-parse', 'main'), head: git('rev-parse', 'refs/pull/1/head') };
}
