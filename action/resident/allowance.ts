/**
 * What the policies of the repositories that a resident runner serves may use of its machine (POOL-1): keys go
 * to the addresses that its operator named, and programs run that its operator named. Whoever may change one
 * policy could else send the keys of all to an address of theirs, or run what they like beside them.
 */
import type { LeasedTicket, ReviewerSpec } from '../../app/protocol/runner.ts';
import { usualKey } from '../reviewers/providers.ts';

/** An entry of the providers file: reviewers of a kind (`for`: with that address in the policy), where they go and by which key. */
export type Provider = Readonly<{
  uses: Exclude<ReviewerSpec['uses'], 'command'>;
  for?: string | undefined;
  base_url?: string | undefined;
  key?: string | undefined;
}>;

/** What may be used. */
export type Allowance = Readonly<{
  /** The variables whose values a reviewer may have as its key. */
  keys: ReadonlySet<string>;
  /** The reviewer as it may run here, or why it may not. */
  of: (spec: ReviewerSpec) => Readonly<{ spec: ReviewerSpec }> | Readonly<{ refused: string }>;
}>;

/** Any program may be started: every policy is trusted with this machine. */
const ANY = 'any';

/** The allowance of a runner; without entries each vendor has its own address and its usual key. */
export function allowanceOf(of: {
  readonly providers: readonly Provider[];
  readonly commands: readonly string[];
}): Allowance {
  const keys = new Set(
    [...of.providers.map((one) => one.key), ...Object.values(usualKey)].flatMap((name) => name ?? []),
  );
  const programs = new Set(of.commands);
  return {
    keys,
    of(spec) {
      if (spec.uses === 'command') {
        const program = spec.command?.run[0] ?? '';
        return programs.has(ANY) || programs.has(program)
          ? { spec }
          : { refused: `runners of this pool do not start ${program} (countersign runner --commands)` };
      }
      const { uses } = spec;
      const entry =
        of.providers.find((one) => one.uses === uses && one.for !== undefined && one.for === spec.base_url) ??
        of.providers.find((one) => one.uses === uses && one.for === undefined);
      const { base_url: asked, key: named, ...rest } = spec;
      const at = entry?.base_url ?? entry?.for;
      if (at === undefined && asked !== undefined)
        return { refused: 'runners of this pool do not ask that base_url (countersign runner --providers)' };
      const key = entry?.key ?? usualKey[uses] ?? undefined;
      if (named !== undefined && entry === undefined && named !== key)
        return { refused: `runners of this pool do not use ${named} (countersign runner --providers)` };
      return {
        spec: {
          ...rest,
          ...(at === undefined ? {} : { base_url: at }),
          ...(key === undefined ? {} : { key }),
        },
      };
    },
  };
}

/** A ticket with its reviewers as they may run here, and why others may not, by name. */
export function allowed(
  allowance: Allowance | undefined,
  ticket: LeasedTicket,
): { readonly ticket: LeasedTicket; readonly refused: ReadonlyMap<string, string> } {
  const refused = new Map<string, string>();
  if (allowance === undefined) return { ticket, refused };
  const held = (specs: readonly ReviewerSpec[], keep: boolean) =>
    specs.flatMap((spec) => {
      const found = allowance.of(spec);
      if ('spec' in found) return [found.spec];
      if (keep) refused.set(spec.name, found.refused);
      return keep ? [spec] : [];
    });
  return {
    ticket: { ...ticket, reviewers: held(ticket.reviewers, true), fallbacks: held(ticket.fallbacks, false) },
    refused,
  };
}
