import type { App, Json, Token } from '../model.ts';
import type { OperationId } from '../operations.ts';
import type { Repository } from '../repository.ts';
import type { World } from '../world.ts';

/** Who sent a request. */
export type Bearer =
  | { readonly kind: 'nobody' }
  | { readonly kind: 'app'; readonly app: App }
  | { readonly kind: 'token'; readonly token: Token };

/** A request that passed authentication, permissions and the description. */
export interface Call {
  readonly world: World;
  readonly operation: OperationId;
  readonly path: Readonly<Record<string, unknown>>;
  readonly query: Readonly<Record<string, unknown>>;
  readonly body: Json;
  readonly accept: string;
  /** The REST version asked for; 2022-11-28 when none is (facts/github.md §0). */
  readonly version: string;
  readonly url: URL;
  readonly bearer: Bearer;
}

/** An answer: JSON, or `raw` bytes for raw media types. */
export interface Answer {
  readonly status: number;
  readonly body?: unknown;
  readonly raw?: Buffer;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Serves one operation. */
export type Handler = (call: Call) => Promise<Answer> | Answer;

/** An answer that is GitHub's refusal, thrown from anywhere below a handler. */
export class Refused extends Error {
  readonly status: number;
  readonly errors: readonly unknown[] | undefined;
  readonly headers: Readonly<Record<string, string>>;
  constructor(
    status: number,
    message: string,
    more: { errors?: readonly unknown[]; headers?: Readonly<Record<string, string>> } = {},
  ) {
    super(message);
    this.name = 'Refused';
    this.status = status;
    this.errors = more.errors;
    this.headers = more.headers ?? {};
  }
}

/** 404, which GitHub also gives for what the caller may not see. */
export function notFound(): Refused {
  return new Refused(404, 'Not Found');
}

/** The repository a request names; 404 when there is none. */
export function repositoryOf(call: Call): Repository {
  const repository = call.world.repositoryByName(String(call.path['owner']), String(call.path['repo']));
  if (repository === undefined) throw notFound();
  return repository;
}

/** One page of a list with its Link header; `per_page` at most 100, default 30, unless the size is fixed. */
export function paged<T>(
  call: Call,
  items: readonly T[],
  fixedSize?: number,
): { items: T[]; headers: Record<string, string> } {
  const size = fixedSize ?? Math.min(Math.max(Number(call.query['per_page'] ?? 30), 1), 100);
  const page = Math.max(Number(call.query['page'] ?? 1), 1);
  const last = Math.max(Math.ceil(items.length / size), 1);
  const links: string[] = [];
  const link = (rel: string, to: number) => {
    const url = new URL(call.url);
    url.searchParams.set('page', String(to));
    links.push(`<${url.href}>; rel="${rel}"`);
  };
  if (page > 1) link('prev', page - 1);
  if (page < last) {
    link('next', page + 1);
    link('last', last);
  }
  if (page > 1) link('first', 1);
  return {
    items: items.slice((page - 1) * size, page * size),
    headers: links.length === 0 ? {} : { link: links.join(', ') },
  };
}
