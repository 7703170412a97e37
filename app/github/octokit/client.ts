/** One installation's (or the App's) requests: paced, timed out, read back losslessly, errors as Faults. */
import type { ProbotOctokit } from 'probot';
import * as z from 'zod';
import { Fault } from '../../errors.ts';
import type { WriteTurn } from '../port/check.ts';
import { Moved, queryFault, toFault } from './errors.ts';
import type { Pace } from './pace.ts';

/** Parameters of a route. */
export type Parameters = Readonly<Record<string, unknown>>;

/** An answer whose body is whatever GitHub sent. */
export interface Answered {
  readonly status: number;
  readonly data: unknown;
  readonly link: string | undefined;
}

/** Reads and writes. A read is tried three times; a write once, whatever happens (creates are not idempotent). */
export interface Client {
  read(route: string, parameters?: Parameters): Promise<Answered>;
  write(route: string, parameters?: Parameters, turn?: WriteTurn): Promise<Answered>;
  /** All pages of a list; `key` names the list in a page that is an object. At most `most` items (default 10,000). */
  list(route: string, parameters?: Parameters, options?: { key?: string; most?: number }): Promise<unknown[]>;
  /** A GraphQL query: its data. What GitHub refuses by an error in the answer is a Fault like every refusal. */
  query(document: string, variables: Parameters, call: string): Promise<unknown>;
  readonly octokit: ProbotOctokit;
}

const READ_TRIES = 3;
const BACK_OFF_MS = [200, 1000];
const VERSION = { 'x-github-api-version': '2022-11-28' };

/** Wraps an Octokit. Throws `Fault`s as port.ts says, and `Moved` for a redirect. */
export function createClient(octokit: ProbotOctokit, pace: Pace): Client {
  const send = async (route: string, parameters: Parameters): Promise<Answered> => {
    try {
      const answer = await octokit.request(route, {
        ...parameters,
        headers: { ...VERSION, ...(parameters['headers'] as object | undefined) },
        // the retry plugin repeats POSTs on 5xx and 409 (facts/github.md §20): never
        request: { retries: 0 },
      });
      return { status: answer.status, data: answer.data as unknown, link: answer.headers.link };
    } catch (error) {
      const moved = movedIn(error);
      if (moved !== null) throw moved;
      const fault = toFault(nameOf(error, route), error, Date.now());
      if (fault.code === 'github_rate_limited' && fault.retryAfterMs !== undefined)
        pace.hold(fault.retryAfterMs);
      throw fault;
    }
  };

  const read = async (route: string, parameters: Parameters = {}): Promise<Answered> => {
    for (let tried = 1; ; tried++) {
      pace.read();
      try {
        return await send(route, parameters);
      } catch (error) {
        const again = error instanceof Fault && error.code === 'github_unavailable' && tried < READ_TRIES;
        if (!again) throw error;
        await new Promise((done) => setTimeout(done, BACK_OFF_MS[tried - 1]));
      }
    }
  };

  return {
    octokit,
    read,
    async query(document, variables, call) {
      pace.read();
      try {
        // to /api/graphql where REST is /api/v3
        return await octokit.graphql(document, { ...variables, request: { retries: 0 } });
      } catch (error) {
        throw queryFault(call, error) ?? toFault(call, error, Date.now());
      }
    },
    async write(route, parameters = {}, turn = 'work') {
      await pace.write(turn);
      return send(route, parameters);
    },
    async list(route, parameters = {}, { key, most = 10_000 } = {}) {
      const items: unknown[] = [];
      for (let page = 1; ; page++) {
        const answer = await read(route, { per_page: 100, ...parameters, page });
        const list = key === undefined ? answer.data : (answer.data as Record<string, unknown> | null)?.[key];
        items.push(...parse(z.array(z.unknown()), list, route));
        if (items.length >= most) return items.slice(0, most);
        if (!/rel="next"/.test(answer.link ?? '')) return items;
      }
    },
  };
}

/** Reads a body by a schema; what does not fit is `github_unavailable`, as a half answer from a proxy is. */
export function parse<T>(schema: z.ZodType<T>, data: unknown, call: string): T {
  const read = schema.safeParse(data);
  if (read.success) return read.data;
  const where = read.error.issues[0]?.path.join('.') ?? '';
  throw new Fault('github_unavailable', `${call}: an answer of another form at "${where}"`, {
    retryable: true,
  });
}

/** The failing call: minting the installation's token happens inside the request that needs it. */
function nameOf(error: unknown, route: string): string {
  const url = (error as { request?: { url?: unknown } } | null)?.request?.url;
  return typeof url === 'string' && url.endsWith('/access_tokens')
    ? 'create-installation-access-token'
    : route;
}

function movedIn(error: unknown): Moved | null {
  for (let at: unknown = error; at instanceof Error; at = at.cause) if (at instanceof Moved) return at;
  return null;
}
