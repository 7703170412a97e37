/** A ledger row: its body, its hash, what its MAC covers, and the strict reading of stored bytes (LED-1, LED-3). */
import { createHash } from 'node:crypto';
import * as z from 'zod';
import { Fault } from '../../errors.ts';
import { canonicalBytes } from './canonical.ts';
import {
  type Actor,
  actorSchema,
  blockIdSchema,
  type Cause,
  causeSchema,
  idSchema,
  sha256Schema,
} from './row-fields.ts';
import { type RowData, type RowKind, rowKinds } from './row-kinds.ts';

/** The version of the body's form. */
export const ROW_VERSION = 1;
/** The DSSE payload type that a row's MAC is bound to. */
export const ROW_TYPE = 'application/vnd.countersign.row.v1+json';

/** What a producer says of a fact; the signer adds the rest. */
export interface RowDraft<K extends RowKind = RowKind> {
  readonly kind: K;
  readonly block: string | null;
  readonly actor: Actor;
  readonly cause: Cause;
  readonly data: RowData<K>;
}

/** A row's body, read. `repo` is null in an installation's own chain. */
export interface Row<K extends RowKind = RowKind> extends RowDraft<K> {
  readonly v: typeof ROW_VERSION;
  readonly log: string;
  readonly run: string;
  readonly repo: string | null;
  readonly seq: number;
  /** Hash of the row before, hex. */
  readonly prev: string;
  /** Product time, ISO 8601 with milliseconds. */
  readonly at: string;
  readonly salt: string;
  readonly kid: string;
}

/** A row of any kind: `kind` tells which `data` it has. */
export type AnyRow = { [K in RowKind]: Row<K> }[RowKind];
/** A draft of any kind. */
export type AnyDraft = { [K in RowKind]: RowDraft<K> }[RowKind];

/** A row as Postgres keeps it. */
export interface StoredRow {
  readonly seq: number;
  readonly prev: Buffer;
  readonly hash: Buffer;
  readonly mac: Buffer;
  readonly kind: string;
  readonly body: Buffer;
}

const headerSchema = z.strictObject({
  v: z.literal(ROW_VERSION),
  log: z.string().min(1).max(300),
  run: z.string().min(1).max(64),
  repo: idSchema.nullable(),
  seq: z.int().min(1),
  prev: sha256Schema,
  at: z.iso.datetime({ precision: 3 }),
  kind: z.string(),
  block: blockIdSchema.nullable(),
  actor: actorSchema,
  cause: causeSchema,
  data: z.unknown(),
  salt: z.string().regex(/^[0-9a-f]{32}$/),
  kid: z.string().min(1).max(40),
});

/** Whether this version knows a kind. */
export function isRowKind(kind: string): kind is RowKind {
  return Object.hasOwn(rowKinds, kind);
}

/** The exact bytes of a new row; `row_invalid` when its data does not fit its kind's schema or LED-2's limits. */
export function rowBody(row: AnyRow): Buffer {
  check(row);
  return canonicalBytes(row);
}

/**
 * Reads the exact bytes of a stored row, strictly. It proves nothing about who wrote them: verify the
 * chain first. `row_invalid` when they are not a row of this version.
 */
export function readRow(body: Buffer): AnyRow {
  let json: unknown;
  try {
    json = JSON.parse(body.toString('utf8'));
  } catch {
    throw new Fault('row_invalid', 'a row is not JSON');
  }
  return check(json);
}

function check(json: unknown): AnyRow {
  const header = headerSchema.safeParse(json);
  if (!header.success) throw invalid('a row', header.error);
  const { kind } = header.data;
  if (!isRowKind(kind)) throw new Fault('row_invalid', 'a row of an unknown kind');
  const data = rowKinds[kind].safeParse(header.data.data);
  if (!data.success) throw invalid(`the data of ${kind}`, data.error);
  return json as AnyRow;
}

/** Names the places and never the values: they may be foreign text. */
function invalid(what: string, error: z.ZodError): Fault {
  const places = error.issues
    .slice(0, 5)
    .map((issue) => `${issue.path.map(String).join('.') || '(whole)'}: ${issue.code}`);
  return new Fault('row_invalid', `${what} does not fit its schema at ${places.join('; ')}`);
}

/** Hash of a row, which is also its RFC 6962 leaf hash: SHA-256(0x00 ‖ body) (LED-3). */
export function rowHash(body: Uint8Array): Buffer {
  return createHash('sha256').update(LEAF).update(body).digest();
}
const LEAF = Buffer.from([0]);

/** DSSE's pre-authentication encoding: lengths first, so that no two (type, body) pairs give the same bytes. */
export function pae(type: string, body: Uint8Array): Buffer {
  return Buffer.concat([
    Buffer.from(`DSSEv1 ${Buffer.byteLength(type)} ${type} ${body.length} `, 'utf8'),
    body,
  ]);
}

/** What a chain is of: a pull request or merge group in one epoch, or the facts of an installation. */
export type ChainSubject =
  | {
      readonly kind: 'pull' | 'group';
      readonly repositoryId: string;
      readonly name: string;
      readonly epoch: number;
    }
  | { readonly kind: 'installation'; readonly epoch: number };

/** What `prev` of row 1 must be: the hash of what the chain is of, without any policy (LED-3, LED-4). */
export function genesisOf(log: string, subject: ChainSubject): Buffer {
  const parts =
    subject.kind === 'installation'
      ? [log, 'installation', subject.epoch]
      : [log, subject.repositoryId, subject.kind, subject.name, subject.epoch];
  return createHash('sha256').update('countersign/genesis/v1\n').update(canonicalBytes(parts)).digest();
}

/** The id of an installation's own chain (LED-4). */
export function installationRun(installationId: string): string {
  return `i/${installationId}`;
}
