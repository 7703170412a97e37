/**
 * The container runtime of a resident pool (VER-1): Docker or Podman, found by asking it. Where none answers, the
 * pool says so in one line and takes no verify ticket.
 */
import { Fault } from '../../app/errors.ts';
import { runProgram } from '../process.ts';

/** A runtime that answers. */
export type Runtime = Readonly<{
  program: 'docker' | 'podman';
  version: string;
  /** Podman that belongs to a user without rights: the container's user has to be mapped. */
  rootless: boolean;
  /** What the client itself needs; nothing of it reaches a container. */
  env: Readonly<Record<string, string>>;
}>;

const ASK_MS = 20_000;
const CALL_MS = 120_000;
const CLIENT_VARIABLES = [
  'PATH',
  'HOME',
  'XDG_RUNTIME_DIR',
  'DOCKER_HOST',
  'DOCKER_CONFIG',
  'DOCKER_CONTEXT',
  'CONTAINER_HOST',
  'CONTAINERS_CONF',
];

/** Each program with the question that only a working one answers. */
const QUESTIONS = [
  ['docker', ['version', '--format', '{{.Server.Version}}']],
  ['podman', ['info', '--format', '{{.Version.Version}} {{.Host.Security.Rootless}}']],
] as const;

/** The first runtime that answers; otherwise one line for a person, without a full stop. */
export async function findRuntime(
  environment: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<Runtime | Readonly<{ none: string }>> {
  const env = Object.fromEntries(
    CLIENT_VARIABLES.flatMap((name) => {
      const value = environment[name];
      return value === undefined ? [] : [[name, value]];
    }),
  );
  const why: string[] = [];
  for (const [program, question] of QUESTIONS) {
    const exit = await runProgram({
      argv: [program, ...question],
      cwd: '/',
      env,
      timeoutMs: ASK_MS,
      signal,
      maxStdout: 10_000,
    });
    const [version = '', rootless] = exit.stdout.toString('utf8').trim().split(/\s+/);
    if (exit.code === 0 && /^\d/.test(version))
      return { program, version, rootless: rootless === 'true', env };
    const said = exit.stderr.split('\n').at(-1)?.trim().slice(0, 200) ?? '';
    why.push(
      exit.notStarted === null
        ? `${program} does not answer${said === '' ? '' : ` (${said})`}`
        : `${program} is not there`,
    );
  }
  return { none: `no container runtime: ${why.join(', ')}; takes no verify commands` };
}

/** What the runtime answers, trimmed; throws Fault `bug` with the end of what it said. */
export async function askRuntime(
  runtime: Runtime,
  args: readonly string[],
  signal?: AbortSignal,
): Promise<string> {
  const exit = await runProgram({
    argv: [runtime.program, ...args],
    cwd: '/',
    env: runtime.env,
    timeoutMs: CALL_MS,
    signal: signal ?? new AbortController().signal,
    maxStdout: 1_000_000,
  });
  if (exit.code === 0) return exit.stdout.toString('utf8').trim();
  const said = exit.notStarted ?? exit.stderr.split('\n').at(-1)?.slice(0, 300) ?? '';
  throw new Fault('bug', `${runtime.program} ${args[0]} failed: ${said}`);
}
