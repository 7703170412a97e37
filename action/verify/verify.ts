/**
 * Mode `verify` (ACT-3, VER-1, VER-2): runs commands of the base policy in the checkout of a pull request, in a job
 * that holds no credential. It talks to no server of ours: its receipts are annotations of the job.
 */
import { appendFile, mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { redactor } from '../../app/domain/redact.ts';
import { Refusal } from '../../app/errors.ts';
import { RECEIPT_TITLE, receiptMessage, receiptTrouble } from '../../app/protocol/receipt.ts';
import type { Log } from '../log.ts';
import { commandsOf, readBasePolicy } from './base-policy.ts';
import { readPullEvent } from './event.ts';
import { type Executed, execute } from './execute.ts';
import { readVerifyInputs } from './inputs.ts';
import { jobPlace } from './place.ts';
import { exitCodeOf, sayEnd, verifyOutputs, verifySummary } from './report.ts';

/** Runs the mode to its end and gives the step's exit code; throws Refusal and Fault before any command was started. */
export async function verify(env: NodeJS.ProcessEnv, log: Log, signal: AbortSignal): Promise<number> {
  const inputs = readVerifyInputs(env);
  if (process.platform === 'win32')
    throw new Refusal('not_supported', 'verify does not run on Windows', 'a Linux or macOS machine');
  const event = readPullEvent(inputs, await readFile(inputs.eventFile, 'utf8').catch(() => ''));
  await mkdir(inputs.tempDir, { recursive: true });
  const scratch = await mkdtemp(join(inputs.tempDir, 'countersign-base-'));
  let commands: ReturnType<typeof commandsOf>;
  try {
    commands = commandsOf(
      await readBasePolicy(inputs, event.base, join(scratch, 'git'), signal),
      inputs.command,
    );
  } finally {
    await rm(scratch, { recursive: true, force: true }).catch(() => undefined);
  }
  if (inputs.secretNames.length > 0)
    log.warning(
      `This job holds ${inputs.secretNames.join(', ')}: no command gets them, but its code runs beside them and can read them. Take them from the job.`,
    );
  const evidence = await mkdtemp(join(inputs.tempDir, 'countersign-evidence-'));
  log.line(
    `Verifying ${event.head.slice(0, 12)} of pull request ${event.number}${event.fork ? ', from a fork' : ''} with ${commands.length} command(s) of the policy at ${event.base.slice(0, 12)}`,
  );

  const place = jobPlace({ machine: inputs.machine, job: inputs.environment, tempDir: inputs.tempDir });
  const redacts = redactor(inputs.secrets);
  const executed: Executed[] = [];
  for (const [name, command] of commands) {
    log.open(`verify ${name}`);
    let one: Executed;
    try {
      one = await execute({
        name,
        command,
        base: event.base,
        head: event.head,
        workspace: inputs.workspace,
        evidence: join(evidence, name),
        tempDir: inputs.tempDir,
        path: inputs.path,
        place,
        redactor: redacts,
        show: log.raw,
        signal,
      });
    } finally {
      log.close();
    }
    executed.push(one);
    for (const note of one.notes) log.line(redacts.redact(note));
    const said = `verify ${name} ${sayEnd(one.receipt)}`;
    if (receiptTrouble(one.receipt) === null) log.line(said);
    else log.error(said);
    log.notice(RECEIPT_TITLE, receiptMessage(one.receipt));
  }

  if (inputs.summaryFile !== null) await appendFile(inputs.summaryFile, verifySummary(executed));
  if (inputs.outputFile !== null) {
    const { githubServer, repository, workflowRun } = inputs;
    const url = workflowRun === null ? '' : `${githubServer}/${repository}/actions/runs/${workflowRun}`;
    const outputs = Object.entries({ ...verifyOutputs(executed, evidence), run_url: url });
    await appendFile(
      inputs.outputFile,
      outputs.map(([name, value]) => `${name}=${value.replace(/[\r\n]/g, '')}\n`).join(''),
    );
  }
  return exitCodeOf(executed);
}
