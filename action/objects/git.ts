/** Git as the Action uses it: no configuration of the machine, no prompts, credentials in the environment only (ACT-2, ACT-4). */
import { Fault } from '../../app/errors.ts';
import { runProgram } from '../process.ts';

/** Where and how git runs. */
export type Git = Readonly<{ dir: string; env: Readonly<Record<string, string>> }>;

const GIT_TIMEOUT_MS = 180_000;
const MAX_OUTPUT = 256 * 1024 * 1024;

/**
 * The environment git gets: built from nothing. The token travels as a header of requests to
 * `remote` alone, and only when that is on the GitHub server this job belongs to.
 */
export function gitEnvironment(of: {
  home: string;
  path: string;
  remote: string;
  token: string;
  serverUrl: string;
}): Record<string, string> {
  const config: [string, string][] = [
    ['gc.auto', '0'],
    ['maintenance.auto', 'false'],
    ['core.quotePath', 'false'],
    ['remote.origin.url', of.remote],
    ['remote.origin.promisor', 'true'],
    ['remote.origin.partialclonefilter', 'blob:none'],
  ];
  const origin = originOf(of.remote);
  if (of.token !== '' && origin !== null && origin === originOf(of.serverUrl)) {
    const basic = Buffer.from(`x-access-token:${of.token}`).toString('base64');
    config.push([`http.${origin}/.extraheader`, `AUTHORIZATION: basic ${basic}`]);
  }
  const env: Record<string, string> = {
    PATH: of.path,
    HOME: of.home,
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_TERMINAL_PROMPT: '0',
    GIT_ALLOW_PROTOCOL: 'https:http:file',
    GIT_CONFIG_COUNT: String(config.length),
    LC_ALL: 'C',
  };
  config.forEach(([key, value], i) => {
    env[`GIT_CONFIG_KEY_${i}`] = key;
    env[`GIT_CONFIG_VALUE_${i}`] = value;
  });
  return env;
}

function originOf(url: string): string | null {
  if (!URL.canParse(url)) return null;
  const { origin, protocol } = new URL(url);
  return protocol === 'https:' || protocol === 'http:' ? origin : null;
}

/** Runs git to its end and gives standard output; throws Fault `git_unavailable` naming the subcommand. */
export async function git(
  at: Git,
  args: readonly string[],
  signal: AbortSignal,
  input?: string | Buffer,
): Promise<Buffer> {
  const exit = await runProgram({
    argv: ['git', ...args],
    cwd: at.dir,
    env: at.env,
    ...(input === undefined ? {} : { input }),
    timeoutMs: GIT_TIMEOUT_MS,
    signal,
    maxStdout: MAX_OUTPUT,
  });
  if (exit.code === 0 && !exit.truncated) return exit.stdout;
  const why =
    exit.notStarted ?? (exit.timedOut ? 'timed out' : (exit.stderr.split('\n').at(-1) ?? '').slice(0, 300));
  throw new Fault('git_unavailable', `git ${args[0]} failed (${exit.code ?? exit.signal ?? '-'}): ${why}`, {
    retryable: exit.notStarted === null,
  });
}
