/** Who may give a command (CMD-3): by the permission GitHub answered at that moment, never by an association. */
import type { Command } from './arguments.ts';
import { COMMANDS } from './table.ts';

/** A repository permission as GitHub answers it, least first. */
export const PERMISSIONS = ['none', 'read', 'triage', 'write', 'maintain', 'admin'] as const;
/** A repository permission. */
export type Permission = (typeof PERMISSIONS)[number];

/** Who asks. */
export interface Asker {
  readonly permission: Permission;
  /** Whether they opened the pull request. */
  readonly author: boolean;
  /** Whether the run may spend (RUN-10): until then its author has only status and help. */
  readonly allowed: boolean;
}

/** Whether a command asks for no permission at all, so that none is looked up. */
export function isForAnyone(command: Pick<Command, 'name'>): boolean {
  return COMMANDS[command.name].right === 'anyone';
}

/** Why these may not give the command, as words for them; null when they may. */
export function rightFault(command: Command, asker: Asker): string | null {
  const right = COMMANDS[command.name].right;
  const atLeast = (least: Permission) => PERMISSIONS.indexOf(asker.permission) >= PERMISSIONS.indexOf(least);
  switch (right) {
    case 'anyone':
      return null;
    case 'read':
      return atLeast('read') ? null : 'it needs read on this repository';
    case 'write':
      return atLeast('write') ? null : 'it needs write on this repository';
    case 'admin':
      return atLeast('admin') ? null : 'it needs admin on this repository';
    case 'author_or_write':
    case 'rerun': {
      if (atLeast('write')) return null;
      const forAuthor =
        right === 'author_or_write' || (command.name === 'rerun' && command.scope === 'failed');
      if (!forAuthor) return 'it needs write on this repository; its author may rerun what failed';
      if (!asker.author) return 'it needs write on this repository, or to be the author';
      return asker.allowed ? null : 'until this pull request is allowed, its author has only status and help';
    }
    case 'rule':
      // below the bar it is the author's as well (FND-2): the command itself knows how bad the finding is
      if (command.name === 'dismiss' && asker.author && asker.allowed) return null;
      return atLeast('write') ? null : 'it needs write on this repository';
  }
}

/** Which head a comment without a commit means (GAT-6): the last one whose gate was shown before it. */
export function shownHead(
  published: readonly { readonly sha: string; readonly atMs: number }[],
  /** GitHub's whole second. */
  commentMs: number,
): { readonly head: string } | { readonly unclear: 'nothing_shown' | 'same_second' } {
  const until = (ms: number) =>
    published
      .filter((one) => one.atMs <= ms)
      .reduce<{ sha: string; atMs: number } | null>(
        (last, one) => (last === null || one.atMs >= last.atMs ? one : last),
        null,
      );
  const before = until(commentMs);
  // GitHub cuts the fraction: within that second another head may have been shown before or after the comment
  const within = until(commentMs + 999);
  if (within === null) return { unclear: 'nothing_shown' };
  if (before === null) {
    const only = published
      .filter((one) => one.atMs <= commentMs + 999)
      .every((one) => one.sha === within.sha);
    return only ? { head: within.sha } : { unclear: 'same_second' };
  }
  return before.sha === within.sha ? { head: within.sha } : { unclear: 'same_second' };
}
