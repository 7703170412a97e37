/**
 * The environment, read once into one frozen Config; nothing else reads `process.env`. Everything
 * that is missing or wrong is told at once, with what is accepted, and never with the value.
 */
import { createPrivateKey } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import * as z from 'zod';
import { Fault } from './errors.ts';

/** Levels of logging, least first. */
const LOG_LEVELS = ['silent', 'fatal', 'error', 'warn', 'info', 'debug', 'trace'] as const;

/** Variables by name, as the operating system gives them. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** What is needed to reach the data. */
export interface DataConfig {
  /** An outside Postgres; null: the embedded one in `dataDir`. */
  readonly databaseUrl: string | null;
  /** Absolute folder for what the server keeps on disk. */
  readonly dataDir: string;
  /** The ledger's keys: their JSON, or the absolute path of a file; null: `keys.json` in `dataDir`. */
  readonly keys: string | null;
  readonly logLevel: (typeof LOG_LEVELS)[number];
  /** Those of the named variables that are set, as they are: what a child process inherits. */
  readonly inherit: (names: readonly string[]) => Readonly<Record<string, string>>;
}

/** Everything the server is told from outside. */
export interface Config extends DataConfig {
  readonly host: string;
  /** 0 takes a free port. */
  readonly port: number;
  /** Where the server is reached, without a trailing slash; null: where it listens. */
  readonly publicUrl: string | null;
  readonly appId: string;
  /** The App's private key as PEM. */
  readonly privateKey: string;
  /** The secrets that a delivery may be signed with: the present one and, in a rotation, the one before. */
  readonly webhookSecrets: readonly string[];
  readonly apiUrl: string;
  readonly serverUrl: string;
  readonly oidcIssuer: string;
  /** The audience of runners' tokens; null: the public URL. */
  readonly oidcAudience: string | null;
  /** The App's OAuth client, for signing people in to the pages (OPS-8); null: the pages say what is missing. */
  readonly signIn: { readonly clientId: string; readonly clientSecret: string } | null;
}

const url = z
  .string()
  .refine((text) => {
    const parsed = URL.canParse(text) ? new URL(text) : null;
    return (
      parsed !== null && (parsed.protocol === 'https:' || parsed.protocol === 'http:') && parsed.search === ''
    );
  })
  .transform((text) => text.replace(/\/+$/, ''));
const secret = z
  .string()
  // Probot's own fallback is the word "development", which anyone may sign with (facts/security.md, finding 8)
  .refine((text) => text !== 'development' && Buffer.byteLength(text) >= 32);
const pem = z.string().transform((text, context) => {
  const unfolded = text.includes('-----BEGIN') ? text.replaceAll('\\n', '\n') : decodeBase64(text);
  try {
    if (createPrivateKey(unfolded).asymmetricKeyType === 'rsa') return unfolded;
  } catch {
    // told below, without the reason: OpenSSL's messages may quote the input
  }
  context.addIssue({ code: 'custom', message: 'not a key' });
  return z.NEVER;
});

/** One variable: how it is read, what is accepted, and its default (`undefined`: none). */
interface Variable<T> {
  readonly schema: z.ZodType<T>;
  readonly accepted: string;
}

const DATABASE_URL: Variable<string> = {
  schema: z.string().regex(/^postgres(?:ql)?:\/\/\S+$/),
  accepted: 'a URL postgres://user:password@host:port/database',
};
const DATA_DIR: Variable<string> = {
  schema: z.string().transform((path) => resolve(path)),
  accepted: 'the path of a folder',
};
const KEYS: Variable<string> = {
  schema: z.string().transform((text) => (text.trimStart().startsWith('{') ? text.trim() : resolve(text))),
  accepted:
    'the path of a key file, or its JSON {"roots": {kid: base64}, "current": kid, "log": {"name", "seed"}}',
};
const LOG_LEVEL: Variable<(typeof LOG_LEVELS)[number]> = {
  schema: z.enum(LOG_LEVELS),
  accepted: LOG_LEVELS.join(', '),
};
const HOST: Variable<string> = { schema: z.string().regex(/^\S+$/), accepted: 'an address to listen on' };
const PORT: Variable<number> = {
  schema: z
    .string()
    .regex(/^\d{1,5}$/)
    .transform(Number)
    .refine((port) => port < 65_536),
  accepted: 'a number from 0 (any free port) to 65535',
};
const URLS: Variable<string> = { schema: url, accepted: 'an http or https URL without a query' };
const APP_ID: Variable<string> = {
  schema: z.string().regex(/^[1-9]\d{0,19}$/),
  accepted: 'the number of the GitHub App',
};
const PRIVATE_KEY: Variable<string> = {
  schema: pem,
  accepted: 'an RSA private key in PEM, line ends as they are or as \\n, or all of it in base64',
};
const SECRET: Variable<string> = {
  schema: secret,
  accepted: 'at least 32 bytes that nobody can guess, and not the word "development"',
};
const AUDIENCE: Variable<string> = { schema: z.string().regex(/^\S{1,200}$/), accepted: 'a word or URL' };
const CLIENT_ID: Variable<string> = {
  schema: z.string().regex(/^[\w.-]{1,100}$/),
  accepted: 'the client id of the GitHub App, which is not its number',
};
const CLIENT_SECRET: Variable<string> = {
  schema: z.string().regex(/^\S{20,255}$/),
  accepted: 'a client secret of the GitHub App',
};

class Reader {
  readonly missing: string[] = [];
  readonly wrong: string[] = [];
  readonly #env: Environment;
  constructor(env: Environment) {
    this.#env = env;
  }

  /** A set variable that is empty counts as not set, as most shells and compose files mean it. */
  has(name: string): boolean {
    return (this.#env[name] ?? '') !== '';
  }

  /** Those of some variables that are set, as they are. */
  pick(names: readonly string[]): Readonly<Record<string, string>> {
    const set = names.flatMap((name) => {
      const value = this.#env[name];
      return value === undefined || value === '' ? [] : [[name, value] as const];
    });
    return Object.freeze(Object.fromEntries(set));
  }

  optional<T>(name: string, variable: Variable<T>): T | null {
    if (!this.has(name)) return null;
    const read = variable.schema.safeParse(this.#env[name]);
    if (read.success) return read.data;
    this.wrong.push(`${name}: ${variable.accepted}`);
    return null;
  }

  required<T>(name: string, variable: Variable<T>): T | null {
    if (!this.has(name)) this.missing.push(`${name}: ${variable.accepted}`);
    return this.optional(name, variable);
  }

  /** Throws all that was found at once. */
  settle(): void {
    if (this.missing.length === 0 && this.wrong.length === 0) return;
    const lines = [
      ...this.missing.map((line) => `not set: ${line}`),
      ...this.wrong.map((line) => `not accepted: ${line}`),
    ];
    throw new Fault(
      this.missing.length > 0 ? 'config_missing' : 'config_value',
      `the environment ${this.missing.length > 0 ? 'is not complete' : 'holds what is not accepted'}\n  ${lines.join('\n  ')}`,
    );
  }
}

/** What is needed to reach the data, from the environment. Throws `config_value`. */
export function loadDataConfig(env: Environment = process.env): DataConfig {
  const reader = new Reader(env);
  const config = readData(reader);
  reader.settle();
  return Object.freeze(config);
}

/** Where GitHub's pages are, without a trailing slash: told, or near its API. Throws `config_value`. */
export function loadServerUrl(env: Environment = process.env): string {
  const reader = new Reader(env);
  const apiUrl = reader.optional('GITHUB_API_URL', URLS) ?? 'https://api.github.com';
  const serverUrl = reader.optional('GITHUB_SERVER_URL', URLS) ?? neighbours(apiUrl).serverUrl;
  reader.settle();
  return serverUrl;
}

/** The whole configuration, frozen. Throws `config_missing` or `config_value`, naming every variable at fault and what is accepted. */
export function loadConfig(env: Environment = process.env): Config {
  const reader = new Reader(env);
  const data = readData(reader);
  const apiUrl = reader.optional('GITHUB_API_URL', URLS) ?? 'https://api.github.com';
  const near = neighbours(apiUrl);
  const secrets = [
    reader.required('WEBHOOK_SECRET', SECRET),
    reader.optional('WEBHOOK_SECRET_PREVIOUS', SECRET),
  ];
  const config: Config = {
    ...data,
    host: reader.optional('HOST', HOST) ?? '127.0.0.1',
    port: reader.optional('PORT', PORT) ?? 3000,
    publicUrl: reader.optional('PUBLIC_URL', URLS),
    appId: reader.required('APP_ID', APP_ID) ?? '',
    privateKey: readPrivateKey(reader) ?? '',
    webhookSecrets: Object.freeze(secrets.filter((one) => one !== null)),
    apiUrl,
    serverUrl: reader.optional('GITHUB_SERVER_URL', URLS) ?? near.serverUrl,
    oidcIssuer: reader.optional('ACTIONS_OIDC_ISSUER', URLS) ?? near.oidcIssuer,
    oidcAudience: reader.optional('OIDC_AUDIENCE', AUDIENCE),
    signIn: readSignIn(reader),
  };
  reader.settle();
  return Object.freeze(config);
}

function readData(reader: Reader): DataConfig {
  return {
    databaseUrl: reader.optional('DATABASE_URL', DATABASE_URL),
    dataDir: reader.optional('COUNTERSIGN_DATA_DIR', DATA_DIR) ?? resolve('.countersign'),
    keys: reader.optional('COUNTERSIGN_KEYS', KEYS),
    logLevel: reader.optional('LOG_LEVEL', LOG_LEVEL) ?? 'info',
    inherit: (names) => reader.pick(names),
  };
}

/** Both or neither: half a client signs nobody in. */
function readSignIn(reader: Reader): Config['signIn'] {
  if (!reader.has('CLIENT_ID') && !reader.has('CLIENT_SECRET')) return null;
  const clientId = reader.required('CLIENT_ID', CLIENT_ID);
  const clientSecret = reader.required('CLIENT_SECRET', CLIENT_SECRET);
  return clientId === null || clientSecret === null ? null : Object.freeze({ clientId, clientSecret });
}

function readPrivateKey(reader: Reader): string | null {
  if (reader.has('PRIVATE_KEY') || !reader.has('PRIVATE_KEY_PATH')) {
    return reader.required('PRIVATE_KEY', {
      ...PRIVATE_KEY,
      accepted: `${PRIVATE_KEY.accepted} (or PRIVATE_KEY_PATH, the path of such a file)`,
    });
  }
  return reader.optional('PRIVATE_KEY_PATH', {
    schema: z.string().transform(readText).pipe(pem),
    accepted: `the path of a readable file with ${PRIVATE_KEY.accepted}`,
  });
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

function decodeBase64(text: string): string {
  return Buffer.from(text, 'base64').toString('utf8');
}

/** Where a GitHub's pages and tokens are, told by where its API is (facts/github.md §9, §18). */
function neighbours(apiUrl: string): { serverUrl: string; oidcIssuer: string } {
  const parsed = new URL(apiUrl);
  const host = parsed.host;
  if (parsed.pathname === '/api/v3') {
    return { serverUrl: parsed.origin, oidcIssuer: `${parsed.origin}/_services/token` };
  }
  if (host.startsWith('api.') && host.endsWith('.ghe.com')) {
    const own = host.slice('api.'.length);
    return { serverUrl: `https://${own}`, oidcIssuer: `https://token.actions.${own}` };
  }
  return { serverUrl: 'https://github.com', oidcIssuer: 'https://token.actions.githubusercontent.com' };
}
