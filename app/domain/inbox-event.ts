/** What a delivery says, in our words: only what we use, ids as decimal strings. A hint, never the truth (RUN-2). */

/** A repository as a delivery names it. */
export interface EventRepository {
  readonly id: string;
  readonly owner: string;
  readonly ownerId: string;
  readonly name: string;
  readonly defaultBranch: string;
  readonly private: boolean;
}

/** A person or bot as a delivery names it; null for a ghost. */
export interface EventActor {
  readonly id: string;
  readonly login: string;
  readonly bot: boolean;
}

/** A pull request as a delivery describes it. `headRepositoryId` is null when the fork is gone (case 9). */
export interface EventPull {
  readonly number: string;
  readonly state: 'open' | 'closed';
  readonly merged: boolean;
  readonly draft: boolean;
  readonly title: string;
  readonly author: EventActor | null;
  readonly head: string;
  readonly headRef: string;
  readonly headRepositoryId: string | null;
  readonly baseRef: string;
  readonly base: string;
}

interface InRepository {
  readonly installationId: string;
  readonly repository: EventRepository;
}

/** A repository in an installation's list: its owner is the account. */
export interface ListedRepository {
  readonly id: string;
  readonly owner: string;
  readonly name: string;
  readonly private: boolean;
}

/** One delivery, understood. `ignored` carries the reason as a code. */
export type InboxEvent =
  | ({
      readonly kind: 'pull_request';
      readonly action: string;
      readonly pull: EventPull;
      /** The head before this one, where the delivery tells it (`synchronize`). */
      readonly before: string | null;
      readonly sender: EventActor | null;
    } & InRepository)
  | ({
      readonly kind: 'comment';
      readonly pull: string;
      readonly comment: string;
      readonly author: EventActor | null;
      readonly body: string;
      readonly createdAt: string;
    } & InRepository)
  | ({
      /** A review that was given or dismissed; other actions change nothing that counts. */
      readonly kind: 'review';
      readonly action: 'submitted' | 'dismissed';
      readonly pull: string;
      readonly review: string;
      readonly author: EventActor | null;
      /** The head that it was given for, as delivered. */
      readonly commit: string;
    } & InRepository)
  | ({
      readonly kind: 'push';
      readonly branch: string;
      readonly after: string;
      readonly deleted: boolean;
      /** History was thrown away: what is between base and head may be more than before. */
      readonly forced: boolean;
    } & InRepository)
  | {
      readonly kind: 'installation';
      readonly action: string;
      readonly installationId: string;
      readonly account: { readonly id: string; readonly login: string };
      readonly permissions: Readonly<Record<string, string>>;
      readonly repositories: readonly ListedRepository[];
    }
  | {
      readonly kind: 'installation_repositories';
      readonly installationId: string;
      readonly account: { readonly id: string; readonly login: string };
      readonly added: readonly ListedRepository[];
      readonly removed: readonly ListedRepository[];
    }
  | ({ readonly kind: 'repository'; readonly action: string } & InRepository)
  | ({
      readonly kind: 'merge_group';
      readonly action: 'checks_requested' | 'destroyed';
      /** Why it was destroyed: `merged`, `invalidated`, `dequeued`; null otherwise. */
      readonly reason: string | null;
      readonly head: string;
      /** Branch of the group's own commit, and the branch it is to be merged into. */
      readonly headRef: string;
      readonly base: string;
      readonly baseRef: string;
      readonly sender: EventActor | null;
    } & InRepository)
  | ({
      readonly kind: 'check_requested';
      /** `rerequested`, or the identifier of the button that was pressed. */
      readonly action: string;
      readonly head: string;
      /** Name of the check run; null for a whole suite. */
      readonly name: string | null;
      readonly appId: string;
      readonly sender: EventActor | null;
    } & InRepository)
  | ({
      readonly kind: 'workflow_run' | 'workflow_job';
      readonly action: string;
      readonly workflowRunId: string;
      readonly attempt: number;
      /** The job's id for `workflow_job`, else null. */
      readonly jobId: string | null;
      readonly status: string;
      readonly conclusion: string | null;
      /** The run's title, where a dispatch left its nonce; empty for `workflow_job`. */
      readonly title: string;
      /** Path of the workflow file; null where the delivery does not say. */
      readonly path: string | null;
      /** The commit it runs on; null where the delivery does not say. */
      readonly head: string | null;
    } & InRepository)
  | { readonly kind: 'ping' }
  | {
      readonly kind: 'ignored';
      readonly reason: 'unknown_event' | 'unused_action' | 'no_installation' | 'not_a_pull';
    };
