import type { Entry, LooseObjects } from './objects.ts';

/**
 * Questions about plain histories, answered without a git process. Each gives undefined where it has to be
 * git that says: a commit is in a pack or missing, or the answer is a matter of git's own choice.
 */
export class History {
  readonly #objects: LooseObjects;

  constructor(objects: LooseObjects) {
    this.#objects = objects;
  }

  /** Whether the first commit is the second or one of its ancestors. */
  isAncestor(older: string, newer: string): boolean | undefined {
    if (this.#objects.commit(older) === null) return undefined;
    return this.#ancestors([newer])?.has(older);
  }

  /** The best common ancestor, null where there is none; undefined also where there may be several. */
  mergeBase(a: string, b: string): string | null | undefined {
    const ofA = this.#ancestors([a]);
    if (ofA === undefined) return undefined;
    const met = this.#walk([b], ofA)?.met;
    if (met === undefined || met.size > 1) return undefined;
    const [only = null] = met;
    return only;
  }

  /** Commits reachable from `head` and from none of `without`, oldest first; undefined also where a merge is among them. */
  between(without: readonly string[], head: string): string[] | undefined {
    const known = this.#ancestors(without);
    const found = known === undefined ? undefined : this.#walk([head], known)?.passed;
    if (found === undefined) return undefined;
    const ids = [...found];
    if (ids.some((id) => (this.#objects.commit(id)?.parents.length ?? 2) > 1)) return undefined;
    return ids.reverse();
  }

  /** What lies at a path of a commit, null where nothing does. */
  at(commit: string, path: string): Entry | null | undefined {
    const root = this.#objects.commit(commit)?.tree;
    let at: Entry | null | undefined = root === undefined ? undefined : { mode: '40000', name: '', id: root };
    for (const name of Buffer.from(path).toString('latin1').split('/')) {
      if (at === undefined || at === null) return at;
      const entries: Entry[] | null = at.mode === '40000' ? this.#objects.tree(at.id) : [];
      at = entries === null ? undefined : (entries.find((one) => one.name === name) ?? null);
    }
    return at;
  }

  #ancestors(heads: readonly string[]): ReadonlySet<string> | undefined {
    return this.#walk(heads, new Set())?.passed;
  }

  /** The commits reachable from heads up to a set, and those of the set where it ended. */
  #walk(
    heads: readonly string[],
    until: ReadonlySet<string>,
  ): { readonly passed: ReadonlySet<string>; readonly met: ReadonlySet<string> } | undefined {
    const passed = new Set<string>();
    const met = new Set<string>();
    const next = [...heads];
    for (let id = next.pop(); id !== undefined; id = next.pop()) {
      if (until.has(id)) met.add(id);
      else if (!passed.has(id)) {
        const commit = this.#objects.commit(id);
        if (commit === null) return undefined;
        passed.add(id);
        next.push(...commit.parents);
      }
    }
    return { passed, met };
  }
}
