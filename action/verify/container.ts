/**
 * A verify command in a container of its own (VER-1, VER-2): made, its start recorded, started, and thrown away whatever
 * happens. In it are the work tree, an empty folder for evidence, and what the policy says; no credential, no
 * variable of this machine, no network unless the pool's owner and the policy both say so, no way to more rights.
 * What counts is the exit that the runtime tells of the container, never what its client printed.
 */
import { spawn } from 'node:child_process';
import { chown, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import * as z from 'zod';
import { Fault } from '../../app/errors.ts';
import { NOT_STARTED_EXIT } from '../../app/protocol/receipt.ts';
import { runProgram } from '../process.ts';
import { COMMAND_VARIABLE, OUTPUT_VARIABLE } from './environment.ts';
import type { HeldExit } from './held.ts';
import type { Held, Place } from './place.ts';
import { askRuntime, type Runtime } from './runtime.ts';
import { OWNER_LABEL, POOL_LABEL, UNTIL_LABEL } from './sweep.ts';

/** What a container of a pool is like. */
export type ContainerOptions = Readonly<{
  runtime: Runtime;
  /** An image that is there already: none is pulled with the pool's own rights. */
  image: string;
  /** `none`, or `open`: whatever the machine reaches, its own network too. */
  network: 'none' | 'open';
  memoryMb: number;
  processes: number;
  /** The pool's name and the process that made it: by them what a killed runner left is found. */
  pool: string;
  owner: string;
}>;

/** Where things are in the container. */
const WORK = '/work';
const OUTPUT = '/evidence';
/** The user of a container whose runner is root: nobody. */
const NOBODY = 65_534;
/** In a network of its own any port is free. */
const FIRST_PORT = 20_000;

const MAKE_MS = 120_000;
/** After its time is over a container is still stopped, looked at and removed. */
const LEFT_FOR_S = 600;
const STOP_SECONDS = 2;

const stateSchema = z.object({
  Status: z.string(),
  ExitCode: z.int(),
  OOMKilled: z.boolean().optional(),
});
type State = z.infer<typeof stateSchema>;

/** The arguments that make a container; every value of the policy is an argument of its own. */
export function createArguments(of: {
  options: ContainerOptions;
  name: string;
  user: { uid: number; gid: number };
  workspace: string;
  output: string;
  env: Readonly<Record<string, string>>;
  argv: readonly string[];
  /** When nobody can want it any more, in seconds since 1970. */
  untilS: number;
}): string[] {
  const { options, user } = of;
  const [program = '', ...args] = of.argv;
  for (const path of [of.workspace, of.output])
    if (/[:,]/.test(path))
      throw new Fault('config_value', 'a folder with : or , in its name cannot be mounted');
  return [
    'create',
    `--name=${of.name}`,
    `--label=${POOL_LABEL}=${options.pool}`,
    `--label=${OWNER_LABEL}=${options.owner}`,
    `--label=${UNTIL_LABEL}=${of.untilS}`,
    '--pull=never',
    '--hostname=countersign',
    `--network=${options.network === 'none' ? 'none' : 'bridge'}`,
    '--cap-drop=ALL',
    '--security-opt=no-new-privileges',
    '--read-only',
    '--tmpfs=/tmp:rw,exec,nosuid,nodev,mode=1777',
    `--pids-limit=${options.processes}`,
    `--memory=${options.memoryMb}m`,
    '--no-healthcheck',
    '--restart=no',
    // Podman without rights maps its owner to root unless told to keep the number
    ...(options.runtime.rootless ? ['--userns=keep-id'] : []),
    `--user=${user.uid}:${user.gid}`,
    // Z: a label of its own where SELinux wants one; without meaning elsewhere
    `--volume=${of.workspace}:${WORK}:Z`,
    `--volume=${of.output}:${OUTPUT}:Z`,
    `--workdir=${WORK}`,
    ...Object.entries(of.env).map(([key, value]) => `--env=${key}=${value}`),
    `--entrypoint=${program}`,
    options.image,
    ...args,
  ];
}

/** A place in throw-away containers; throws Fault `config_value` where the image is not there. */
export async function containerPlace(options: ContainerOptions, signal: AbortSignal): Promise<Place> {
  const id = await imageId(options, signal);
  return {
    machine: { os: `container of ${options.network} network`, arch: process.arch, image: id, version: '' },
    reserve: async (names) => ({
      ports: names.map((name, i) => ({ name, port: FIRST_PORT + i })),
      handOver: async () => undefined,
      release: async () => undefined,
    }),
    environment: ({ command, env, ports }) => {
      const lasting: Record<string, string> = {
        CI: 'true',
        HOME: '/tmp',
        TMPDIR: '/tmp',
        [COMMAND_VARIABLE]: command,
        [OUTPUT_VARIABLE]: OUTPUT,
        ...env,
      };
      const numbers = Object.fromEntries(ports.map(({ name, port }) => [name, String(port)]));
      return { lasting, env: { ...lasting, ...numbers } };
    },
    run: (held) => runContained(options, held),
  };
}

async function runContained(options: ContainerOptions, held: Held): Promise<HeldExit> {
  const { runtime } = options;
  const name = `countersign-${crypto.randomUUID()}`;
  const output = join(held.evidence, 'output');
  const user = await ownedBy(held.workspace, output);
  const unstarted: HeldExit = {
    started: false,
    code: NOT_STARTED_EXIT,
    signal: null,
    timedOut: false,
    cancelled: held.signal.aborted,
    ms: 0,
  };
  try {
    const args = createArguments({
      ...held,
      options,
      name,
      user,
      output,
      untilS: Math.ceil((Date.now() + held.timeoutMs) / 1000) + LEFT_FOR_S,
    });
    await askRuntime(runtime, args, held.signal);
    try {
      await held.record(`container ${name}`);
    } catch {
      return unstarted;
    }
    if (held.signal.aborted) return { ...unstarted, cancelled: true };
    const { timedOut, ms } = await attached(runtime, name, held);
    const state = await stateOf(runtime, name);
    // what still runs, or what nobody can tell of, has not passed
    const code = state?.Status === 'exited' ? state.ExitCode : null;
    return { started: true, code, signal: null, timedOut, cancelled: held.signal.aborted, ms };
  } finally {
    await remove(runtime, name);
  }
}

/** Lets it go and follows its output to its end; stops it when its time is over or the runner has to end. */
async function attached(
  runtime: Runtime,
  name: string,
  held: Held,
): Promise<{ timedOut: boolean; ms: number }> {
  const from = performance.now();
  let timedOut = false;
  let stopping: Promise<unknown> | null = null;
  const client = spawn(runtime.program, ['start', '--attach', name], {
    env: runtime.env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const stop = (): void => {
    stopping ??= stopContainer(runtime, name).then(() => client.kill('SIGKILL'));
  };
  const timer = setTimeout(
    () => {
      timedOut = true;
      stop();
    },
    Math.min(held.timeoutMs, 2 ** 31 - 1),
  );
  held.signal.addEventListener('abort', stop, { once: true });
  client.stdout.on('data', (chunk: Buffer) => held.onOutput('stdout', chunk));
  client.stderr.on('data', (chunk: Buffer) => held.onOutput('stderr', chunk));
  try {
    await new Promise<void>((resolve) => {
      client.on('close', () => resolve());
      client.on('error', () => resolve());
    });
    return { timedOut, ms: Math.round(performance.now() - from) };
  } finally {
    clearTimeout(timer);
    held.signal.removeEventListener('abort', stop);
    await stopping;
  }
}

/** Its work tree and output folder, owned by the user that the container runs as. */
async function ownedBy(workspace: string, output: string): Promise<{ uid: number; gid: number }> {
  await mkdir(output, { recursive: true, mode: 0o700 });
  const [uid = NOBODY, gid = NOBODY] = [process.getuid?.(), process.getgid?.()];
  if (uid !== 0) return { uid, gid };
  await chown(output, NOBODY, NOBODY);
  const owner = `${NOBODY}:${NOBODY}`;
  const exit = await runProgram({
    argv: ['chown', '--recursive', '--no-dereference', owner, workspace],
    cwd: '/',
    env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' },
    timeoutMs: MAKE_MS,
    signal: new AbortController().signal,
    maxStdout: 0,
  });
  if (exit.code !== 0)
    throw new Fault('bug', 'the work tree could not be given to the user of the container');
  return { uid: NOBODY, gid: NOBODY };
}

async function imageId(options: ContainerOptions, signal: AbortSignal): Promise<string> {
  const { runtime, image } = options;
  // an image is named by the policy of a repository, and must be no option
  if (!/^[\w][\w.:/@-]{0,299}$/.test(image)) throw new Fault('config_value', 'not the name of an image');
  try {
    const said = await askRuntime(runtime, ['image', 'inspect', '--format={{.Id}}', image], signal);
    const id = /^(?:sha256:)?([0-9a-f]{64})$/.exec(said)?.[1];
    if (id !== undefined) return id;
  } catch (error) {
    if (signal.aborted) throw error;
  }
  throw new Fault('config_value', `the image ${image} is not on this machine, and the pool pulls none`);
}

async function stateOf(runtime: Runtime, name: string): Promise<State | null> {
  try {
    const said = await askRuntime(runtime, ['inspect', '--type=container', '--format={{json .State}}', name]);
    const parsed = stateSchema.safeParse(JSON.parse(said));
    return parsed.success ? parsed.data : null;
  } catch {
    return null;
  }
}

async function stopContainer(runtime: Runtime, name: string): Promise<void> {
  await askRuntime(runtime, ['stop', `--time=${STOP_SECONDS}`, name]).catch(() => '');
}

/** Removes it with all that it wrote; what is not there is removed already. */
async function remove(runtime: Runtime, name: string): Promise<void> {
  await askRuntime(runtime, ['rm', '--force', '--volumes', name]).catch(() => '');
}
