/**
 * Redaction (REV-8): declared secret values and known token shapes leave neither the runner nor the
 * server. Pure and idempotent; a marker names the kind and never the value; the number of lines of a
 * text does not change, so that a redacted quote still grounds in a redacted blob.
 */
import { encodedForms, type Needle, needleOf, searchFolded, searchPlain } from './redact/needles.ts';
import { privateKeySpans, shapeSpans } from './redact/shapes.ts';
import type { SecretSpan } from './redact/span.ts';

/** Values shorter than this many characters are not masked: masking "test" would reveal it everywhere. */
const SHORTEST_MASKED = 8;
/** A line of a multi-line secret is masked on its own only from this many characters on. */
const SHORTEST_LINE = 16;
/** A file made of nothing but secrets must not make redaction slow: what it teaches is bounded. */
const MOST_NEEDLES = 1000;

/** A redactor: knows a set of declared values beside the shapes that every redactor knows. */
export type Redactor = Readonly<{
  /** The text with every secret replaced by `[redacted:kind]`, line by line. */
  redact: (text: string) => string;
  /** Where the secrets are, ascending and without overlap. */
  find: (text: string) => SecretSpan[];
  /** A redactor that also knows the secrets that this text holds by their shape (the middle of a key block quoted alone). */
  learn: (text: string) => Redactor;
}>;

function needlesOf(values: readonly string[], learned: readonly string[]): Needle[] {
  const needles = new Map<string, Needle>();
  const add = (value: string, kind: string): void => {
    const needle = needleOf(value, kind);
    if (needle !== null && !needles.has(needle.plain)) needles.set(needle.plain, needle);
  };
  for (const [i, value] of [...values, ...learned].entries()) {
    if (i >= values.length && needles.size >= MOST_NEEDLES) break;
    const trimmed = value.trim();
    if (trimmed.length < SHORTEST_MASKED) continue;
    add(trimmed, 'secret');
    if (i < values.length) for (const form of encodedForms(trimmed)) add(form, 'secret');
    const lines = trimmed.split(/\r\n|\r|\n/);
    if (lines.length > 1)
      for (const line of lines.map((l) => l.trim())) if (line.length >= SHORTEST_LINE) add(line, 'secret');
  }
  return [...needles.values()];
}

function merge(spans: SecretSpan[]): SecretSpan[] {
  const sorted = [...spans].sort((a, b) => a.start - b.start || b.end - a.end);
  const out: SecretSpan[] = [];
  for (const span of sorted) {
    const last = out.at(-1);
    if (last !== undefined && span.start < last.end) {
      const longer = span.end - span.start > last.end - last.start ? span.kind : last.kind;
      out[out.length - 1] = { start: last.start, end: Math.max(last.end, span.end), kind: longer };
    } else out.push(span);
  }
  return out;
}

function mask(secret: string, kind: string): string {
  return secret.replace(/[^\r\n]+/g, (line) => (line.trim() === '' ? line : `[redacted:${kind}]`));
}

/** A redactor for declared values (their encodings included) and the known token shapes (REV-8). */
export function redactor(values: readonly string[] = []): Redactor {
  return redactorOf(values, []);
}

function redactorOf(values: readonly string[], learned: readonly string[]): Redactor {
  const needles = needlesOf(values, learned);
  const find = (text: string): SecretSpan[] =>
    merge([
      ...shapeSpans(text),
      ...privateKeySpans(text),
      ...searchPlain(text, needles),
      ...searchFolded(text, needles),
    ]);
  return {
    find,
    redact(text) {
      let out = '';
      let at = 0;
      for (const span of find(text)) {
        out += text.slice(at, span.start) + mask(text.slice(span.start, span.end), span.kind);
        at = span.end;
      }
      return out + text.slice(at);
    },
    learn(text) {
      const held = new Set(find(text).map((span) => text.slice(span.start, span.end)));
      return held.size === 0 ? this : redactorOf(values, [...learned, ...held]);
    },
  };
}
