/** What a person may do in a repository (facts/github.md §13); custom roles are not modelled. */
export type Role = 'admin' | 'maintain' | 'write' | 'triage' | 'read' | 'none';

/** Level of an app permission. */
export type Level = 'read' | 'write' | 'admin';

/** App permissions as GitHub names them, e.g. `{checks: 'write', contents: 'read'}`. */
export type Permissions = Readonly<Record<string, Level>>;

/** A person, bot or organisation. `token` is a personal access token for git and REST. */
export interface User {
  readonly id: number;
  readonly login: string;
  readonly name: string;
  readonly email: string;
  readonly type: 'User' | 'Bot' | 'Organization';
  readonly token: string;
  readonly createdAt: string;
}

/** A GitHub App; `privateKey` (PEM, PKCS#8) and `webhookSecret` are what its owner configures the product with. */
export interface App {
  readonly id: number;
  readonly slug: string;
  readonly name: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** Where its OAuth web flow may return to; the first is the default. */
  readonly callbackUrls: string[];
  readonly owner: User;
  readonly bot: User;
  readonly privateKey: string;
  readonly publicKey: string;
  readonly hookId: number;
  webhookUrl: string | null;
  webhookSecret: string;
  permissions: Permissions;
  events: readonly string[];
  readonly createdAt: string;
}

/** An app on an account; `repositoryIds` null means all of the account's. */
export interface Installation {
  readonly id: number;
  readonly app: App;
  readonly account: User;
  permissions: Permissions;
  events: readonly string[];
  repositoryIds: Set<number> | null;
  suspendedAt: string | null;
  suspendedBy: User | null;
  deleted: boolean;
  readonly createdAt: string;
  updatedAt: string;
}

/**
 * What a bearer of a token may do; job tokens are what workflows know as GITHUB_TOKEN, `user-to-server` is what a
 * GitHub App's OAuth flow ends in.
 */
export interface Token {
  readonly token: string;
  readonly kind: 'installation' | 'job' | 'user' | 'user-to-server';
  readonly installation: Installation | null;
  readonly user: User;
  readonly permissions: Permissions;
  readonly repositoryIds: ReadonlySet<number> | null;
  /** Milliseconds of the machine's clock. */
  expiresAt: number;
}

/** One annotation as it was accepted. */
export interface Annotation {
  readonly path: string;
  readonly start_line: number;
  readonly end_line: number;
  readonly start_column?: number;
  readonly end_column?: number;
  readonly annotation_level: 'notice' | 'warning' | 'failure';
  readonly message: string;
  readonly title?: string;
  readonly raw_details?: string;
}

/** A button of a check run. */
export interface CheckAction {
  readonly label: string;
  readonly description: string;
  readonly identifier: string;
}

/** Check suite: one per app and commit (facts/github.md §2). */
export interface CheckSuite {
  readonly id: number;
  readonly app: App;
  readonly repositoryId: number;
  readonly headSha: string;
  readonly headBranch: string | null;
  status: 'queued' | 'in_progress' | 'completed';
  conclusion: string | null;
  before: string | null;
  readonly createdAt: string;
  updatedAt: string;
}

/** Check run as GitHub keeps it; ids rise with creation, so the highest id is the newest created. */
export interface CheckRun {
  readonly id: number;
  readonly app: App;
  readonly repositoryId: number;
  readonly suite: CheckSuite;
  readonly headSha: string;
  name: string;
  status: 'queued' | 'in_progress' | 'completed';
  conclusion: string | null;
  readonly createdAt: string;
  startedAt: string | null;
  completedAt: string | null;
  detailsUrl: string | null;
  externalId: string;
  title: string | null;
  summary: string | null;
  text: string | null;
  annotations: Annotation[];
  actions: readonly CheckAction[];
}

/** A comment in a pull request's conversation. */
export interface IssueComment {
  readonly id: number;
  readonly repositoryId: number;
  readonly number: number;
  author: User;
  readonly viaApp: App | null;
  body: string;
  readonly createdAt: string;
  updatedAt: string;
  deleted: boolean;
  readonly reactions: Reaction[];
}

/** A review of a pull request; `commit` is the head it was given for. PENDING ones only their author sees. */
export interface Review {
  readonly id: number;
  readonly repositoryId: number;
  readonly number: number;
  readonly author: User;
  body: string;
  state: 'PENDING' | 'APPROVED' | 'CHANGES_REQUESTED' | 'COMMENTED' | 'DISMISSED';
  readonly commit: string;
  submittedAt: string | null;
  updatedAt: string;
}

/** A comment of a review on lines of the diff; `startLine` null for one line. */
export interface ReviewComment {
  readonly id: number;
  readonly repositoryId: number;
  readonly number: number;
  readonly reviewId: number;
  readonly author: User;
  readonly body: string;
  readonly path: string;
  readonly commit: string;
  readonly line: number;
  readonly side: 'LEFT' | 'RIGHT';
  readonly startLine: number | null;
  readonly startSide: 'LEFT' | 'RIGHT' | null;
  readonly position: number;
  readonly diffHunk: string;
  readonly createdAt: string;
}

/** A reaction to a comment. */
export interface Reaction {
  readonly id: number;
  readonly user: User;
  readonly content: '+1' | '-1' | 'laugh' | 'confused' | 'heart' | 'hooray' | 'rocket' | 'eyes';
  readonly createdAt: string;
}

/** One attempt to hand a webhook to an app (facts/github.md §11); redeliveries share `guid`. */
export interface Delivery {
  readonly id: number;
  readonly guid: string;
  readonly app: App;
  readonly installationId: number | null;
  readonly repositoryId: number | null;
  readonly event: string;
  readonly action: string | null;
  readonly body: string;
  readonly redelivery: boolean;
  readonly deliveredAt: string;
  requestHeaders: Record<string, string>;
  responseHeaders: Record<string, string> | null;
  responseBody: string | null;
  duration: number;
  status: string;
  statusCode: number;
}

/** JSON object on its way out. */
export type Json = Record<string, unknown>;
