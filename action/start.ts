/** One run of the Action: read the inputs, greet the server, log in, drain, sum up (ACT-5, ACT-6). */
import { setMaxListeners } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Fault } from '../app/errors.ts';
import { createClient } from './client.ts';
import { type DrainEnd, drain } from './drain.ts';
import { asksToVerify, readInputs } from './inputs.ts';
import { createLog } from './log.ts';
import { openObjects } from './objects/store.ts';
import { keepResults } from './results.ts';
import { createTally, writeSummary } from './summary.ts';

/** Longest time from a stop signal to the end of the process (ACT-5): the runner kills soon after. */
const EXIT_WITHIN_MS = 7000;

/** Runs the Action to its end and gives the exit code: 0 drained, 1 failed, 130 or 143 told to stop. */
export async function start(host: NodeJS.Process): Promise<number> {
  const log = createLog((text) => host.stdout.write(text));
  const stopping = new AbortController();
  // every ticket under way listens, sixteen at most
  setMaxListeners(0, stopping.signal);
  let stopCode: number | null = null;
  const stop = (signal: NodeJS.Signals): void => {
    if (stopCode !== null) return;
    stopCode = signal === 'SIGINT' ? 130 : 143;
    log.line(
      `${signal}: ending ${asksToVerify(host.env) ? 'what runs' : 'sessions and giving tickets back'}`,
    );
    stopping.abort();
    setTimeout(() => host.exit(stopCode ?? 143), EXIT_WITHIN_MS - 500).unref();
  };
  host.on('SIGINT', stop);
  host.on('SIGTERM', stop);

  let scratch: string | null = null;
  try {
    // heavy with the policy's reader, and needed by no other mode
    if (asksToVerify(host.env)) {
      const { verify } = await import('./verify/verify.ts');
      const code = await verify(host.env, log, stopping.signal);
      return stopCode ?? code;
    }
    const inputs = readInputs(host.env);
    scratch = await mkdtemp(join(inputs.tempDir, 'countersign-'));
    const tally = createTally();
    const client = createClient({ inputs, log, signal: stopping.signal });
    const objects = openObjects({
      dir: join(scratch, 'objects'),
      token: inputs.token,
      serverUrl: inputs.githubServer,
      path: inputs.path,
    });
    let end: DrainEnd;
    try {
      await client.greet();
      end = await drain({
        client,
        inputs,
        objects,
        scratch,
        log,
        tally,
        results: keepResults(join(inputs.tempDir, 'countersign-results')),
        signal: stopping.signal,
      });
    } finally {
      await objects.close();
    }
    await writeSummary(tally, inputs, end);
    if (stopCode !== null) return stopCode;
    if (end.kind === 'failed') log.error(end.message);
    else log.line(`Drained: ${tally.tickets.length} ticket(s), nothing left to do`);
    return end.kind === 'failed' ? 1 : 0;
  } catch (error) {
    if (stopCode !== null) return stopCode;
    log.error(error instanceof Error ? describe(error) : 'The runner failed');
    return 1;
  } finally {
    host.off('SIGINT', stop);
    host.off('SIGTERM', stop);
    if (scratch !== null) await rm(scratch, { recursive: true, force: true }).catch(() => undefined);
  }
}

function describe(error: Error): string {
  const cause = error.cause instanceof Error ? ` (${error.cause.message})` : '';
  return error instanceof Fault ? `${error.code}: ${error.message}${cause}` : `${error.message}${cause}`;
}
