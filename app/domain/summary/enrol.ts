/** What a base branch without a policy needs (RUN-9): three steps, two of them links that open the new file, filled in. */
import { POLICY_PATH, STARTER_POLICY } from '../policy.ts';
import { WORKFLOW_PATH, workflowFile } from '../workflow.ts';
import { Markdown, md } from './markdown.ts';

/** Where the files go. */
export interface EnrolPlace {
  /** The repository's page on GitHub, without a trailing slash. */
  readonly repository: string;
  readonly baseRef: string;
  /** Workflows are dispatched from here. */
  readonly defaultBranch: string;
  /** The server's public URL, which the workflow file names. */
  readonly server: string;
}

/** The Action as a workflow file names it where nobody pinned a commit. */
const ACTION = 'countersign-dev/countersign@v0';

/** The steps, as the summary shows them. */
export function enrolSteps(place: EnrolPlace): Markdown {
  const { baseRef, defaultBranch, server } = place;
  const policy = newFile(place, baseRef, POLICY_PATH, STARTER_POLICY);
  const workflow = newFile(
    place,
    defaultBranch,
    WORKFLOW_PATH,
    workflowFile({ serverUrl: server, ref: ACTION }),
  );
  return Markdown.join(
    [
      md`#### Three steps`,
      Markdown.join(
        [
          md`1. ${Markdown.link(md`Add a policy`, policy)}: ${Markdown.code(POLICY_PATH)} on ${Markdown.code(baseRef)}. It says who reviews what.`,
          md`2. ${Markdown.link(md`Add the workflow`, workflow)}: ${Markdown.code(WORKFLOW_PATH)} on ${Markdown.code(defaultBranch)}. The reviews run in it; keys of model providers are secrets of this repository.`,
          md`3. Push to this pull request, or comment ${Markdown.code('/rerun')}.`,
        ],
        '\n',
      ),
    ],
    '\n\n',
  );
}

/** GitHub's page for a new file, with name and content filled in. */
function newFile({ repository }: EnrolPlace, branch: string, name: string, value: string): string {
  const at = branch.split('/').map(encodeURIComponent).join('/');
  return `${repository}/new/${at}?${new URLSearchParams({ filename: name, value })}`;
}
