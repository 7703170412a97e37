/** What a runner is told of a reviewer and a file, from the policy the ticket is cut with (RUN-8, REV-1). */
import type { ReviewerEntry } from './policy/reviewer.ts';
import { fallbacksOf, type Policy } from './policy.ts';
import { providerOf } from './provider.ts';
import type { TicketReviewer } from './review.ts';

/** The config files that reviewers name, without doubles: they travel as blobs of the base commit (REV-11). */
export function configPaths(policy: Policy): string[] {
  const paths = new Set<string>();
  for (const entry of policy.reviewers.values())
    if (entry.uses === 'command') for (const path of entry.config) paths.add(path);
  return [...paths];
}

/** The reviewers of a ticket and those they may fall back to, and the providers that can do it, in order. */
export function reviewersOf(
  policy: Policy,
  names: readonly string[],
  config: ReadonlyMap<string, string | null>,
): { reviewers: TicketReviewer[]; fallbacks: TicketReviewer[]; providers: string[] } {
  const specs = (list: readonly string[]) =>
    list.flatMap((name) => {
      const entry = policy.reviewers.get(name);
      return entry === undefined ? [] : [reviewerSpec(name, entry, config)];
    });
  const reviewers = specs(names);
  const fallbacks = specs(fallbacksOf(policy, names));
  const [first] = reviewers;
  const own = first === undefined ? [] : [first, ...fallbackChain(first, fallbacks)];
  return { reviewers, fallbacks, providers: [...new Set(own.map(providerOf))] };
}

function fallbackChain(first: TicketReviewer, fallbacks: readonly TicketReviewer[]): TicketReviewer[] {
  return (first.fallbacks ?? []).flatMap((name) => fallbacks.filter((one) => one.name === name));
}

/**
 * The reviewers as they are leased: where the first one's provider is settled, its first fallback of
 * the provider whose slot the lease has takes its place (POOL-3).
 */
export function pointedAt(
  spec: { readonly reviewers: readonly TicketReviewer[]; readonly fallbacks: readonly TicketReviewer[] },
  provider: string,
): TicketReviewer[] {
  const [first, ...rest] = spec.reviewers;
  if (first === undefined || providerOf(first) === provider) return [...spec.reviewers];
  const instead = fallbackChain(first, spec.fallbacks).find((one) => providerOf(one) === provider);
  return instead === undefined ? [...spec.reviewers] : [instead, ...rest];
}

/** A policy entry as the wire has it; `config` has the blob of each config path on the base commit. */
export function reviewerSpec(
  name: string,
  entry: ReviewerEntry,
  config: ReadonlyMap<string, string | null>,
): TicketReviewer {
  if (entry.uses === 'command') {
    return {
      name,
      uses: 'command',
      ...(entry.lenses === undefined ? {} : { lenses: [...entry.lenses] }),
      command: {
        run: [...entry.run],
        output: entry.output,
        paths: [...entry.paths],
        ok_exit: [...entry.ok_exit],
        deletions: entry.deletions,
        config: entry.config.map((path) => ({ path, blob: config.get(path) ?? null })),
        severity: { ...entry.severity },
      },
    };
  }
  return {
    name,
    uses: entry.uses,
    model: entry.model,
    ...('base_url' in entry && entry.base_url !== undefined ? { base_url: entry.base_url } : {}),
    ...(entry.key === undefined ? {} : { key: entry.key }),
    ...('max_output' in entry && entry.max_output !== undefined ? { max_output: entry.max_output } : {}),
    ...(entry.lenses === undefined ? {} : { lenses: [...entry.lenses] }),
    fallbacks: [...entry.fallbacks],
  };
}
