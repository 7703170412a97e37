/** A model behind a provider's API, asked through the AI SDK: no tools, no retry that the server did not admit. */
import { askedSchema, schemaText } from './answer.ts';
import type { AskedSpec, Call } from './asking.ts';
import type { Prompt } from './prompt.ts';
import { type ProviderFailure, providerFailure } from './provider-error.ts';
import { type ModelUses, openModel } from './providers.ts';
import type { ReviewTask } from './reviewer.ts';

type ModelSpec = AskedSpec & { uses: ModelUses };

const DEFAULT_MAX_OUTPUT = 16_000;
/** Models that refused our schema, by provider, address and model: asked without it from then on (REV-1). */
const plainForm = new Set<string>();

type Once = Extract<Call, { kind: 'answer' }> | Readonly<{ kind: 'refused'; failure: ProviderFailure }>;

/** Asks a model once; a provider that refuses our schema is asked again in the form it takes (REV-1). */
export async function askModel(
  task: ReviewTask,
  spec: ModelSpec,
  key: string | null,
  prompt: Prompt,
): Promise<Call> {
  const form = `${spec.uses} ${spec.base_url ?? ''} ${spec.model}`;
  const timeout = AbortSignal.timeout(Math.min(Math.max(1, task.ticket.timeout_ms), 2 ** 31 - 1));
  const signal = AbortSignal.any([timeout, task.signal]);
  const attempt = () => callOnce(spec, key, prompt, !plainForm.has(form), signal);
  let call = await attempt();
  if (call.kind === 'refused' && call.failure.refusedForm && !plainForm.has(form)) {
    plainForm.add(form);
    call = await attempt();
    // the schema was not what it minded: do not remember
    if (call.kind === 'refused' && call.failure.refusedForm) plainForm.delete(form);
  }
  if (task.signal.aborted) return { kind: 'stopped' };
  if (call.kind === 'answer') return call;
  if (timeout.aborted) {
    const detail = `no answer after ${task.ticket.timeout_ms} ms`;
    return { kind: 'failed', end: 'timeout', session: 'timeout', detail, retryAfterMs: null };
  }
  const { end, detail, retryAfterMs } = call.failure;
  return { kind: 'failed', end, session: 'failed', detail, retryAfterMs };
}

async function callOnce(
  spec: ModelSpec,
  key: string | null,
  prompt: Prompt,
  schema: boolean,
  signal: AbortSignal,
): Promise<Once> {
  globalThis.AI_SDK_LOG_WARNINGS = false;
  const { APICallError, generateText, NoObjectGeneratedError, Output } = await import('ai');
  const read = (
    text: string,
    finish: string,
    usage: { inputTokens?: number | undefined; outputTokens?: number | undefined } | undefined,
  ): Once => ({
    kind: 'answer',
    text,
    finish,
    usage: { tokensIn: usage?.inputTokens ?? 0, tokensOut: usage?.outputTokens ?? 0, costMicro: 0 },
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
      kind: 'refused',
      failure: providerFailure({
        status: api?.statusCode,
        body: api?.responseBody,
        headers: api?.responseHeaders,
        now: new Date(),
      }),
    };
  }
}
