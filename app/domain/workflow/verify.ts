/**
 * The workflow file of verify commands (VER-1): started by `pull_request`, with a token that may read and nothing
 * else, no secret, and one job a command, whose name is how the server finds GitHub's conclusion.
 */
import { type ActionCommand, VERIFY_WORKFLOW, verifyJobName } from '../policy/verify.ts';

/** The checkout action by commit (v7.0.1), since a tag can move. */
export const CHECKOUT = 'actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1';
const CHECKOUT_VERSION = 'v7.0.1';

/** What a job takes beside its command: the checkout, the fingerprints, GitHub's own steps. */
const BESIDE_MINUTES = 10;
/** The longest job of a GitHub-hosted machine. */
const LONGEST_MINUTES = 360;

/** Ids of jobs: what GitHub takes, and no two alike where names differ in their signs only. */
function jobIds(names: readonly string[]): Map<string, string> {
  const ids = new Map<string, string>();
  for (const name of names) {
    const plain = `verify_${name.replace(/[^A-Za-z0-9_-]/g, '_')}`;
    let id = plain;
    // GitHub takes ids that differ in case only for the same
    for (let n = 2; [...ids.values()].some((other) => other.toLowerCase() === id.toLowerCase()); n++)
      id = `${plain}_${n}`;
    ids.set(name, id);
  }
  return ids;
}

/** The text of a workflow file for these commands of `from: action`, in the order of the policy. */
export function verifyWorkflowFile(of: {
  ref: string;
  /** The file's name: two files must neither be named alike nor cancel each other. */
  file: string;
  commands: readonly (readonly [name: string, command: ActionCommand])[];
}): string {
  const stem = of.file.replace(/\.ya?ml$/, '');
  const ids = jobIds(of.commands.map(([name]) => name));
  const jobs = of.commands.map(([name, command]) => {
    const minutes = Math.min(LONGEST_MINUTES, Math.ceil(command.timeout / 60_000) + BESIDE_MINUTES);
    return `  ${ids.get(name)}:
    # the server finds this job by its name
    name: ${JSON.stringify(verifyJobName(name))}
    runs-on: ubuntu-latest
    timeout-minutes: ${minutes}
    permissions:
      contents: read
    steps:
      - name: Check out
        uses: ${CHECKOUT} # ${CHECKOUT_VERSION}
        with:
          persist-credentials: false
      # Tools that the command needs are set up here; no secret belongs in this job.
      - name: Countersign
        id: countersign
        uses: ${JSON.stringify(of.ref)}
        with:
          mode: verify
          command: ${JSON.stringify(name)}
`;
  });
  return `# Countersign's verify commands: code of a pull request, run beside a read-only token and no secret.
# What is run comes from the policy of the base branch; this file says where. Keep it on pull_request:
# under any other event the commands are refused.
name: ${JSON.stringify(of.file === VERIFY_WORKFLOW ? 'countersign verify' : `countersign verify (${stem})`)}
on:
  pull_request:
concurrency:
  group: ${JSON.stringify(`${stem}-\${{ github.event.pull_request.number }}`)}
  cancel-in-progress: true
permissions: {}
jobs:
${jobs.join('')}`;
}
