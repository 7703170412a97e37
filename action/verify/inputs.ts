/** What mode `verify` knows from outside, parsed once and frozen (ACT-4, VER-1). */
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as z from 'zod';
import type { MachineFacts } from '../../app/domain/receipt/input-hash.ts';
import { Refusal } from '../../app/errors.ts';
import { KEY_NAME } from '../../app/protocol/key-name.ts';

/** Inputs and environment of a job in mode `verify`. */
export type VerifyInputs = Readonly<{
  /** One command of the policy by name; null: all of `from: action`. */
  command: string | null;
  /** The job's own read-only token, for the base commit. */
  token: string;
  githubServer: string;
  /** `owner/name` of the repository that the pull request is against. */
  repository: string;
  /** The id of this workflow run; null where it is not told. */
  workflowRun: string | null;
  event: string;
  eventFile: string;
  ref: string;
  workspace: string;
  tempDir: string;
  path: string;
  /** Only a machine that says so is GitHub's; one that says nothing is somebody's own. */
  hosted: boolean;
  /** Whether code of this job could mint OIDC tokens. */
  canMint: boolean;
  machine: MachineFacts;
  /** Names of variables that look like secrets; never a value. */
  secretNames: readonly string[];
  /** Their values, for redaction. */
  secrets: readonly string[];
  /** What a command's environment is chosen from. */
  environment: Readonly<Record<string, string>>;
  summaryFile: string | null;
  outputFile: string | null;
}>;

const schema = z.strictObject({
  command: z.string().regex(/^(?:[A-Za-z0-9][A-Za-z0-9._-]{0,59})?$/, 'the name of one verify command'),
  token: z.string().max(4096),
  repository: z.string().regex(/^[A-Za-z0-9_.-]{1,100}\/[A-Za-z0-9_.-]{1,100}$/, 'owner/name'),
  workspace: z.string().startsWith('/', 'an absolute path'),
});

/** GitHub's own variables of these names are no secrets of the repository. */
const OWN = /^(?:ACTIONS|GITHUB|INPUT|RUNNER)_/;

/** Parses the environment; throws Refusal `bad_request` naming the variable, never its value. */
export function readVerifyInputs(env: NodeJS.ProcessEnv): VerifyInputs {
  const parsed = schema.safeParse({
    command: env['INPUT_COMMAND']?.trim() ?? '',
    token: env['INPUT_TOKEN']?.trim() ?? '',
    repository: env['GITHUB_REPOSITORY'] ?? '',
    workspace: env['GITHUB_WORKSPACE'] ?? '',
  });
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    const name = String(issue?.path[0] ?? '?');
    const said =
      name === 'command' || name === 'token' ? `Input ${name}` : `The job's GITHUB_${name.toUpperCase()}`;
    throw new Refusal('bad_request', `${said} is not valid: ${issue?.message ?? 'unknown'}`, issue?.message);
  }
  const given = Object.entries(env).flatMap(([name, value]): [string, string][] =>
    value === undefined || value === '' ? [] : [[name, value]],
  );
  const secret = given.filter(([name]) => KEY_NAME.test(name));
  const temp = env['RUNNER_TEMP'] ?? tmpdir();
  return Object.freeze({
    command: parsed.data.command === '' ? null : parsed.data.command,
    token: parsed.data.token,
    githubServer: (env['GITHUB_SERVER_URL'] ?? 'https://github.com').replace(/\/+$/, ''),
    repository: parsed.data.repository,
    workflowRun: env['GITHUB_RUN_ID'] || null,
    event: env['GITHUB_EVENT_NAME'] ?? '',
    eventFile: env['GITHUB_EVENT_PATH'] ?? join(temp, 'no-event'),
    ref: env['GITHUB_REF'] ?? '',
    workspace: parsed.data.workspace,
    tempDir: temp,
    path: env['PATH'] ?? '/usr/local/bin:/usr/bin:/bin',
    hosted: env['RUNNER_ENVIRONMENT'] === 'github-hosted',
    canMint: (env['ACTIONS_ID_TOKEN_REQUEST_URL'] ?? '') !== '',
    machine: {
      os: env['RUNNER_OS'] ?? '',
      arch: env['RUNNER_ARCH'] ?? '',
      image: env['ImageOS'] ?? '',
      version: env['ImageVersion'] ?? '',
    },
    secretNames: secret.map(([name]) => name).filter((name) => !OWN.test(name)),
    secrets: secret.map(([, value]) => value),
    environment: Object.freeze(Object.fromEntries(given)),
    summaryFile: env['GITHUB_STEP_SUMMARY'] || null,
    outputFile: env['GITHUB_OUTPUT'] || null,
  });
}
