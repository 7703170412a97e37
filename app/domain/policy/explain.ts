/** Turns what the schema objects to into what a person can act on: a line, a path, what is accepted (POL-1). */
import type * as z from 'zod';
import { laterKey } from './later.ts';
import type { LineOf } from './read-yaml.ts';
import { policySchemaJson } from './schema.ts';

/** One thing that is wrong with a policy file. */
export interface PolicyError {
  readonly code: 'config_invalid';
  readonly line: number;
  /** The key in dotted form, empty for the whole file. */
  readonly path: string;
  readonly message: string;
  readonly accepted: string;
}

type Json = { readonly [key: string]: unknown };
type Place = readonly (string | number)[];

/** The dotted form of a path of keys and indexes. */
export function dotted(path: Place): string {
  return path
    .map((part) => (typeof part === 'number' ? `[${part}]` : `.${part}`))
    .join('')
    .replace(/^\./, '');
}

/** The errors of one zod issue; an object with two unknown keys gives two. */
export function explainIssue(issue: z.core.$ZodIssue, data: unknown, lineOf: LineOf): PolicyError[] {
  const path = issue.path.map((part) => (typeof part === 'number' ? part : String(part)));
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => unknownKey([...path, key], data, lineOf));
  }
  if (issue.code === 'invalid_key' || (issue.code === 'invalid_union' && path.length === 0)) {
    const message = 'issues' in issue ? (issue.issues[0]?.message ?? issue.message) : issue.message;
    return [fault(path, lineOf, `${JSON.stringify(path.at(-1) ?? '')} is not accepted as a name`, message)];
  }
  const value = valueAt(data, path);
  const later = laterKey(path, value);
  if (later !== null) return [notYet(path, value, lineOf, later.instead)];
  const accepted = acceptedBy(issue, path, data);
  if (value === undefined) return [fault(path, lineOf, `${dotted(path) || 'the file'} is missing`, accepted)];
  if (issue.code === 'custom' && issue.message.startsWith('the pattern ')) {
    return [
      fault(
        path,
        lineOf,
        `${shown(value)}: ${issue.message}`,
        'an exact path, a directory ending in /, or a glob',
      ),
    ];
  }
  const words = 'values' in issue ? issue.values : 'options' in issue ? issue.options : null;
  const near = typeof value === 'string' && Array.isArray(words) ? nearest(value, words.map(String)) : null;
  const hint = near === null || near === value ? '' : `; did you mean ${near}?`;
  return [fault(path, lineOf, `${shown(value)} is not accepted${hint}`, accepted)];
}

function unknownKey(path: Place, data: unknown, lineOf: LineOf): PolicyError {
  const value = valueAt(data, path);
  const later = laterKey(path, value);
  if (later !== null) return notYet(path, undefined, lineOf, later.instead);
  const known = keysAt(path.slice(0, -1), data);
  const near = nearest(String(path.at(-1)), known);
  const hint = near === null ? '' : `; did you mean ${near}?`;
  return fault(path, lineOf, `unknown key ${JSON.stringify(path.at(-1))}${hint}`, known.join(', '));
}

function notYet(path: Place, value: unknown, lineOf: LineOf, instead: string): PolicyError {
  const what = value === undefined ? dotted(path) : `${dotted(path)}: ${shown(value)}`;
  return fault(path, lineOf, `${what} is not supported yet`, instead);
}

function fault(path: Place, lineOf: LineOf, message: string, accepted: string): PolicyError {
  return { code: 'config_invalid', line: lineOf(path), path: dotted(path), message, accepted };
}

function acceptedBy(issue: z.core.$ZodIssue, path: Place, data: unknown): string {
  const native = /^(Invalid|Too|Unrecognized|expected)/.test(issue.message);
  if (issue.code === 'invalid_value' && native) return issue.values.map((value) => String(value)).join(', ');
  if (issue.code === 'invalid_union' && 'options' in issue && Array.isArray(issue.options)) {
    return issue.options.map(String).join(', ');
  }
  const schema = schemaAt(path, data);
  if (!native) return issue.message;
  if (Array.isArray(schema?.['enum'])) return (schema['enum'] as unknown[]).map(String).join(', ');
  return typeof schema?.['type'] === 'string' ? `${schema['type']} (${issue.message})` : issue.message;
}

/** A value as a person wrote it, cut to 60 characters. */
function shown(value: unknown): string {
  // quotes where the text would read as another type: the difference is what is wrong
  const word = typeof value === 'string' && value !== '' && !/^(true|false|null|[-+.0-9]+)$/.test(value);
  const text = word ? value : JSON.stringify(value);
  return text.length > 60 ? `${text.slice(0, 57)}…` : text;
}

function valueAt(data: unknown, path: Place): unknown {
  let value = data;
  for (const part of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, part)) return undefined;
    value = (value as Json)[String(part)];
  }
  return value;
}

function schemaAt(path: Place, data: unknown): Json | null {
  let schema: Json | null = policySchemaJson();
  let value = data;
  for (const part of path) {
    value = valueAt(value, [part]);
    const options: Json[] = Array.isArray(schema?.['anyOf']) ? (schema['anyOf'] as Json[]) : [];
    let next: unknown;
    for (const option of [schema, ...options]) {
      if (option === null) continue;
      next ??= (option['properties'] as Json | undefined)?.[String(part)];
      next ??= typeof part === 'number' ? option['items'] : undefined;
      next ??=
        typeof option['additionalProperties'] === 'object' ? option['additionalProperties'] : undefined;
    }
    schema = typeof next === 'object' && next !== null ? (next as Json) : null;
    const variants = schema?.['anyOf'] ?? schema?.['oneOf'];
    if (Array.isArray(variants)) schema = variantOf(variants as Json[], value) ?? schema;
  }
  return schema;
}

/** The variant of a reviewer that its `uses` names, of a verify command that its `from` names, or of a pool that its `kind` names. */
function variantOf(variants: readonly Json[], value: unknown): Json | null {
  return (
    variants.find((variant) =>
      ['uses', 'from', 'kind'].some((key) => {
        const property = (variant['properties'] as Json | undefined)?.[key] as Json | undefined;
        return property?.['const'] !== undefined && property['const'] === valueAt(value, [key]);
      }),
    ) ?? null
  );
}

function keysAt(path: Place, data: unknown): string[] {
  return Object.keys((schemaAt(path, data)?.['properties'] as Json | undefined) ?? {});
}

/** The candidate nearest to a word, within a third of its length (at least one, at most three edits); null when none is. */
export function nearest(word: string, candidates: readonly string[]): string | null {
  const limit = Math.min(3, Math.max(1, Math.floor(word.length / 3)));
  let best: { readonly candidate: string; readonly distance: number } | null = null;
  for (const candidate of candidates) {
    if (Math.abs(candidate.length - word.length) > limit) continue;
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase());
    if (
      distance < Math.min(word.length, candidate.length) &&
      distance <= limit &&
      (best === null || distance < best.distance)
    )
      best = { candidate, distance };
  }
  return best?.candidate ?? null;
}

/** Optimal string alignment distance: insertions, deletions, replacements and swaps of neighbours. */
export function editDistance(a: string, b: string): number {
  const rows: number[][] = Array.from({ length: a.length + 1 }, (_, i) => [i]);
  const at = (i: number, j: number) => rows[i]?.[j] ?? 0;
  for (let j = 0; j <= b.length; j++) (rows[0] as number[])[j] = j;
  for (let i = 1; i <= a.length; i++) {
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1;
      let value = Math.min(at(i - 1, j) + 1, at(i, j - 1) + 1, at(i - 1, j - 1) + same);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        value = Math.min(value, at(i - 2, j - 2) + 1);
      }
      (rows[i] as number[])[j] = value;
    }
  }
  return at(a.length, b.length);
}
