/**
 * The detail of a receipt (VER-2) and the way it goes without a credential (VER-1).
 *
 * A runner in mode `verify` sits in a `pull_request` job beside code of the pull request: it has no login, and
 * nothing it could post with. It prints one workflow command a verify command,
 *
 *     ::notice title=countersign receipt::<JSON of the detail>
 *
 * and GitHub keeps it as an annotation of the job's own check run, which the App may read with `checks`:
 * `GET /repos/{owner}/{repo}/check-runs/{id}/annotations`, 100 a page; the check run is the one of
 * `workflow_job.check_run_url`, and by it the detail belongs to one run id, attempt and job. An annotation has
 * `title` = RECEIPT_TITLE, `annotation_level` = `notice`, the JSON as `message`; GitHub puts it at path `.github`.
 *
 * Limits: GitHub's runner keeps the first ten notices of a step and cuts a message at 4,096 characters; so a step
 * runs at most RECEIPTS_A_STEP commands, and a detail is shortened to RECEIPT_CHARS, its tails first, then its lists.
 * The text is ASCII without `::` and `##[`, so nothing in it is a workflow command where it is printed again. A pool
 * sends the same object by the API, unshortened.
 *
 * **Who controls it**: code of the pull request can print such an annotation too, and can alter the one we
 * print. What counts is the job's conclusion; a detail may only make it worse. Every annotation of this title is
 * read, and one that names trouble is believed. Digests and trees in it say nothing about another run.
 */
import * as z from 'zod';
import { oidSchema, sha256Schema } from '../domain/ledger/row-fields.ts';
import { isSafeText, wirePathSchema } from '../domain/path.ts';

/** The version of the detail; another one is not read. */
export const RECEIPT_VERSION = 1;
/** The title of the annotation that holds a detail. */
export const RECEIPT_TITLE = 'countersign receipt';
/** Most characters of a detail in an annotation: GitHub's runner cuts at 4,096. */
export const RECEIPT_CHARS = 4000;
/** Most commands in one step: GitHub's runner keeps ten notices of it. */
export const RECEIPTS_A_STEP = 10;
/** Longest tail of one stream, in characters, before a detail is shortened to fit. */
export const TAIL_CHARS = 20_000;
/** The exit code of a command that was never let go, since its start could not be recorded. */
export const NOT_STARTED_EXIT = 125;

const safe = (max: number) => z.string().max(max).refine(isSafeText, 'text without NUL and lone surrogates');
/** A list that may have been cut; `more` counts what was left out. */
const cut = <T extends z.ZodType>(item: T, max: number) =>
  z.strictObject({ items: z.array(item).max(max), more: z.int().min(0) });

const stream = z.strictObject({
  /** Bytes that the command printed. */
  bytes: z.int().min(0),
  /** SHA-256 of the redacted tail as it was kept beside the job, before it was shortened here. */
  sha256: sha256Schema,
  /** The end of what it printed, redacted; the beginning is cut first. */
  tail: safe(TAIL_CHARS),
});

/** What a verify command did. Times are in ms, sizes in bytes. */
export const receiptDetail = z.strictObject({
  v: z.literal(RECEIPT_VERSION),
  /** The name of the command in the policy. */
  command: safe(60),
  /** The argv as the base policy has it. */
  run: cut(safe(1000), 60),
  /** `commandDigest` of what the base policy said: another one than the server's is another command. */
  command_sha256: sha256Schema,
  /** `environmentDigest` of the variables it got and the machine it ran on. */
  environment_sha256: sha256Schema,
  /** `inputHash` of both, with artifacts and ports. */
  input_sha256: sha256Schema,
  /** The commit whose policy named the command, and the pull request's head; null where it was not told. */
  base: oidSchema.nullable(),
  head: oidSchema.nullable(),
  /** The tree of the work tree, untracked files that are not ignored with it; null: it could not be made, which is no proof that nothing changed. */
  tree: z.strictObject({ before: oidSchema.nullable(), after: oidSchema.nullable() }),
  /** Paths that differ between the two trees. */
  mutated: cut(wirePathSchema, 500),
  /** False: it was never let go; `exit` is then NOT_STARTED_EXIT. */
  started: z.boolean(),
  /** Its exit code; null where a signal ended it. 126 and 127 are a program that could not be run or found. */
  exit: z.int().min(0).max(255).nullable(),
  signal: z
    .string()
    .regex(/^SIG[A-Z0-9]{1,12}$/)
    .nullable(),
  timed_out: z.boolean(),
  /** It was told to stop: the job was cancelled, the lease was lost. */
  cancelled: z.boolean(),
  ms: z.int().min(0),
  stdout: stream,
  stderr: stream,
  artifacts: z.strictObject({
    /** By pattern of the policy: how many files there are, and one digest over their paths and contents. */
    found: cut(z.strictObject({ pattern: safe(1000), files: z.int().min(1), sha256: sha256Schema }), 50),
    missing: cut(safe(1000), 50),
  }),
  /** The ports it was given, by variable. */
  ports: z.array(z.strictObject({ name: safe(100), port: z.int().min(1).max(65_535) })).max(10),
});
/** What a verify command did. */
export type ReceiptDetail = z.infer<typeof receiptDetail>;

/** Why a detail does not pass, in the order in which it is said; null: it passes. */
export type ReceiptTrouble =
  | 'not_started'
  | 'cancelled'
  | 'timed_out'
  | 'failed'
  | 'artifact_missing'
  | 'mutated'
  | 'tree_unknown';

/** What a detail says of its command: the first trouble, or null. Everything it leaves open is trouble. */
export function receiptTrouble(detail: ReceiptDetail): ReceiptTrouble | null {
  if (!detail.started) return 'not_started';
  if (detail.cancelled) return 'cancelled';
  if (detail.timed_out) return 'timed_out';
  if (detail.exit !== 0) return 'failed';
  const { missing } = detail.artifacts;
  if (missing.items.length > 0 || missing.more > 0) return 'artifact_missing';
  if (detail.tree.before === null || detail.tree.after === null) return 'tree_unknown';
  const { mutated, tree } = detail;
  if (mutated.items.length > 0 || mutated.more > 0 || tree.before !== tree.after) return 'mutated';
  return null;
}

/** JSON in ASCII, with nothing that a log takes for a workflow command; it parses to the same value. */
function neutralJson(value: unknown): string {
  return JSON.stringify(value)
    .replace(/[\u007f-\uffff]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .replaceAll('::', ':\\u003a')
    .replaceAll('##[', '#\\u0023[');
}

/** A shorter tail, never cut within a character of two code units. */
function tailOf(text: string, chars: number): string {
  return text.length <= chars ? text : text.slice(text.length - chars).replace(/^[\udc00-\udfff]/, '');
}

function shorter<T>(list: { items: T[]; more: number }, keep: number): { items: T[]; more: number } {
  const items = list.items.slice(0, keep);
  return { items, more: list.more + list.items.length - items.length };
}

/** The detail with tails of at most so many characters and lists of at most so many entries. */
function shortened(detail: ReceiptDetail, tail: number, keep: number): ReceiptDetail {
  return {
    ...detail,
    stdout: { ...detail.stdout, tail: tailOf(detail.stdout.tail, tail) },
    stderr: { ...detail.stderr, tail: tailOf(detail.stderr.tail, tail) },
    mutated: shorter(detail.mutated, keep),
    run: shorter(detail.run, keep),
    artifacts: {
      found: shorter(detail.artifacts.found, keep),
      missing: shorter(detail.artifacts.missing, keep),
    },
  };
}

/** Tails before lists: a name of what is missing says more than another line of output. */
const STEPS: readonly (readonly [tail: number, keep: number])[] = [
  [TAIL_CHARS, 500],
  [2000, 60],
  [1000, 60],
  [600, 40],
  [300, 20],
  [300, 10],
  [100, 5],
  [0, 3],
  [0, 1],
  [0, 0],
];

/** The message of the annotation: the JSON of the detail, shortened until it has at most `most` characters. */
export function receiptMessage(detail: ReceiptDetail, most = RECEIPT_CHARS): string {
  let text = '';
  for (const [tail, keep] of STEPS) {
    text = neutralJson(shortened(detail, tail, keep));
    if (text.length <= most) break;
  }
  return text;
}

/** The detail in an annotation's message; null for what is none, whoever printed it. Never throws. */
export function readReceiptMessage(message: string): ReceiptDetail | null {
  if (message.length > 64 * 1024) return null;
  let json: unknown;
  try {
    json = JSON.parse(message);
  } catch {
    return null;
  }
  const parsed = receiptDetail.safeParse(json);
  return parsed.success ? parsed.data : null;
}
