/**
 * The digests a receipt carries (VER-2): what a command was, what it ran in, and both with what it was asked
 * for. Server and runner make them by the same code, so that either can be held against the other.
 */
import { createHash } from 'node:crypto';
import { canonicalBytes } from '../ledger/canonical.ts';

/** Room for a command with fifty variables of four thousand characters each. */
const MOST_BYTES = 2_000_000;

/** A command as its digest sees it: what the policy says of it, where and how long it runs aside. */
export type CommandFacts = Readonly<{
  run: readonly string[];
  env: Readonly<Record<string, string>>;
  ports: readonly string[];
  artifacts: readonly string[];
}>;

/** The machine a command ran on; empty where it is not told. */
export type MachineFacts = Readonly<{ os: string; arch: string; image: string; version: string }>;

function digest(value: unknown): string {
  return createHash('sha256').update(canonicalBytes(value, MOST_BYTES)).digest('hex');
}

/** Pairs in the order of their code units; keys of an object may hold only lower case in canonical form. */
function sorted(pairs: Readonly<Record<string, string>>): [string, string][] {
  return Object.entries(pairs).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
}

/**
 * SHA-256 of a command of the policy: argv, variables, sorted ports, artifacts. A runner whose digest is
 * another than the server's ran another command than the base policy names now.
 */
export function commandDigest(command: CommandFacts): string {
  return digest({
    run: [...command.run],
    env: sorted(command.env),
    ports: [...command.ports].sort(),
    artifacts: [...command.artifacts],
  });
}

/** SHA-256 of the environment a command got: its variables, those that differ in every run aside, and the machine. */
export function environmentDigest(
  variables: Readonly<Record<string, string>>,
  machine: MachineFacts,
): string {
  return digest({ variables: sorted(variables), machine: { ...machine } });
}

/** The input hash of VER-2: command, environment, artifacts, sorted ports. */
export function inputHash(command: CommandFacts, environment: string): string {
  return digest({
    run: [...command.run],
    environment,
    artifacts: [...command.artifacts],
    ports: [...command.ports].sort(),
  });
}
