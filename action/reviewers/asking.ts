/**
 * Reviewers that are asked with a prompt and answer in one schema (REV-1 to REV-3): models and
 * command-line agents. Every session is admitted before anything is spent and ended with its real usage
 * (ADM-1); an answer that is not whole is asked for once more, then the reviewer is unavailable.
 */
import { providerOf } from '../../app/domain/provider.ts';
import type { Usage } from '../../app/domain/transcript/step.ts';
import { isAgent } from '../../app/domain/transcript.ts';
import type { ReviewerSpec } from '../../app/protocol/runner.ts';
import { readAnswer, schemaText } from './answer.ts';
import { hidden } from './prompt/hidden.ts';
import { joinRanges } from './prompt/join.ts';
import type { Range } from './prompt/ranges.ts';
import { buildPrompt, clauseLabels, type Prompt, promptRanges } from './prompt.ts';
import { type AskedUses, usualKey } from './providers.ts';
import type { ReviewOutcome, ReviewTask, Unavailable } from './reviewer.ts';

/** A reviewer that is asked, with all it needs for that. */
export type AskedSpec = ReviewerSpec & { uses: AskedUses; model: string };
/** A provider's key and the variable of the job that held it. */
export type Key = Readonly<{ name: string; value: string }>;
type Purpose = 'review' | 'fallback' | 'repair';

/** What became of one question. `exit` and `log` are those of an agent's program. */
export type Call = Readonly<{ exit?: number | null; log?: string }> &
  (
    | Readonly<{ kind: 'answer'; text: string; finish: string; usage: Usage }>
    | Readonly<{
        kind: 'failed';
        end: Unavailable;
        session: 'invalid' | 'failed' | 'timeout';
        detail: string;
        retryAfterMs: number | null;
      }>
    | Readonly<{ kind: 'stopped' }>
  );

/** Ends that no fallback can mend: what a session did stays done, and another one costs as much and reads the same. */
const ENDS_ALL: ReadonlySet<Unavailable> = new Set(['budget', 'too_large', 'rule_break']);

/** Ends of a session that said something, or nothing, instead of an answer: asked once more (REV-3). */
const REPAIRABLE: ReadonlySet<Unavailable> = new Set(['bad_output', 'empty_output', 'truncated']);

const DEFAULT_LENSES = [
  'security',
  'correctness',
  'reliability',
  'performance',
  'maintainability',
  'tests',
  'docs',
];

/**
 * Reviews by a model or an agent, then by its fallbacks in order while the one before was unavailable. None
 * of them is shown a secret of the job or a token that the change holds (REV-8).
 */
export async function reviewByAsking(given: ReviewTask, secrets: readonly string[]): Promise<ReviewOutcome> {
  const task = hidden(given, secrets);
  const first = await reviewByOne(task, task.spec, 'review');
  let last = first;
  for (const name of task.spec.fallbacks ?? []) {
    if (last.kind !== 'unavailable' || ENDS_ALL.has(last.end)) break;
    const spec = task.ticket.fallbacks.find((fallback) => fallback.name === name);
    if (spec === undefined || spec.uses === 'command') continue;
    last = await reviewByOne(task, spec, 'fallback');
  }
  if (last.kind !== 'unavailable' || last.end === 'rule_break') return last;
  // all of them failed: the ticket waits for the one that it was meant for
  return first;
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
  if (!isAsked(spec)) return unavailable('bad_ticket', 'no model is named');
  const keyName = spec.key ?? usualKey[spec.uses];
  const value = keyName === null ? null : task.secret(keyName);
  if (keyName !== null && value === null)
    return unavailable('provider_error', `this job has no key in ${keyName}`);
  const key = keyName === null || value === null ? null : { name: keyName, value };
  if (isAgent(spec.uses)) {
    const why = await (await import('./agent.ts')).whyNotHeld(task, spec.uses);
    if (why !== null) return unavailable(why.end, why.detail);
  }

  const cut = promptRanges(task);
  if (cut.kind === 'too_large') return unavailable('too_large', cut.detail);
  const outcomes: ReviewOutcome[] = [];
  for (const range of cut.ranges) {
    const outcome = await reviewRange(task, spec, key, purpose, range, unavailable);
    outcomes.push(outcome);
    // a file read in part is not reviewed: what is left would be spent for nothing
    if (outcome.kind !== 'reviewed') break;
  }
  return joinRanges(outcomes, cut.ranges);
}

async function reviewRange(
  task: ReviewTask,
  spec: AskedSpec,
  key: Key | null,
  purpose: Purpose,
  range: Range,
  unavailable: (
    end: Extract<ReviewOutcome, { kind: 'unavailable' }>['end'],
    detail: string,
    retryAfterMs?: number | null,
  ) => ReviewOutcome,
): Promise<ReviewOutcome> {
  const lenses = spec.lenses ?? (task.ticket.lenses.length > 0 ? task.ticket.lenses : DEFAULT_LENSES);
  const claimed =
    range.of > range.to || range.from > 1 ? `lines ${range.from} to ${range.to} of ${range.of}` : null;
  let note: string | null = null;
  for (const asked of [purpose, 'repair'] as const) {
    const prompt = buildPrompt(task.ticket, task, lenses, note, range);
    const admission = await task.sessions.admit({
      reviewer: spec.name,
      purpose: asked,
      promptTokens: estimateTokens(prompt),
    });
    if (admission.kind === 'refused') return admission.outcome;
    const from = performance.now();
    const call = await askOne(task, spec, key, prompt);
    const ended = (end: 'complete' | 'invalid' | 'failed' | 'timeout' | 'abandoned', detail: string | null) =>
      task.sessions.ended({
        id: admission.session,
        reviewer: spec.name,
        provider: providerOf(spec),
        model: spec.model,
        end,
        detail,
        exit: call.exit ?? null,
        tokens_in: call.kind === 'answer' ? call.usage.tokensIn : 0,
        tokens_out: call.kind === 'answer' ? call.usage.tokensOut : 0,
        cost_micro: call.kind === 'answer' ? call.usage.costMicro : 0,
        ms: Math.round(performance.now() - from),
        ...(call.log === undefined ? {} : { log: call.log }),
      });
    if (call.kind === 'stopped') {
      await ended('abandoned', 'stopped');
      return { kind: 'given_up', why: 'stopping' };
    }
    if (call.kind === 'failed') {
      await ended(call.session, call.detail);
      if (asked === 'repair' || !REPAIRABLE.has(call.end))
        return unavailable(call.end, call.detail, call.retryAfterMs);
      note =
        'Your previous answer did not arrive whole. Answer again, with one complete JSON document that fits the schema.';
      continue;
    }
    const { text, finish } = call;
    const answer = readAnswer(text, {
      nonce: task.ticket.nonce,
      path: task.ticket.path,
      finishReason: finish,
      lenses,
      labels: clauseLabels(task.ticket),
    });
    if (answer.ok) {
      await ended('complete', claimed);
      return {
        kind: 'reviewed',
        reviewer: spec.name,
        verdict: answer.verdict,
        findings: answer.findings,
        unplaced: answer.unplaced.map((said) => `${spec.name}: ${said}`),
        answers: answer.answers,
        clauses: answer.clauses,
      };
    }
    await ended('invalid', answer.reason);
    if (asked === 'repair') return unavailable(answer.end, answer.reason);
    note = `Your previous answer was not accepted: ${answer.reason}. Answer again, with one complete JSON document that fits the schema.`;
  }
  return unavailable('bad_output', 'no valid answer');
}

function isAsked(spec: ReviewerSpec): spec is AskedSpec {
  return (
    spec.uses !== 'command' &&
    spec.model !== undefined &&
    (spec.uses !== 'openai-compatible' || spec.base_url !== undefined)
  );
}

async function askOne(task: ReviewTask, spec: AskedSpec, key: Key | null, prompt: Prompt): Promise<Call> {
  const { uses } = spec;
  if (!isAgent(uses))
    return (await import('./ai-sdk.ts')).askModel(task, { ...spec, uses }, key?.value ?? null, prompt);
  const text = `${prompt.system}\nThe JSON Schema of the answer: ${schemaText()}\n\n${prompt.user}`;
  return (await import('./agent.ts')).askAgent(task, { uses, model: spec.model }, key, text);
}

/** A reservation, not a bill: three characters a token is on the safe side for code. */
function estimateTokens(prompt: Prompt): number {
  return Math.ceil((prompt.system.length + prompt.user.length) / 3);
}
