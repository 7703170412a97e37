/**
 * One call of the git binary (GIT-1): no shell, no hooks, no prompt, no configuration but ours, bytes
 * out. The token travels in the environment only, bound to the server's origin, and redirects are not
 * followed, so that it reaches nobody else.
 */
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { execa } from 'execa';
import { LIMITS } from '../../domain/limits.ts';
import { Fault } from '../../errors.ts';

/** Bounds of one fetch and of the cache of one repository (OPS-10). */
export interface GitLimits {
  /** Longest time of one fetch, in milliseconds. */
  readonly fetchMs: number;
  /** Largest size of one repository's cache, in bytes. */
  readonly bytes: number;
  /** Longest time of one local read, in milliseconds. */
  readonly readMs: number;
}

/** The limits of OPS-10. */
export const GIT_LIMITS: GitLimits = {
  fetchMs: LIMITS.gitFetchMs.default,
  bytes: LIMITS.gitFetchBytes.default,
  readMs: LIMITS.gitReadMs.default,
};

/** What git may inherit of the server's environment: how to find programs, proxies and certificates. */
export const GIT_INHERITED: readonly string[] = [
  'PATH',
  'HTTP_PROXY',
  'HTTPS_PROXY',
  'NO_PROXY',
  'http_proxy',
  'https_proxy',
  'no_proxy',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
  'GIT_SSL_CAINFO',
  'TMPDIR',
];

/** Where git gets objects from: a URL without credentials, and the token that reads it. */
export interface Remote {
  readonly url: string;
  readonly token: string;
}

/** One call. */
export interface GitCall {
  readonly gitDir: string;
  readonly args: readonly string[];
  readonly input?: Buffer;
  /** Given: the call may use the network, under the fetch limits. */
  readonly remote?: Remote;
  readonly environment: Readonly<Record<string, string>>;
  readonly limits: GitLimits;
}

/** How a call ended: its bytes, or its exit code (null: killed) with the first line it complained with. */
export interface GitResult {
  readonly exit: number | null;
  readonly stdout: Buffer;
  readonly complaint: string;
}

/** Old but harmless faults of other people's objects: seen in real histories, no danger to us. */
const TOLERATED = [
  'zeroPaddedFilemode',
  'badTimezone',
  'badDate',
  'badDateOverflow',
  'missingEmail',
  'missingNameBeforeEmail',
  'missingSpaceBeforeEmail',
  'missingSpaceBeforeDate',
  'badEmail',
  'badName',
  'nullSha1',
  'gitmodulesParse',
];

const BASE_CONFIG: readonly (readonly [string, string])[] = [
  ['core.hooksPath', '/dev/null'],
  ['core.attributesFile', '/dev/null'],
  ['core.askPass', ''],
  ['core.fsmonitor', 'false'],
  ['core.commitGraph', 'false'],
  ['credential.helper', ''],
  ['diff.renames', 'false'],
  ['fetch.recurseSubmodules', 'false'],
  ['gc.auto', '0'],
  ['maintenance.auto', 'false'],
  ['http.followRedirects', 'false'],
  ['log.showRoot', 'true'],
  ['log.showSignature', 'false'],
  ['protocol.version', '2'],
  ['transfer.fsckObjects', 'true'],
  ...TOLERATED.map((id) => [`fetch.fsck.${id}`, 'warn'] as const),
];

/** Runs git and answers how it ended; throws `git_unavailable` past a limit or when git cannot be started. */
export async function callGit(call: GitCall): Promise<GitResult> {
  const { limits, remote } = call;
  const timeout = remote === undefined ? limits.readMs : limits.fetchMs;
  const abort = new AbortController();
  const watch = remote === undefined ? null : watchSize(call.gitDir, limits.bytes, abort);
  try {
    const ended = await execa('git', call.args, {
      env: environmentOf(call),
      extendEnv: false,
      input: call.input ?? new Uint8Array(),
      encoding: 'buffer',
      stripFinalNewline: false,
      timeout,
      cancelSignal: abort.signal,
      forceKillAfterDelay: 2000,
      maxBuffer: 1024 * 1024 * 1024,
      reject: false,
    });
    if (ended.timedOut) {
      throw new Fault('git_unavailable', `git did not finish within ${Math.round(timeout / 1000)} s`, {
        retryable: true,
      });
    }
    if (ended.isCanceled) throw tooLarge(limits.bytes);
    if (ended.exitCode === undefined && ended.signal === undefined) {
      throw new Fault('git_unavailable', 'git cannot be started: version 2.38 or newer must be on PATH', {
        retryable: true,
        cause: ended.cause,
      });
    }
    return {
      exit: ended.exitCode ?? null,
      stdout: Buffer.from(ended.stdout.buffer, ended.stdout.byteOffset, ended.stdout.byteLength),
      complaint: firstLine(ended.stderr),
    };
  } finally {
    if (watch !== null) clearInterval(watch);
  }
}

/** The fault of a cache that passed its limit, naming it. */
export function tooLarge(bytes: number): Fault {
  return new Fault('git_unavailable', `the repository passed the limit of ${bytes} bytes`, {
    retryable: true,
  });
}

/** Bytes of what a repository's cache holds in packs, unfinished ones included. */
export async function packBytes(gitDir: string): Promise<number> {
  const folder = join(gitDir, 'objects', 'pack');
  const names = await readdir(folder).catch(() => []);
  const sizes = await Promise.all(
    names.map((name) =>
      stat(join(folder, name)).then(
        (s) => s.size,
        () => 0, // packs come and go while others fetch
      ),
    ),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}

/** git itself has no limit on what a fetch may bring: we look, and end it. */
function watchSize(gitDir: string, limit: number, abort: AbortController): NodeJS.Timeout {
  const timer = setInterval(() => {
    packBytes(gitDir).then(
      (bytes) => {
        if (bytes > limit) abort.abort();
      },
      () => {},
    );
  }, 250);
  timer.unref();
  return timer;
}

/** The whole environment of a call: nothing else of ours reaches git. */
export function environmentOf(
  call: Pick<GitCall, 'gitDir' | 'environment' | 'remote'>,
): Record<string, string> {
  const config = [...BASE_CONFIG];
  const environment: Record<string, string> = {
    ...call.environment,
    LC_ALL: 'C',
    HOME: call.gitDir,
    GIT_DIR: call.gitDir,
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_ATTR_NOSYSTEM: '1',
    GIT_TERMINAL_PROMPT: '0',
    GIT_LITERAL_PATHSPECS: '1',
    GIT_OPTIONAL_LOCKS: '0',
    GIT_ALLOW_PROTOCOL: '',
    // only a call that may use the network knows the promisor remote: a read never fetches by itself
    GIT_NO_LAZY_FETCH: '1',
  };
  if (call.remote !== undefined) {
    const url = new URL(call.remote.url);
    environment['GIT_ALLOW_PROTOCOL'] = protocolOf(url);
    config.push(
      ['remote.origin.url', call.remote.url],
      ['remote.origin.promisor', 'true'],
      ['remote.origin.partialclonefilter', 'blob:none'],
    );
    if (call.remote.token !== '' && url.protocol !== 'file:') {
      const basic = Buffer.from(`x-access-token:${call.remote.token}`).toString('base64');
      config.push([`http.${url.origin}/.extraheader`, `Authorization: Basic ${basic}`]);
    }
  }
  environment['GIT_CONFIG_COUNT'] = String(config.length);
  config.forEach(([key, value], i) => {
    environment[`GIT_CONFIG_KEY_${i}`] = key;
    environment[`GIT_CONFIG_VALUE_${i}`] = value;
  });
  return environment;
}

function protocolOf(url: URL): string {
  if (url.username !== '' || url.password !== '')
    throw new Fault('bug', 'a clone URL must not hold credentials');
  if (url.protocol === 'https:' || url.protocol === 'http:' || url.protocol === 'file:') {
    return url.protocol.slice(0, -1);
  }
  throw new Fault('bug', 'a clone URL must be https, http or file');
}

/** The first line of what git said, printable, short: it is shown to people. */
function firstLine(stderr: Uint8Array): string {
  const text = Buffer.from(stderr).toString('latin1');
  const line = text.split('\n').find((l) => /^(?:fatal|error|remote)/.test(l)) ?? text.split('\n')[0] ?? '';
  return line.replace(/[^\x20-\x7e]/g, '?').slice(0, 200);
}
