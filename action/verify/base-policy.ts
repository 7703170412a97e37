/**
 * The policy of the base commit (RUN-8, VER-1), by git from the repository the pull request is against. The
 * checkout is never asked: whoever opened the pull request wrote what lies there.
 */
import { mkdir } from 'node:fs/promises';
import type { ActionCommand } from '../../app/domain/policy/verify.ts';
import { POLICY_PATH, type Policy, parsePolicy } from '../../app/domain/policy.ts';
import { Fault, Refusal } from '../../app/errors.ts';
import { RECEIPTS_A_STEP } from '../../app/protocol/receipt.ts';
import { type Git, git, gitEnvironment } from '../objects/git.ts';
import { sleep } from '../sleep.ts';
import type { VerifyInputs } from './inputs.ts';

const TRIES = 3;

/** Reads it; throws Fault `git_unavailable`, or Refusal `config_invalid` where there is none or it does not read. */
export async function readBasePolicy(
  inputs: VerifyInputs,
  base: string,
  dir: string,
  signal: AbortSignal,
): Promise<Policy> {
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const at: Git = {
    dir,
    env: gitEnvironment({
      home: dir,
      path: inputs.path,
      remote: `${inputs.githubServer}/${inputs.repository}.git`,
      token: inputs.token,
      serverUrl: inputs.githubServer,
    }),
  };
  await git(at, ['init', '--quiet', '--bare', '--template=', '.'], signal);
  await git(at, ['config', 'core.repositoryFormatVersion', '1'], signal);
  await git(at, ['config', 'extensions.partialClone', 'origin'], signal);
  const fetch = ['fetch', '--quiet', '--no-tags', '--no-write-fetch-head', '--depth=1', '--filter=blob:none'];
  const bytes = await retried(signal, async () => {
    await git(at, [...fetch, 'origin', base], signal);
    const entry = (await git(at, ['ls-tree', '-z', base, '--', POLICY_PATH], signal)).toString('utf8');
    const oid = /^100(?:644|755) blob ([0-9a-f]+)\t/.exec(entry)?.[1];
    return oid === undefined ? null : git(at, ['cat-file', 'blob', oid], signal);
  });
  const short = base.slice(0, 12);
  if (bytes === null)
    throw new Refusal(
      'config_invalid',
      `the base commit ${short} has no file ${POLICY_PATH}: verify commands are read from there, never from the pull request`,
      'a policy on the base branch',
    );
  const reading = parsePolicy(bytes);
  if (reading.ok) return reading.policy;
  const [first] = reading.errors;
  throw new Refusal(
    'config_invalid',
    `${POLICY_PATH} of the base commit ${short} is not valid: line ${first?.line ?? '?'}: ${first?.message ?? 'unknown'}`,
    first?.accepted,
  );
}

async function retried<T>(signal: AbortSignal, attempt: () => Promise<T>): Promise<T> {
  for (let n = 1; ; n++) {
    try {
      return await attempt();
    } catch (error) {
      if (signal.aborted || n >= TRIES || !(error instanceof Fault && error.retryable)) throw error;
      await sleep(500 * 4 ** (n - 1), signal);
    }
  }
}

/** The commands this step runs: the named one, or all of `from: action`; throws Refusal `bad_request` saying which there are. */
export function commandsOf(policy: Policy, name: string | null): [name: string, command: ActionCommand][] {
  const all = [...policy.verify].flatMap(([key, command]): [string, ActionCommand][] =>
    command.from === 'action' ? [[key, command]] : [],
  );
  const accepted = all.length === 0 ? 'a command with from: action' : all.map(([key]) => key).join(', ');
  if (all.length === 0)
    throw new Refusal('bad_request', 'the base policy has no verify command with from: action', accepted);
  if (name !== null) {
    const found = all.filter(([key]) => key === name);
    if (found.length > 0) return found;
    const other = policy.verify.get(name);
    throw new Refusal(
      'bad_request',
      other === undefined
        ? `the base policy has no verify command ${name}; it has ${accepted}`
        : `the verify command ${name} of the base policy is from: ${other.from}, not from: action`,
      accepted,
    );
  }
  if (all.length > RECEIPTS_A_STEP)
    throw new Refusal(
      'bad_request',
      `${all.length} commands in one step, of which GitHub would keep the receipts of ${RECEIPTS_A_STEP}`,
      'one job a command, with the input command, as `countersign workflow` prints it',
    );
  return all;
}
