/**
 * Installation settings (POL-2): which keys there are, what each takes, and what it does. One table is the
 * command line, its checks, and docs/settings.md. `slots.PROVIDER` and `policy.KEY` stand for many.
 */
import * as z from 'zod';
import { Refusal } from '../../errors.ts';
import { LIMITS } from '../limits.ts';
import { nearest } from '../policy/explain.ts';
import { policySchema, policySchemaJson } from '../policy/schema.ts';

/** A kind of setting; a name with `*` stands for any that goes on so. */
export interface SettingKind {
  readonly name: string;
  readonly does: string;
  readonly takes: string;
  readonly standard: string;
}

const { min, max, default: slots } = LIMITS.providerSlots;
const slotCount = z
  .int(`a whole number from ${min} to ${max}`)
  .min(min, `at least ${min}`)
  .max(max, `at most ${max}`);

/** Every kind of setting, in the order of the page. */
export const SETTING_KINDS: readonly SettingKind[] = [
  {
    name: 'kill',
    does: 'The kill switch (CTL-5): every lease is revoked, and nothing is leased, admitted, dispatched or called a success until it is unset; then everything goes on by itself.',
    takes: 'on',
    standard: 'unset',
  },
  {
    name: 'slots',
    does: 'Sessions at once with each provider; one that is lowered waits for those that run.',
    takes: `a whole number from ${min} to ${max}`,
    standard: String(slots),
  },
  {
    name: 'slots.PROVIDER',
    does: 'The same for one provider, by the name that the pages show (`anthropic`, `openai@llm.example.com`).',
    takes: `a whole number from ${min} to ${max}`,
    standard: 'what `slots` says',
  },
  {
    name: 'ceiling.tokens',
    does: 'Most tokens of the installation in a calendar month of UTC, over all of its repositories, whatever their policies allow (ADM-2).',
    takes: 'a whole number from 1',
    standard: 'no ceiling',
  },
  {
    name: 'ceiling.usd',
    does: 'The same in US dollars, by the prices in `budget.prices` of the policies: a model without a price is not asked.',
    takes: 'an amount above 0',
    standard: 'no ceiling',
  },
  {
    name: 'policy.KEY',
    does: 'What a policy that leaves KEY out has for it. Where the table below has an order, a policy may only be stricter: what is laxer counts as the setting says.',
    takes: 'what the policy takes for KEY',
    standard: 'the default of the policy',
  },
];

type Json = { readonly [key: string]: unknown };

/** Keys that one installation cannot say for every policy: what they mean hangs on the rest of the file. */
const OWN_OF_A_POLICY = new Set([
  'version',
  'review.lenses',
  'review.consensus',
  'levels.L1',
  'levels.L2',
  'levels.L3',
  'budget.run.usd',
  'budget.month.usd',
  'budget.outsiders.usd',
]);

function* leaves(schema: Json, at: string): Generator<string> {
  for (const [name, property] of Object.entries((schema['properties'] ?? {}) as Record<string, Json>)) {
    const key = at === '' ? name : `${at}.${name}`;
    if (property['properties'] !== undefined) yield* leaves(property, key);
    else if (property['additionalProperties'] === undefined && !isListOfMaps(property)) yield key;
  }
}

function isListOfMaps(property: Json): boolean {
  const items = property['items'] as Json | undefined;
  return ['properties', 'oneOf', 'anyOf'].some((word) => items?.[word] !== undefined && !isPlain(items));
}

/** A choice of plain values, such as an id as a number or as digits. */
function isPlain(items: Json): boolean {
  const variants = (items['anyOf'] ?? items['oneOf']) as Json[] | undefined;
  return variants?.every((one) => one['properties'] === undefined) === true;
}

/** The keys of the policy that a setting may give, dotted. */
export const POLICY_SETTINGS: readonly string[] = [...leaves(policySchemaJson(), '')].filter(
  (key) => !OWN_OF_A_POLICY.has(key),
);

/** Reads a key as a person writes it; unknown ones name the nearest (`bad_request`). */
export function readSettingKey(text: string): string {
  if (/^slots\.[a-z][A-Za-z0-9@.:_-]{0,59}$/.test(text)) return text;
  const known = [
    ...SETTING_KINDS.map((kind) => kind.name).filter((name) => !/[A-Z]/.test(name)),
    ...POLICY_SETTINGS.map((key) => `policy.${key}`),
  ];
  if (known.includes(text)) return text;
  const near = nearest(text, known);
  throw new Refusal(
    'bad_request',
    `there is no setting ${JSON.stringify(text)}${near === null ? '' : `; did you mean ${near}?`}`,
    'kill, slots, slots.PROVIDER, ceiling.tokens, ceiling.usd, policy.KEY (docs/settings.md)',
  );
}

/** Reads a value for a key that was read: JSON where it is some, else the words themselves (`bad_request` with what is accepted). */
export function readSettingValue(key: string, text: string): unknown {
  if (key === 'kill') return check(z.literal('on', 'on; to switch it off: settings unset kill'), text, key);
  const given = plain(text);
  if (key === 'slots' || key.startsWith('slots.')) return check(slotCount, given, key);
  if (key === 'ceiling.tokens')
    return check(z.int('a whole number from 1').min(1, 'at least 1').max(1e15, 'at most 10^15'), given, key);
  if (key === 'ceiling.usd')
    return check(
      z.number('an amount above 0').positive('an amount above 0').max(1e9, 'at most 10^9'),
      given,
      key,
    );
  const path = key.slice('policy.'.length).split('.');
  const parsed = policySchema.safeParse(nested(path, given));
  if (parsed.success) return given;
  const issue = parsed.error.issues[0];
  const accepted =
    issue !== undefined && 'values' in issue ? issue.values.map(String).join(', ') : issue?.message;
  throw new Refusal('bad_request', `${text} is not accepted for ${key}`, accepted ?? 'what the policy takes');
}

/** A policy file that says one thing. */
export function nested(path: readonly string[], value: unknown): Json {
  let made: unknown = value;
  for (const part of [...path].reverse()) made = { [part]: made };
  return { version: 1, ...(made as Json) };
}

function check(schema: z.ZodType, value: unknown, key: string): unknown {
  const parsed = schema.safeParse(value);
  if (parsed.success) return value;
  const shown = typeof value === 'string' ? value : JSON.stringify(value);
  throw new Refusal(
    'bad_request',
    `${shown} is not accepted for ${key}`,
    parsed.error.issues[0]?.message ?? 'another value',
  );
}

function plain(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** The units of capacity of a provider under these settings (LSE-1). */
export function slotsOf(
  settings: ReadonlyMap<string, { readonly value: unknown }>,
  provider: string,
): number {
  const said = settings.get(`slots.${provider}`)?.value ?? settings.get('slots')?.value;
  return typeof said === 'number' ? said : slots;
}
