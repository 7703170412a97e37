/**
 * A model as a reviewer (REV-1 to REV-3): no tools, one structured answer, no retry that the server
 * did not admit. Every session is admitted before a byte is sent and ended with its real usage (ADM-1).
 */
import * as z from 'zod';
import { providerOf } from '../../app/domain/provider.ts';
import type { LeasedTicket, ReviewerSpec } from '../../app/protocol/runner.ts';
import { askedSchema, type ReadAnswer, readAnswer } from './answer.ts';
import { buildPrompt, type Prompt } from './prompt.ts';
import { type ProviderFailure, providerFailure } from './provider-error.ts';
import { type ModelUses, openModel, usualKey } from './providers.ts';
import type { ReviewOutcome, ReviewTask } from './reviewer.ts';

type ModelSpec = ReviewerSpec & { uses: ModelUses; model: string };
type Purpose = 'review' | 'fallback' | 'repair';

const DEFAULT_LENSES = [
  'security',
  'correctness',
  'reliability',
  'performance',
  'maintainability',
  'tests',
  'docs',
];
const DEFAULT_MAX_OUTPUT = 16_000;
/** Models that refused our schema, by provider, address and model: asked without it from then on (REV-1). */
const plainForm = new Set<string>();

type Call =
  | Readonly<{ kind: 'answer'; answer: ReadAnswer; tokensIn: number; tokensOut: number }>
  | Readonly<{ kind: 'failed'; failure: ProviderFailure }>
  | Readonly<{ kind: 'timeout' }>
  | Readonly<{ kind: 'stopped' }>;

/** Reviews by a model, then by its fallbacks in order while the one before was unavailable. */
export async function reviewByModel(task: ReviewTask): Promise<ReviewOutcome> {
  const first = await reviewByOne(task, task.spec, 'review');
  let last = first;
  for (const name of task.spec.fallbacks ?? []) {
    if (last.kind !== 'unavailable' || last.end === 'budget' || last.end === 'too_large') break;
    const spec = task.ticket.fallbacks.find((fallback) => fallback.name === name);
    if (spec === undefined || spec.uses === 'command') continue;
    last = await reviewByOne(task, spec, 'fallback');
  }
  // all of them failed: the ticket waits for the one that it was meant for
  return last.kind === 'unavailable' ? first : last;
}

async function reviewByOne(task: ReviewTask, spec: ReviewerSpec, purpose: Purpose): Promise<ReviewOutcome> {
  const unavailable = (
    end: Extract<ReviewOutcome, { kind: 'unavailable' }>['end'],
    detail: string,
    retryAfterMs: number | null = null,
  ): ReviewOutcome => ({
    kind: 'unavailable',
    reviewer: spec.name,
    end,
    detail: `${spec.name}: ${detail}`,
    retryAfterMs,
  });
  if (!isModel(spec)) return unavailable('bad_ticket', 'no model is named');
  const keyName = spec.key ?? usualKey[spec.uses];
  const key = keyName === null ? null : task.secret(keyName);
  if (keyName !== null && key === null)
    return unavailable('provider_error', `this job has no key in ${keyName}`);

  const lenses = spec.lenses ?? (task.ticket.lenses.length > 0 ? task.ticket.lenses : DEFAULT_LENSES);
  let note: string | null = null;
  for (const asked of [purpose, 'repair'] as const) {
    const prompt = buildPrompt(task.ticket, task, lenses, note);
    const admission = await task.sessions.admit({
      reviewer: spec.name,
      purpose: asked,
      promptTokens: estimateTokens(prompt),
    });
    if (admission.kind === 'refused') return admission.outcome;
    const from = performance.now();
    const call = await ask(task, spec, key, prompt, lenses);
    const ended = (end: 'complete' | 'invalid' | 'failed' | 'timeout' | 'abandoned', detail: string | null) =>
      task.sessions.ended({
        id: admission.session,
        reviewer: spec.name,
        provider: providerOf(spec),
        model: spec.model,
        end,
        detail,
        exit: null,
        tokens_in: call.kind === 'answer' ? call.tokensIn : 0,
        tokens_out: call.kind === 'answer' ? call.tokensOut : 0,
        cost_micro: 0,
        ms: Math.round(performance.now() - from),
      });
    if (call.kind === 'stopped') {
      await ended('abandoned', 'stopped');
      return { kind: 'given_up', why: 'stopping' };
    }
    if (call.kind === 'timeout') {
      await ended('timeout', `no answer after ${task.ticket.timeout_ms} ms`);
      return unavailable('timeout', `no answer after ${task.ticket.timeout_ms} ms`);
    }
    if (call.kind === 'failed') {
      await ended('failed', call.failure.detail);
      return unavailable(call.failure.end, call.failure.detail, call.failure.retryAfterMs);
    }
    const { answer } = call;
    if (answer.ok) {
      await ended('complete', null);
      return {
        kind: 'reviewed',
        reviewer: spec.name,
        verdict: answer.verdict,
        findings: answer.findings,
        unplaced: answer.unplaced.map((said) => `${spec.name}: ${said}`),
        answers: answer.answers,
      };
    }
    await ended('invalid', answer.reason);
    if (asked === 'repair') return unavailable(answer.end, answer.reason);
    note = `Your previous answer was not accepted: ${answer.reason}. Answer again, with one complete JSON document that fits the schema.`;
  }
  return unavailable('bad_output', 'no valid answer');
}

function isModel(spec: ReviewerSpec): spec is ModelSpec {
  return (
    spec.uses !== 'command' &&
    spec.model !== undefined &&
    (spec.uses !== 'openai-compatible' || spec.base_url !== undefined)
  );
}

/** A reservation, not a bill: three characters a token is on the safe side for code. */
function estimateTokens(prompt: Prompt): number {
  return Math.ceil((prompt.system.length + prompt.user.length) / 3);
}

async function ask(
  task: ReviewTask,
  spec: ModelSpec,
  key: string | null,
  prompt: Prompt,
  lenses: readonly string[],
): Promise<Call> {
  const form = `${spec.uses} ${spec.base_url ?? ''} ${spec.model}`;
  const timeout = AbortSignal.timeout(Math.min(Math.max(1, task.ticket.timeout_ms), 2 ** 31 - 1));
  const signal = AbortSignal.any([timeout, task.signal]);
  const attempt = () => callOnce(task.ticket, spec, key, prompt, lenses, !plainForm.has(form), signal);
  let call = await attempt();
  if (call.kind === 'failed' && call.failure.refusedForm && !plainForm.has(form)) {
    plainForm.add(form);
    call = await attempt();
    // the schema was not what it minded: do not remember
    if (call.kind === 'failed' && call.failure.refusedForm) plainForm.delete(form);
  }
  if (task.signal.aborted) return { kind: 'stopped' };
  return call.kind === 'failed' && timeout.aborted ? { kind: 'timeout' } : call;
}

/** The schema in words, for providers that cannot be given it as one. */
function schemaText(): string {
  return JSON.stringify(z.toJSONSchema(askedSchema));
}

async function callOnce(
  ticket: LeasedTicket,
  spec: ModelSpec,
  key: string | null,
  prompt: Prompt,
  lenses: readonly string[],
  schema: boolean,
  signal: AbortSignal,
): Promise<Call> {
  globalThis.AI_SDK_LOG_WARNINGS = false;
  const { APICallError, generateText, NoObjectGeneratedError, Output } = await import('ai');
  const read = (
    text: string,
    finishReason: string,
    usage: { inputTokens?: number | undefined; outputTokens?: number | undefined } | undefined,
  ): Call => ({
    kind: 'answer',
    answer: readAnswer(text, { nonce: ticket.nonce, path: ticket.path, finishReason, lenses }),
    tokensIn: usage?.inputTokens ?? 0,
    tokensOut: usage?.outputTokens ?? 0,
  });
  try {
    const result = await generateText({
      model: await openModel(spec, key, schema),
      system: schema ? prompt.system : `${prompt.system}\nThe JSON Schema of the answer: ${schemaText()}`,
      prompt: prompt.user,
      ...(schema ? { output: Output.object({ schema: askedSchema, name: 'review' }) } : {}),
      maxRetries: 0,
      maxOutputTokens: spec.max_output ?? DEFAULT_MAX_OUTPUT,
      abortSignal: signal,
    });
    return read(result.text, result.finishReason, result.usage);
  } catch (error) {
    // the library's own reading of the text does not count: ours is stricter and keeps the good findings
    if (NoObjectGeneratedError.isInstance(error))
      return read(error.text ?? '', error.finishReason ?? 'unknown', error.usage);
    const api = APICallError.isInstance(error) ? error : null;
    return {
      kind: 'failed',
      failure: providerFailure({
        status: api?.statusCode,
        body: api?.responseBody,
        headers: api?.responseHeaders,
        now: new Date(),
      }),
    };
  }
}
