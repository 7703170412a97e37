/** The Action's inputs and environment, parsed once (ACT-4): the only reader of process.env in action/. */
import { tmpdir } from 'node:os';
import * as z from 'zod';
import { LIMITS } from '../app/domain/limits.ts';
import { Refusal } from '../app/errors.ts';
import { KEY_NAME } from '../app/protocol/key-name.ts';

const loopback = new Set(['127.0.0.1', '[::1]', 'localhost']);

/** A URL that may see credentials: https, or http on the loopback interface. */
export function isSafeUrl(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : null;
  return (
    url !== null &&
    url.username === '' &&
    (url.protocol === 'https:' || (url.protocol === 'http:' && loopback.has(url.hostname)))
  );
}

const inputsSchema = z.strictObject({
  server: z.string().max(500).refine(isSafeUrl, 'an https URL (http only on the loopback interface)'),
  audience: z.string().max(500),
  run: z.string().max(100),
  nonce: z.string().max(100),
  parallel: z.coerce.number().int().min(LIMITS.actionParallel.min).max(LIMITS.actionParallel.max),
  idle_ms: z.coerce.number().int().min(LIMITS.idleMs.min).max(LIMITS.idleMs.max),
  mode: z.literal('review', 'review or verify (fix is not supported yet)'),
  command: z.literal('', 'nothing in mode review; it names a command of mode verify'),
  token: z.string().max(4096),
});

/** The inputs and their defaults: data, so that a test can hold them against action.yml. */
export const inputDefaults = {
  server: '',
  audience: '',
  run: '',
  nonce: '',
  parallel: String(LIMITS.actionParallel.default),
  idle_ms: String(LIMITS.idleMs.default),
  mode: 'review',
  command: '',
  token: '',
} as const satisfies Record<keyof z.infer<typeof inputsSchema>, string>;

/** Whether this job asks for mode `verify`, which has inputs of its own (action/verify/inputs.ts). */
export function asksToVerify(env: NodeJS.ProcessEnv): boolean {
  return env['INPUT_MODE']?.trim() === 'verify';
}

/** Everything the Action knows in mode `review`, frozen. */
export type Inputs = Readonly<{
  /** The server's URL without a slash at the end. */
  server: string;
  audience: string;
  run: string | null;
  nonce: string | null;
  parallel: number;
  idleMs: number;
  /** The job's own read-only token for fetching (AUT-4); empty for public or local repositories. */
  token: string;
  githubServer: string;
  tempDir: string;
  /** PATH of the job, handed on to commands. */
  path: string;
  repository: string | null;
  workflowRun: string | null;
  /** The files GitHub reads the step summary and the outputs from. */
  summaryFile: string | null;
  outputFile: string | null;
  /** The value of an environment variable that a reviewer's `key` names. */
  secret: (name: string) => string | null;
  /** The names of the variables that hold such values, those of GitHub's own left out (RUN-9). */
  keys: readonly string[];
  /** Every value in the environment that is declared or named as a secret (REV-8). */
  secrets: readonly string[];
}>;

/** The runner's own, and GitHub's: none of them is a provider's key. */
const GITHUBS = /^(?:ACTIONS|GITHUB|INPUT|RUNNER)_/;

/** Parses the environment; throws Refusal `bad_request` naming the input and what it takes, never its value. */
export function readInputs(env: NodeJS.ProcessEnv): Inputs {
  const given = Object.fromEntries(
    Object.entries(inputDefaults).map(([name, fallback]) => {
      const value = env[`INPUT_${name.toUpperCase()}`]?.trim();
      return [name, value === undefined || value === '' ? fallback : value];
    }),
  );
  const parsed = inputsSchema.safeParse(given);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    throw new Refusal(
      'bad_request',
      `Input ${issue?.path.join('.') ?? '?'} is not valid: ${issue?.message ?? 'unknown'}`,
      issue?.message,
    );
  }
  const inputs = parsed.data;
  const server = inputs.server.replace(/\/+$/, '');
  return Object.freeze({
    server,
    audience: inputs.audience === '' ? server : inputs.audience,
    run: inputs.run === '' ? null : inputs.run,
    nonce: inputs.nonce === '' ? null : inputs.nonce,
    parallel: inputs.parallel,
    idleMs: inputs.idle_ms,
    token: inputs.token,
    githubServer: env['GITHUB_SERVER_URL'] ?? 'https://github.com',
    tempDir: env['RUNNER_TEMP'] ?? tmpdir(),
    path: env['PATH'] ?? '/usr/local/bin:/usr/bin:/bin',
    repository: env['GITHUB_REPOSITORY'] ?? null,
    workflowRun: env['GITHUB_RUN_ID'] ?? null,
    summaryFile: env['GITHUB_STEP_SUMMARY'] || null,
    outputFile: env['GITHUB_OUTPUT'] || null,
    secret: (name: string) => env[name]?.trim() || null,
    keys: Object.entries(env)
      .flatMap(([name, value]) =>
        KEY_NAME.test(name) && !GITHUBS.test(name) && name.length <= 100 && (value ?? '').trim() !== ''
          ? [name]
          : [],
      )
      .slice(0, 100),
    secrets: Object.entries(env)
      .filter(([name, value]) => KEY_NAME.test(name) && (value ?? '') !== '')
      .map(([, value]) => value ?? ''),
  });
}
