/**
 * Token shapes that are secrets wherever they stand (REV-8, T26). The text is an attacker's: every
 * expression is linear, with bounded repetition wherever two parts could match the same characters.
 */
import type { SecretSpan } from './span.ts';

/** A shape: when it has a group, only the group is the secret. */
type Shape = Readonly<{ kind: string; pattern: RegExp }>;

const shapes: readonly Shape[] = [
  // ghs_APPID_JWT since 2026-04-27: dots and dashes after the prefix, far more than 40 characters
  {
    kind: 'github_token',
    pattern: /(?<![A-Za-z0-9])gh[pousr]_[A-Za-z0-9_-]{16,}(?:\.[A-Za-z0-9_-]{4,}){0,4}/g,
  },
  { kind: 'github_token', pattern: /(?<![A-Za-z0-9])github_pat_[A-Za-z0-9_]{20,}/g },
  { kind: 'aws_access_key', pattern: /(?<![A-Za-z0-9])(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}(?![A-Za-z0-9])/g },
  {
    kind: 'aws_secret_key',
    pattern:
      /(?:aws|AWS)[A-Za-z_. -]{0,20}(?:secret|SECRET|Secret)[A-Za-z_. -]{0,20}["'`]?\s{0,4}(?:=>|[=:])\s{0,4}["'`]?([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+])/g,
  },
  { kind: 'google_key', pattern: /(?<![A-Za-z0-9])AIza[A-Za-z0-9_-]{35}/g },
  { kind: 'slack_token', pattern: /(?<![A-Za-z0-9])xox[abeoprs]-[A-Za-z0-9-]{10,}/g },
  { kind: 'slack_webhook', pattern: /hooks\.slack\.com\/(?:services|workflows)\/[A-Za-z0-9/_-]{20,}/g },
  { kind: 'stripe_key', pattern: /(?<![A-Za-z0-9])(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,}/g },
  { kind: 'model_key', pattern: /(?<![A-Za-z0-9])(?:sk|xai|gsk)-[A-Za-z0-9_-]{20,}/g },
  { kind: 'npm_token', pattern: /(?<![A-Za-z0-9])npm_[A-Za-z0-9]{36}/g },
  { kind: 'pypi_token', pattern: /(?<![A-Za-z0-9])pypi-[A-Za-z0-9_-]{50,}/g },
  { kind: 'gitlab_token', pattern: /(?<![A-Za-z0-9])glpat-[A-Za-z0-9_-]{20,}/g },
  {
    kind: 'jwt',
    pattern: /(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}/g,
  },
  {
    kind: 'authorization',
    pattern:
      /[Aa]uthorization["'`]?\s{0,4}[:=]\s{0,4}["'`]?(?:[Bb]earer|[Bb]asic|token)\s{1,4}([A-Za-z0-9._~+/=-]{16,})/g,
  },
  { kind: 'url_password', pattern: /:\/\/[^\s/:@"'`]{0,100}:([^\s/:@"'`]{8,200})@/g },
];

/** Every place where a known token shape stands. */
export function shapeSpans(text: string): SecretSpan[] {
  const spans: SecretSpan[] = [];
  for (const { kind, pattern } of shapes)
    for (const match of text.matchAll(pattern)) {
      const secret = match[1] ?? match[0];
      const start = match.index + match[0].lastIndexOf(secret);
      spans.push({ start, end: start + secret.length, kind });
    }
  return spans;
}

const BEGIN = /-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----/g;
const END = /-----END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----/g;
/** What may follow a BEGIN line whose END is missing: base64 lines, real or escaped line breaks between. */
const BODY = /(?:(?:\s|\\[rn]){1,8}[A-Za-z0-9+/=]{16,}){1,400}/y;

/** Every private key block, whole; one that was cut off before its end counts as far as it goes. */
export function privateKeySpans(text: string): SecretSpan[] {
  const ends = [...text.matchAll(END)].map((match) => match.index + match[0].length);
  const begins = [...text.matchAll(BEGIN)];
  const spans: SecretSpan[] = [];
  let e = 0;
  begins.forEach((match, i) => {
    const after = match.index + match[0].length;
    while (e < ends.length && (ends[e] ?? 0) < after) e++;
    const end = ends[e];
    const next = begins[i + 1]?.index ?? text.length;
    if (end !== undefined && end <= next) {
      spans.push({ start: match.index, end, kind: 'private_key' });
      return;
    }
    BODY.lastIndex = after;
    const body = BODY.exec(text);
    if (body !== null) spans.push({ start: match.index, end: after + body[0].length, kind: 'private_key' });
  });
  return spans;
}
