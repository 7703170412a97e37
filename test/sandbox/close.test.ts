import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { startGitHub } from '../../sandbox/github.ts';

const tree = fileURLToPath(new URL('../..', import.meta.url));

const script = `
import { startGitHub } from './sandbox/github.ts';
const gh = await startGitHub();
const alice = gh.createUser('alice');
const text = 'on: workflow_dispatch\\njobs: {a: {runs-on: x, steps: [{run: "echo $$; exec sleep 300"}]}}\\n';
const repository = await gh.createRepository({ owner: alice, files: { '.github/workflows/w.yml': text } });
const file = await gh.actions.files.file(repository, 'w.yml');
if (file === null) throw new Error('no file');
const sha = await repository.tip();
const run = await gh.actions.start({ repository, file, text, ref: 'refs/heads/main', sha, actor: alice, inputs: {} });
while (!/\\d+\\n/.test(run.jobs[0]?.log ?? '')) await new Promise((resolve) => setTimeout(resolve, 20));
console.log(gh.world.root, run.jobs[0]?.log.trim());
if (process.argv.includes('close')) await gh.close();
else process.exit(3);
`;

async function sandboxProcess(
  ...args: string[]
): Promise<{ code: number | null; root: string; job: number }> {
  const child = spawn(
    process.execPath,
    ['--import', 'tsx', '--input-type=module', '-e', script, '--', ...args],
    { cwd: tree, stdio: ['ignore', 'pipe', 'inherit'] },
  );
  let out = '';
  child.stdout.on('data', (chunk: Buffer) => {
    out += chunk.toString();
  });
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve));
  const [root = '', job = ''] = out.trim().split(' ');
  return { code, root, job: Number(job) };
}

// A killed child of a dead parent may stay a zombie until init gets to it: it runs no more.
function alive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  const stat = `/proc/${pid}/stat`;
  return !existsSync(stat) || !/\) [ZX] /.test(readFileSync(stat, 'utf8'));
}

it.each([
  ['close() ends a running job and lets the process go', 'close', 0],
  ['a process that ends without close() leaves no job and no folder', 'exit', 3],
])('%s', async (_, how, code) => {
  const ended = await sandboxProcess(how);
  expect(ended).toMatchObject({ code, job: expect.any(Number) });
  expect(ended.job).toBeGreaterThan(1);
  expect(alive(ended.job)).toBe(false);
  expect(existsSync(ended.root)).toBe(false);
});

it('close() twice and with nothing done is fine', async () => {
  const gh = await startGitHub();
  await gh.close();
  await gh.close();
  expect(existsSync(gh.world.root)).toBe(false);
});
