/**
 * The workflow file a repository gets (ACT-1, ACT-3): printed by `countersign workflow`, shown in the
 * docs, written by the demo. It runs on the default branch, by dispatch only, and never any code of a
 * pull request.
 */

/** What a workflow file is made for. */
export type WorkflowOf = Readonly<{
  /** The server's public URL. */
  serverUrl: string;
  /** The Action as `uses:` names it; pin a commit where you can: `countersign-dev/countersign@<sha>`. */
  ref: string;
  /** Environment variables with provider keys, each from the secret of the same name. */
  keys?: readonly string[];
  /** Shell lines that install what the policy's reviewers need; fixed text, nothing of a ticket. */
  setup?: readonly string[];
  /** The image the job runs in, as root: agents are started as another user, which only root can (REV-11). */
  container?: string;
}>;

/** Where the file lives in a repository. */
export const WORKFLOW_PATH = '.github/workflows/countersign.yml';

/** The providers' usual variables (REV-1). */
const USUAL_KEYS = ['ANTHROPIC_API_KEY', 'OPENAI_API_KEY', 'XAI_API_KEY'] as const;

/**
 * The text of `.github/workflows/countersign.yml`. The server's URL is written into the file: were it
 * taken from the dispatch, anybody who may dispatch could send the job's keys to a server of theirs.
 */
export function workflowFile(of: WorkflowOf): string {
  const keys = of.keys ?? USUAL_KEYS;
  for (const key of keys)
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(key)) throw new TypeError(`not a variable name: ${key}`);
  const setup = (of.setup ?? []).map((line) => `      - run: ${JSON.stringify(line)}\n`).join('');
  const container =
    of.container === undefined
      ? ''
      : `    # root, so that agents run as another user; pin it by digest where you can\n    container: ${JSON.stringify(of.container)}\n`;
  const env = keys.map((key) => `          ${key}: \${{ secrets.${key} }}\n`).join('');
  return `# Countersign's runner: reviews files of pull requests by their git objects, without a checkout.
# Started by the app; it holds a read-only token and proves itself by OIDC.
name: countersign
run-name: countersign \${{ inputs.run }}
on:
  workflow_dispatch:
    inputs:
      server:
        description: The server that asks; the runner only ever talks to the one below.
        required: false
        type: string
      run:
        description: The run this runner is started for.
        required: false
        type: string
      nonce:
        description: Ties this job to its dispatch.
        required: false
        type: string
# No concurrency group: GitHub would cancel waiting runners, and one runner drains for all.
permissions: {}
jobs:
  review:
    name: review
    runs-on: ubuntu-latest
${container}    timeout-minutes: 60
    permissions:
      contents: read
      id-token: write
    steps:
${setup}      - name: Countersign
        uses: ${JSON.stringify(of.ref)}
        with:
          server: ${JSON.stringify(of.serverUrl.replace(/\/+$/, ''))}
          run: \${{ inputs.run }}
          nonce: \${{ inputs.nonce }}
${env === '' ? '' : `        env:\n${env}`}`;
}
