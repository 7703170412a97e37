/** The one log: JSON lines, secrets never, errors without what they carry of foreign or parameter text. */
import pino from 'pino';
import { Fault, Refusal } from '../errors.ts';
import type { Log } from '../flow/deps.ts';

/** What must never be printed, wherever it hangs. */
const SECRET_KEYS = [
  'authorization',
  'token',
  'secret',
  'password',
  'privateKey',
  'private_key',
  'webhookSecret',
  'webhookSecrets',
  'jwt',
  'keys',
  'seed',
  'body',
];

/** Makes the log; `destination` is for tests. */
export function createLog(level: string, destination?: pino.DestinationStream): Log {
  const settings: pino.LoggerOptions = {
    level,
    base: null,
    messageKey: 'event',
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
    redact: {
      paths: SECRET_KEYS.flatMap((key) => [key, `*.${key}`, `*.*.${key}`]),
      censor: '[redacted]',
    },
    serializers: { err: serializeError },
  };
  const logger = destination === undefined ? pino(settings) : pino(settings, destination);
  return {
    info: (fields, event) => logger.info(fields, event),
    warn: (fields, event) => logger.warn(fields, event),
    error: (fields, event) => logger.error(fields, event),
  };
}

/** A log that says nothing: Probot's own would print bodies of requests and whole payloads (facts/stack.md §3). */
export function silentLog(): pino.Logger {
  return pino({ level: 'silent' });
}

/**
 * An error as code, message and place. What libraries hang on errors is dropped: Probot's `event`,
 * Octokit's request and response, the parameters that a failed query quotes.
 */
export function serializeError(error: unknown, depth = 0): Record<string, unknown> {
  if (!(error instanceof Error)) return { message: typeof error };
  const { code } = error as { code?: unknown };
  const ours = error instanceof Fault || error instanceof Refusal;
  // the network or another machine failed, as it does again and again: where in our code tells nobody anything
  if (error instanceof Fault && error.retryable)
    return { type: error.name, code: error.code, message: error.message, ...deepest(error) };
  return {
    type: error.name,
    ...(typeof code === 'string' || typeof code === 'number' ? { code } : {}),
    // messages that are not ours may quote values: a query's parameters, a payload's text
    message: ours ? error.message : cutMessage(error),
    stack: frames(error),
    ...(depth < 3 && error.cause instanceof Error ? { cause: serializeError(error.cause, depth + 1) } : {}),
  };
}

/** What it came down to, in one line. */
function deepest(error: Error): { cause?: string } {
  let at: Error = error;
  for (let depth = 0; depth < 8 && at.cause instanceof Error; depth++) at = at.cause;
  if (at === error) return {};
  const { code } = at as { code?: unknown };
  const message = at instanceof Fault || at instanceof Refusal ? at.message : cutMessage(at);
  return { cause: typeof code === 'string' && !message.includes(code) ? `${code}: ${message}` : message };
}

function cutMessage(error: Error): string {
  const first = error.message.split('\n', 1)[0] ?? '';
  return error.name === 'DrizzleQueryError' || first.startsWith('Failed query')
    ? 'a query failed'
    : first.slice(0, 300);
}

function frames(error: Error): string[] {
  return (error.stack ?? '')
    .split('\n')
    .filter((line) => line.trimStart().startsWith('at '))
    .slice(0, 6)
    .map((line) => line.trim());
}
