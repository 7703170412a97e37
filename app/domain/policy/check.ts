/** A policy file as `countersign config check` tells of it: errors, notes, and the defaults it leaves in force (POL-1, POL-3). */
import { type Policy, parsePolicy, type ReviewLevel } from '../policy.ts';
import type { PolicyNote } from './cross-check.ts';
import { dotted, type PolicyError } from './explain.ts';
import { type LineOf, readYaml } from './read-yaml.ts';
import { policySchemaJson } from './schema.ts';

/** A key that the file does not name, with what then holds, as a person would write it. */
export interface DefaultInForce {
  readonly key: string;
  readonly value: string;
}

/** What there is to say of a policy file; `notes` and `defaults` only of a valid one. */
export interface PolicyCheck {
  readonly valid: boolean;
  readonly errors: readonly PolicyError[];
  readonly notes: readonly PolicyNote[];
  readonly defaults: readonly DefaultInForce[];
}

/** Checks a policy file by the server's own parser; never throws. */
export function policyCheck(bytes: Uint8Array): PolicyCheck {
  const reading = parsePolicy(bytes);
  if (!reading.ok) return { valid: false, errors: reading.errors, notes: [], defaults: [] };
  const yaml = readYaml(bytes);
  const [data, lineOf]: [unknown, LineOf] = yaml.ok ? [yaml.data, yaml.lineOf] : [{}, () => 1];
  const notes = [...reading.notes, ...readerNotes(reading.policy, lineOf)];
  return {
    valid: true,
    errors: [],
    notes: notes.sort((a, b) => a.line - b.line),
    defaults: [...defaultsOf(policySchemaJson(), data, '')],
  };
}

const LEVELS: readonly ReviewLevel[] = ['L1', 'L2', 'L3'];

/** Levels and routes that leave some file without anybody who reads it: such a file ends `route_invalid` and holds the gate. */
function readerNotes(policy: Policy, lineOf: LineOf): PolicyNote[] {
  if (policy.reviewers.size === 0) return [];
  const byReaders = new Map<string, ReviewLevel[]>();
  for (const level of LEVELS) {
    const names = policy.levels[level].join(', ');
    byReaders.set(names, [...(byReaders.get(names) ?? []), level]);
  }
  const levels = [...byReaders.values()].map((same) => ({
    path: ['levels', same[0] ?? 'L1'],
    of: same.join(', '),
    names: policy.levels[same[0] ?? 'L1'],
  }));
  const routes = policy.routes.flatMap(({ reviewers }, i) =>
    reviewers === undefined ? [] : [{ path: ['routes', i, 'reviewers'], of: 'this route', names: reviewers }],
  );
  return [...levels, ...routes]
    .filter(({ names }) => !names.some((name) => readsAll(policy, name)))
    .map(({ path, of, names }) => ({
      line: lineOf(path),
      path: dotted(path),
      message: `${of}: nobody but commands (${names.join(', ')}), which read what their paths match; any other file ends route_invalid and holds the gate`,
    }));
}

function readsAll(policy: Policy, name: string): boolean {
  const entry = policy.reviewers.get(name);
  return entry !== undefined && (entry.uses !== 'command' || entry.paths.includes('**'));
}

type Json = { readonly [key: string]: unknown };

/** Keys of fixed name that the file leaves out; what a reviewer or a route leaves out docs/policy.md says. */
function* defaultsOf(schema: Json, data: unknown, at: string): Generator<DefaultInForce> {
  for (const [name, property] of Object.entries((schema['properties'] ?? {}) as Record<string, Json>)) {
    const key = at === '' ? name : `${at}.${name}`;
    const given = typeof data === 'object' && data !== null && Object.hasOwn(data, name);
    const value = given ? (data as Json)[name] : undefined;
    if (property['properties'] !== undefined) yield* defaultsOf(property, value, key);
    else if (!given && property['default'] !== undefined)
      yield { key, value: JSON.stringify(property['default']) };
  }
}
