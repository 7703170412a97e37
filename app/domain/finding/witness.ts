/** Who saw a finding, where that counts (RND-3): L3 asks two different reviewers, which agree by fingerprint. Pure. */

/** A finding as far as its witnesses ask. */
interface Seen {
  readonly state: string;
  readonly witnesses: readonly string[] | null;
}

/**
 * The witnesses of a finding that is raised, over rounds. One that stood without any blocks whoever saw
 * it: no deeper look that only half agrees makes it milder.
 */
export function witnessesOf(
  before: Seen | undefined,
  raised: { readonly witnesses?: readonly string[] | undefined },
): readonly string[] | null {
  const stood = before?.state === 'open' || before?.state === 'answered' || before?.state === 'dismissed';
  if (raised.witnesses === undefined || (stood && before.witnesses === null)) return null;
  return [...new Set([...(stood ? (before.witnesses ?? []) : []), ...raised.witnesses])];
}

/** Whether two reviewers could have seen it and one did: shown as such. */
export function isSingleWitness({ witnesses }: Pick<Seen, 'witnesses'>): boolean {
  return witnesses?.length === 1;
}

/** Whether it takes two to block with this finding and there is one (`review.consensus: {LENS: both}`). */
export function lacksConsensus(
  finding: Pick<Seen, 'witnesses'> & { readonly lens: string },
  both: readonly string[],
): boolean {
  return isSingleWitness(finding) && both.includes(finding.lens);
}

/** A reviewer of a ticket as far as its difference from another asks. */
interface Witness {
  readonly name: string;
  readonly uses: string;
  readonly model?: string | undefined;
  readonly base_url?: string | undefined;
}

/** Whether two reviewers are of different provider or model: two names for one model are one witness. */
export function differ(a: Witness, b: Witness): boolean {
  return a.uses !== b.uses || a.model !== b.model || a.base_url !== b.base_url;
}

/**
 * Who of an L3 ticket saw a finding (RND-3): null where it is no L3, where a command raised it, or where
 * no two different models completed, so that nobody else could have seen it.
 */
export function seenBy(
  level: string,
  raised: { readonly reviewer: string; readonly seen_by?: readonly string[] | undefined },
  complete: readonly Witness[],
): string[] | null {
  const own = complete.find((one) => one.name === raised.reviewer);
  if (level !== 'L3' || own === undefined || !complete.some((one) => differ(one, own))) return null;
  const others = (raised.seen_by ?? []).flatMap(
    (name) => complete.find((one) => one.name === name && differ(one, own)) ?? [],
  );
  // two that are one model count once
  const apart = others.filter((one, i) => others.slice(0, i).every((before) => differ(before, one)));
  return [own, ...apart].map((one) => one.name);
}
