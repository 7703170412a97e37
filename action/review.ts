/**
 * One review ticket from its objects to its result (REV-4, REV-5, REV-8, TKT-2): what cannot be read
 * is said by name, every reviewer must have spoken, and nothing leaves before it is redacted.
 */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { pathKey, type WirePath } from '../app/domain/path.ts';
import { redactor } from '../app/domain/redact.ts';
import { Fault } from '../app/errors.ts';
import { type LeasedTicket, PROMPT_VERSION, type TicketResult } from '../app/protocol/runner.ts';
import { combine } from './combine.ts';
import type { Inputs } from './inputs.ts';
import { readContent, submoduleContent } from './objects/content.ts';
import type { ChangedFile } from './objects/diff.ts';
import { type Neighbour, readNeighbours } from './objects/neighbours.ts';
import { changedAt, type Objects } from './objects/store.ts';
import { type Allowance, allowed } from './resident/allowance.ts';
import { reviewByCommand, takesFile } from './reviewers/command.ts';
import { steers, textsShown } from './reviewers/prompt/steering.ts';
import type { ReviewOutcome, ReviewText, Unavailable } from './reviewers/reviewer.ts';
import type { SessionBook } from './sessions.ts';

/** What a ticket came to: a result to submit, or the ticket itself to give back. */
export type Reviewed =
  | Readonly<{ kind: 'result'; result: TicketResult }>
  | Readonly<{ kind: 'given_up'; why: 'stopping' | 'fenced' | 'recalled' | 'lost' }>;

type Deps = {
  inputs: Inputs;
  objects: Objects;
  scratch: string;
  /** What may be used on this machine; absent in a job of the repository's own. */
  allowance?: Allowance | undefined;
};
type Blobs = TicketResult['blobs'];

const GITLINK = '160000';

/** Works a ticket; never throws: a step that failed is `worker_error` with its name (ADM-3). */
export async function reviewTicket(
  deps: Deps,
  leased: LeasedTicket,
  sessions: SessionBook,
  signal: AbortSignal,
): Promise<Reviewed> {
  const { ticket, refused } = allowed(deps.allowance, leased);
  const from = performance.now();
  const elapsed = () => Math.round(performance.now() - from);
  let blobs: Blobs = { base: null, head: null };
  let step = 'objects';
  const unavailable = (end: Unavailable, detail: string, retryAfterMs: number | null = null): Reviewed => ({
    kind: 'result',
    result: {
      end,
      detail: redactor(deps.inputs.secrets).redact(detail).toWellFormed().replaceAll('\0', '').slice(0, 500),
      retry_after_ms: retryAfterMs,
      blobs,
      verdict: null,
      partial: false,
      sessions: [...sessions.records()],
      findings: [],
      unplaced: [],
      brief_sha256: null,
      ms: elapsed(),
    },
  });
  try {
    if (ticket.prompt_version !== PROMPT_VERSION)
      return unavailable(
        'bad_ticket',
        `prompt version ${ticket.prompt_version}, this runner has ${PROMPT_VERSION}`,
      );
    const reviewers = ticket.reviewers.filter(
      (spec) => spec.uses !== 'command' || (spec.command !== undefined && takesFile(spec.command, ticket)),
    );
    if (reviewers.length === 0) return unavailable('route_invalid', 'no reviewer takes this file');

    const change = await deps.objects.change(ticket, signal);
    blobs = blobsRead(
      ticket,
      changedAt(change, ticket.path),
      ticket.from === null ? null : changedAt(change, ticket.from),
    );
    if (blobs.head !== ticket.blob.head || blobs.base !== ticket.blob.base)
      return unavailable('bad_ticket', 'the ticket names other content than its head has at its path');
    if (ticket.mode.head === GITLINK || (ticket.mode.head === null && ticket.mode.base === GITLINK)) {
      const entry = changedAt(change, ticket.path);
      const unread = submoduleContent(entry?.blob.base ?? null, entry?.blob.head ?? null);
      return unavailable('content_unread', unread.kind === 'unread' ? unread.detail : 'submodule');
    }

    const text = await readText(deps.objects, ticket, signal);
    if ('end' in text) return unavailable(text.end, text.detail);
    const config = await readConfig(deps.objects, ticket, signal);

    const forModel = reviewers.some((spec) => spec.uses !== 'command');
    const others = [...change.files.values()].filter((file) => file !== changedAt(change, ticket.path));
    const near = ticket.near === undefined ? others : nearOf(others, ticket.near);
    // context that cannot be read is left out: the file under review is what counts
    const neighbours =
      forModel && ticket.level !== 'L1'
        ? await readNeighbours(deps.objects, ticket, near, signal).catch(() => [])
        : [];

    step = 'reviewers';
    const outcomes = await Promise.all(
      reviewers.map(async (spec, i): Promise<ReviewOutcome> => {
        const why = refused.get(spec.name);
        if (why !== undefined)
          return {
            kind: 'unavailable',
            reviewer: spec.name,
            end: 'reviewer_unsafe',
            detail: `${spec.name}: ${why}`,
            retryAfterMs: null,
          };
        const task = {
          ticket,
          spec,
          review: text,
          others,
          neighbours,
          config,
          dir: join(deps.scratch, String(i)),
          path: deps.inputs.path,
          secret: deps.inputs.secret,
          redact: redactor(deps.inputs.secrets).redact,
          sessions,
          signal,
        };
        try {
          return spec.uses === 'command'
            ? await reviewByCommand(task)
            : await (await import('./reviewers/asking.ts')).reviewByAsking(task, deps.inputs.secrets);
        } catch (error) {
          return {
            kind: 'unavailable',
            reviewer: spec.name,
            end: 'worker_error',
            detail: `${spec.name}: ${error instanceof Error ? error.message : 'failed'}`,
            retryAfterMs: null,
          };
        }
      }),
    );
    const givenUp = outcomes.find((outcome) => outcome.kind === 'given_up');
    if (givenUp?.kind === 'given_up') return givenUp;
    if (signal.aborted) return { kind: 'given_up', why: 'stopping' };

    step = 'result';
    const combined = combine(ticket, text, outcomes, deps.inputs.secrets);
    return {
      kind: 'result',
      result: {
        ...combined,
        ...(forModel && steers(textsShown(ticket, text, others, neighbours))
          ? { calls: ['steering_text' as const] }
          : {}),
        blobs,
        sessions: [...sessions.records()].slice(0, 16).map((session) => ({
          ...session,
          detail: session.detail === null ? null : cleanDetail(deps.inputs, session.detail),
        })),
        brief_sha256: briefDigest(ticket, others, neighbours),
        ms: elapsed(),
      },
    };
  } catch (error) {
    if (signal.aborted) return { kind: 'given_up', why: 'stopping' };
    const said = error instanceof Error ? error.message : 'failed';
    // an outage is not a verdict: a fetch that failed waits and revives by itself
    return error instanceof Fault && error.code === 'git_unavailable' && error.retryable
      ? unavailable('provider_error', `${step}: ${said}`, 30_000)
      : unavailable('worker_error', `${step}: ${said}`);
  }
}

/** The files of the block that the server named, as the change has them (REV-2). */
function nearOf(others: readonly ChangedFile[], near: readonly WirePath[]): ChangedFile[] {
  const named = new Set(near.map(pathKey));
  return others.filter((file) => named.has(pathKey(file.path)));
}

function cleanDetail(inputs: Inputs, detail: string): string {
  return redactor(inputs.secrets).redact(detail).toWellFormed().replaceAll('\0', '').slice(0, 500);
}

/** The blob ids git has at the ticket's head and merge base (AUT-3); the base of a moved file is its old path's. */
function blobsRead(ticket: LeasedTicket, entry: ChangedFile | null, old: ChangedFile | null): Blobs {
  const side = (which: 'base' | 'head'): string | null => {
    const from = which === 'base' && ticket.blob.base !== null && entry?.blob.base == null ? old : entry;
    // a submodule's entry is a commit: a ticket without it names no content either
    if (from?.mode[which] === GITLINK && ticket.blob[which] === null) return null;
    return from?.blob[which] ?? null;
  };
  return { base: side('base'), head: side('head') };
}

async function readText(
  objects: Objects,
  ticket: LeasedTicket,
  signal: AbortSignal,
): Promise<ReviewText | { end: Unavailable; detail: string }> {
  const { base, head } = ticket.blob;
  const oids = [base, head].filter((oid): oid is string => oid !== null);
  const readable = ticket.mode.base === GITLINK ? oids.filter((oid) => oid !== base) : oids;
  const blobs = await objects.blobs(ticket, readable, signal);
  const side = head === null ? 'base' : 'head';
  const under = blobs.get(head ?? base ?? '');
  if (under === undefined) return { end: 'bad_ticket', detail: 'the ticket names no content' };
  const content = readContent(under.bytes, ticket.mode[side], ticket.max_lines);
  if (content.kind === 'unread') return content;
  const before = side === 'head' && base !== null ? blobs.get(base) : undefined;
  const old =
    before === undefined ? null : readContent(before.bytes, ticket.mode.base, Number.MAX_SAFE_INTEGER);
  const hasBase = old?.kind === 'text';
  const forModel = ticket.reviewers.some((spec) => spec.uses !== 'command');
  return {
    side,
    text: content.text,
    bytes: under.bytes ?? Buffer.alloc(0),
    lines: content.lines,
    note: content.note,
    base: hasBase ? old.text : null,
    diff:
      hasBase && base !== null && head !== null && forModel
        ? await objects.diff(ticket, base, head, signal)
        : '',
  };
}

async function readConfig(
  objects: Objects,
  ticket: LeasedTicket,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, Buffer>> {
  const oids = ticket.reviewers
    .flatMap((spec) => spec.command?.config ?? [])
    .map((config) => config.blob)
    .filter((blob): blob is string => blob !== null);
  if (oids.length === 0) return new Map();
  const blobs = await objects.blobs(ticket, [...new Set(oids)], signal);
  return new Map([...blobs].map(([oid, blob]) => [oid, blob.bytes ?? Buffer.alloc(0)]));
}

function briefDigest(
  ticket: LeasedTicket,
  others: readonly ChangedFile[],
  neighbours: readonly Neighbour[],
): string {
  const shown = [
    ticket.block.title,
    ticket.block.brief,
    ticket.clauses ?? [],
    ticket.earlier,
    others.map((o) => [o.path, o.blob]),
    neighbours,
  ];
  return createHash('sha256').update(JSON.stringify(shown)).digest('hex');
}
