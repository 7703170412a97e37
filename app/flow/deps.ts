/** What the arrows are given: every effect they may have, as an interface. Built once in main.ts. */
import type { Database } from '../../db/client.ts';
import type { GitReader } from '../github/port/git.ts';
import type { GitHubApp, GitHubSignIn } from '../github/port.ts';
import type { Signer } from '../signing/signer.ts';

/** Structured logging; fields never hold secrets or foreign text beyond ids. */
export interface Log {
  info(fields: Readonly<Record<string, unknown>>, event: string): void;
  warn(fields: Readonly<Record<string, unknown>>, event: string): void;
  error(fields: Readonly<Record<string, unknown>>, event: string): void;
}

/** Names that must not be guessed or repeat; the only source of randomness in flow. */
export interface Ids {
  /** A new id, 26 characters, sortable by time of making. */
  next(): string;
  /** A secret of 32 random bytes, base64url. */
  secret(): string;
}

/** What the arrows need of the configuration. */
export interface FlowSettings {
  /** Where the server is reached, without a trailing slash. */
  readonly publicUrl: string;
  /** Where git and pages of GitHub are, without a trailing slash (`https://github.com`). */
  readonly serverUrl: string;
  readonly version: string;
}

/** The effects of the arrows. */
export interface Deps {
  readonly database: Database;
  readonly signer: Signer;
  readonly github: GitHubApp;
  readonly git: GitReader;
  readonly log: Log;
  readonly ids: Ids;
  readonly settings: FlowSettings;
}

/** What the pages need besides; null: no OAuth client is configured, and nobody can sign in (OPS-8). */
export interface PageDeps extends Deps {
  readonly signIn: GitHubSignIn | null;
}
