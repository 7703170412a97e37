/** Model providers behind the AI SDK, each loaded when a ticket first names it (ACT-1). */
import type { LanguageModel } from 'ai';
import type { AgentKind } from '../../app/domain/transcript.ts';
import type { ReviewerSpec } from '../../app/protocol/runner.ts';

/** The reviewers that are asked: models and command-line agents. */
export type AskedUses = Exclude<ReviewerSpec['uses'], 'command'>;
/** The reviewers that are models. */
export type ModelUses = Exclude<AskedUses, AgentKind>;

/** The variable that holds a provider's key where the policy names none (REV-1). */
export const usualKey: Readonly<Record<AskedUses, string | null>> = {
  anthropic: 'ANTHROPIC_API_KEY',
  openai: 'OPENAI_API_KEY',
  xai: 'XAI_API_KEY',
  // a server of one's own often takes no key: needed only where the policy names one
  'openai-compatible': null,
  'claude-code': 'ANTHROPIC_API_KEY',
  codex: 'OPENAI_API_KEY',
  grok: 'XAI_API_KEY',
  // it depends on the provider of the model: the policy names it
  opencode: null,
};

/** Redirects are errors: one would take the key and the quoted code to whom nobody named. */
const straight: typeof fetch = (input, init) => fetch(input, { ...init, redirect: 'error' });

/** Opens the model of a reviewer; `schema: false` asks for JSON without a schema, for providers that refuse ours. */
export async function openModel(
  spec: ReviewerSpec & { uses: ModelUses; model: string },
  key: string | null,
  schema: boolean,
): Promise<LanguageModel> {
  const at = {
    fetch: straight,
    ...(key === null ? {} : { apiKey: key }),
    ...(spec.base_url === undefined ? {} : { baseURL: spec.base_url }),
  };
  switch (spec.uses) {
    case 'anthropic':
      return (await import('@ai-sdk/anthropic')).createAnthropic(at)(spec.model);
    case 'openai':
      return (await import('@ai-sdk/openai')).createOpenAI(at)(spec.model);
    case 'xai':
      return (await import('@ai-sdk/xai')).createXai(at)(spec.model);
    case 'openai-compatible': {
      const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible');
      const provider = createOpenAICompatible({
        name: 'openai-compatible',
        ...at,
        baseURL: spec.base_url ?? '',
        supportsStructuredOutputs: schema,
      });
      return provider.chatModel(spec.model);
    }
  }
}
