/** Verified rows for tests of the fold and the gate, without keys: the domain never sees more than these fields. */
import { createHash } from 'node:crypto';
import type { DecidedPath } from '../../app/domain/ledger/row-fields.ts';
import type { RowData, RowKind } from '../../app/domain/ledger/row-kinds.ts';
import { rowKinds } from '../../app/domain/ledger/row-kinds.ts';
import { pathKey, type WirePath } from '../../app/domain/path.ts';
import type { Fact } from '../../app/domain/run-state/fact.ts';

/** SHA-256 in hex of a text. */
export const sha = (text: string): string => createHash('sha256').update(text).digest('hex');
/** A commit id made of a letter. */
export const commit = (letter: string): string => letter.repeat(40);
/** The head of `FactList.head`. */
export const HEAD = commit('a');

/** Rows in order; every one fits its schema. */
export class FactList {
  readonly rows: Fact[] = [];
  #present: readonly DecidedPath[] = [];
  /** Product time of the next rows. */
  at = '2026-11-29T12:00:00.000Z';

  /** Appends a row of a kind. */
  add<K extends RowKind>(kind: K, data: RowData<K>, block: string | null = null): this {
    this.rows.push({
      seq: this.rows.length + 1,
      at: this.at,
      kind,
      block,
      actor: { kind: 'app', id: '1', via: 'delivery' },
      cause: { kind: 'delivery', id: 'd', sha256: null },
      data: rowKinds[kind].parse(data),
    } as Fact);
    return this;
  }

  /** A policy that holds. */
  policy(state: 'valid' | 'invalid' | 'absent' = 'valid', mode: 'enforce' | 'advisory' = 'enforce'): this {
    const hash = state === 'absent' ? null : sha('policy');
    const error = state === 'invalid' ? { error: { code: 'config_invalid', line: 3, text: sha('why') } } : {};
    return this.add('run.policy', { state, hash, commit: commit('b'), mode, ...error });
  }

  /** A head with its whole file set, decided. */
  head(paths: readonly DecidedPath[], more: Partial<RowData<'run.head'>> = {}): this {
    const names = new Set(paths.map((path) => pathKey(path.path)));
    const gone = this.#present.flatMap((path) => (names.has(pathKey(path.path)) ? [] : [path.path]));
    this.#present = paths;
    this.add('decision', {
      question: 'level',
      source: 'rules',
      head: more.head ?? HEAD,
      policy: sha('policy'),
      gone,
      paths: [...paths],
    });
    return this.add('run.head', {
      head: HEAD,
      base_ref: 'main',
      base: commit('b'),
      merge_base: commit('b'),
      prior: null,
      ancestor: null,
      draft: false,
      commits: 1,
      files: paths.length,
      files_digest: digestOf(paths.map((path) => path.path)),
      ...more,
    });
  }

  /** Who opened the pull request, and who made and pushed all of the head: account `1`, or others. */
  made(by: readonly string[] = ['1'], more: Partial<RowData<'run.people'>> = {}): this {
    if (this.rows.every((row) => row.kind !== 'run.opened'))
      this.add('run.opened', {
        pull: '7',
        group_head: null,
        epoch: 1,
        author: { id: '1', login: 'ada' },
        reason: 'opened',
      });
    const head = more.head ?? HEAD;
    this.add('run.pushed', { head, before: null, pusher: by[0] ?? '1' });
    return this.add('run.people', {
      head,
      merge_base: commit('b'),
      first: true,
      last: true,
      commits: [head],
      groups: [{ accounts: [...by], heads: [head], unattributed: false, paths: null }],
      ...more,
    });
  }

  /** What somebody did on the head: `/approve` by account `2` with write, or something else. */
  act(more: Partial<RowData<'human.acted'>> & { by?: string; kind?: 'person' | 'bot' | 'app' } = {}): this {
    const { by = '2', kind = 'person', ...data } = more;
    this.add('human.acted', {
      act: 'approve',
      head: HEAD,
      permission: 'write',
      clause: null,
      paths: [],
      self: false,
      text: sha('reason'),
      ...data,
    });
    const row = this.rows.pop();
    if (row !== undefined) this.rows.push({ ...row, actor: { kind, id: by, via: 'comment' } });
    return this;
  }

  /** Consent to spend. */
  allow(head = HEAD, scope: 'head' | 'author' = 'author'): this {
    return this.add('run.allowed', { rule: 'same_repository', scope, head });
  }

  /** The end of a path's ticket. */
  end(path: DecidedPath, more: Partial<RowData<'ticket.ended'>> = {}): this {
    return this.add('ticket.ended', {
      ticket: sha(`ticket ${pathKey(path.path)}`),
      key: path.key ?? sha('none'),
      path: path.path,
      block: path.block,
      round: 0,
      grant: 1,
      level: path.level,
      policy: sha('policy'),
      end: 'reviewed',
      final: true,
      verdict: more.end === undefined || more.end === 'reviewed' ? 'approve' : null,
      partial: false,
      runner: null,
      sessions: [],
      findings: [],
      brief: null,
      result: null,
      ms: 1,
      ...more,
    });
  }

  /** A finding on a path; give its fingerprint to the ticket's end. */
  finding(number: number, path: DecidedPath, more: Partial<RowData<'finding.raised'>> = {}): this {
    return this.add('finding.raised', {
      finding: number,
      fingerprint: sha(`finding ${number}`),
      path: path.path,
      side: 'head',
      start_line: 1,
      end_line: 1,
      severity: 'high',
      lens: 'correctness',
      state: 'open',
      reviewer: 'lint',
      command: true,
      ticket: sha('ticket'),
      key: path.key ?? sha('none'),
      blob: path.blob.head,
      title: sha(`title ${number}`),
      body: sha(`body ${number}`),
      quote: sha('quote'),
      suggestion: null,
      ...more,
    });
  }

  /** A block that commits named. */
  block(id: string, more: Partial<RowData<'block.opened'>> = {}): this {
    return this.add(
      'block.opened',
      {
        block: id,
        title: sha(`title of ${id}`),
        attempt: 1,
        kind: 'code',
        level: 'L1',
        named: true,
        identity: sha(id),
        commits: [HEAD],
        commit_count: 1,
        owns: [],
        after: [],
        accept: [],
        accept_human: [],
        notes: [],
        ...more,
      },
      id,
    );
  }
}

/** A path as decided: reviewed at L1, owned by `block`. */
export function decided(path: WirePath, more: Partial<DecidedPath> = {}): DecidedPath {
  return {
    path,
    status: 'M',
    mode: { base: '100644', head: '100644' },
    blob: { base: commit('c'), head: commit('d') },
    kind: 'code',
    level: 'L1',
    block: 'work',
    ownership: 'owned',
    key: more.level === 'L0' ? null : sha(`key ${pathKey(path)}`),
    ...more,
  };
}

function digestOf(paths: readonly WirePath[]): string {
  const names = paths.map(pathKey).sort();
  return createHash('sha256')
    .update(Buffer.from(names.map((name) => `${name}\0`).join(''), 'latin1'))
    .digest('hex');
}
