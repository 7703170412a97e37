/**
 * What a resident runner is told: by its environment and the options of its command, parsed once. A policy of
 * another repository decides what runs here, so which keys, addresses and programs it may use is said here and
 * nowhere else (POOL-1).
 */
import { readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { parse as parseYaml } from 'yaml';
import * as z from 'zod';
import { AGENTS } from '../../app/domain/transcript.ts';
import { Refusal } from '../../app/errors.ts';
import { KEY_NAME } from '../../app/protocol/key-name.ts';
import { type Inputs, isSafeUrl } from '../inputs.ts';
import { type Allowance, allowanceOf } from './allowance.ts';
import { type ContainerAllowance, type ContainerWords, readContainers } from './containers.ts';

/** The options of `countersign runner`, as they were written. */
export type ResidentOptions = Readonly<{
  pool: string;
  server?: string | undefined;
  tokenFile?: string | undefined;
  providers?: string | undefined;
  commands?: string | undefined;
  parallel?: string | undefined;
}> &
  ContainerWords;

/** What the runner is made of. `token` is read anew for each login, so that a file can be replaced meanwhile. */
export type ResidentSettings = Readonly<{
  pool: string;
  token: () => string;
  inputs: Inputs;
  allowance: Allowance;
  /** What verify commands may use here; null: none run (VER-1). */
  containers: ContainerAllowance | null;
}>;

const variable = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,99}$/);
const address = z
  .string()
  .max(500)
  .refine((text) => URL.canParse(text) && /^https?:/.test(text));
const providersSchema = z.strictObject({
  providers: z
    .array(
      z
        .strictObject({
          uses: z.enum(['anthropic', 'openai', 'xai', 'openai-compatible', ...AGENTS]),
          for: address.optional(),
          base_url: address.optional(),
          key: variable.optional(),
        })
        .refine((one) => one.uses !== 'openai-compatible' || (one.for ?? one.base_url) !== undefined),
    )
    .max(50),
});
/** One entry of a providers file. */
export type ProviderEntry = z.infer<typeof providersSchema>['providers'][number];

const bad = (message: string, accepted?: string): Refusal => new Refusal('bad_request', message, accepted);

/** Reads all of it; throws Refusal `bad_request` naming what is missing or wrong, never a value that is secret. */
export function readSettings(env: NodeJS.ProcessEnv, options: ResidentOptions): ResidentSettings {
  const server = (options.server ?? env['COUNTERSIGN_URL'] ?? '').trim().replace(/\/+$/, '');
  if (server === '') throw bad('COUNTERSIGN_URL is not set', 'the address of the server');
  if (!isSafeUrl(server))
    throw bad(`COUNTERSIGN_URL is not accepted`, 'an https URL (http only on the loopback interface)');
  const parallel = Number(options.parallel ?? env['COUNTERSIGN_PARALLEL'] ?? 4);
  if (!Number.isInteger(parallel) || parallel < 1 || parallel > 64)
    throw bad('--parallel is not accepted', 'a whole number from 1 to 64');
  const token = readToken(env, options.tokenFile);
  token();
  const allowance = allowanceOf({
    providers: readProviders(options.providers),
    commands: (options.commands ?? '').split(',').flatMap((one) => one.trim() || []),
  });
  const isKey = (name: string) => allowance.keys.has(name) && (env[name] ?? '').trim() !== '';
  return {
    pool: options.pool,
    token,
    allowance,
    containers: readContainers(options),
    inputs: Object.freeze({
      server,
      audience: '',
      run: null,
      nonce: null,
      parallel,
      idleMs: 0,
      token: '',
      githubServer: '',
      tempDir: tmpdir(),
      path: env['PATH'] ?? '/usr/local/bin:/usr/bin:/bin',
      repository: null,
      workflowRun: null,
      summaryFile: null,
      outputFile: null,
      // a policy names variables: only those that the operator set apart for models are told
      secret: (name: string) => (isKey(name) ? (env[name]?.trim() ?? null) : null),
      keys: [...allowance.keys].filter(isKey),
      secrets: Object.entries(env).flatMap(([name, value]) =>
        (KEY_NAME.test(name) || allowance.keys.has(name)) && (value ?? '') !== '' ? [value ?? ''] : [],
      ),
    }),
  };
}

/** A token is a credential: from the environment or a file, never from the command line, where every process can read it. */
function readToken(env: NodeJS.ProcessEnv, option: string | undefined): () => string {
  const file = option ?? env['COUNTERSIGN_POOL_TOKEN_FILE'];
  return () => {
    const said = file === undefined ? (env['COUNTERSIGN_POOL_TOKEN'] ?? '') : textOf(file, '--token-file');
    const token = said.trim();
    if (token === '')
      throw bad(
        file === undefined ? 'COUNTERSIGN_POOL_TOKEN is not set' : 'the token file is empty',
        'what countersign pool token printed, in COUNTERSIGN_POOL_TOKEN or in the file that --token-file names',
      );
    if (!/^[A-Za-z0-9_-]{20,200}$/.test(token)) throw bad('that is no pool token', 'what pool token printed');
    return token;
  };
}

function readProviders(file: string | undefined): readonly ProviderEntry[] {
  if (file === undefined) return [];
  let said: unknown;
  try {
    said = parseYaml(textOf(file, '--providers'));
  } catch (error) {
    throw error instanceof Refusal ? error : bad(`${file} is not YAML`);
  }
  const parsed = providersSchema.safeParse(said);
  if (parsed.success) return parsed.data.providers;
  const issue = parsed.error.issues[0];
  throw bad(
    `${file}: ${issue?.path.join('.') || 'the file'} is not accepted`,
    'providers: a list of {uses, for, base_url, key}; openai-compatible needs for or base_url',
  );
}

function textOf(file: string, option: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    throw bad(`${file} cannot be read`, `a file that this user may read, for ${option}`);
  }
}
