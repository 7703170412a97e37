/**
 * One verify command from its ports to its receipt (VER-2). Whatever happens, ports are given back, the process
 * group is gone, and a receipt says what is known; what is not known is trouble, never success.
 */
import { mkdir, mkdtemp, open, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  type CommandFacts,
  commandDigest,
  environmentDigest,
  inputHash,
} from '../../app/domain/receipt/input-hash.ts';
import type { Redactor } from '../../app/domain/redact.ts';
import { NOT_STARTED_EXIT, RECEIPT_VERSION, type ReceiptDetail } from '../../app/protocol/receipt.ts';
import { findArtifacts } from './artifacts.ts';
import type { HeldExit } from './held.ts';
import { captureOutput, streamOf } from './output.ts';
import type { Place } from './place.ts';
import { watchTree } from './tree.ts';

/** Most changed paths of a receipt. */
const MOST_PATHS = 500;

/** A command to run, and where. */
export type Execution = Readonly<{
  name: string;
  command: CommandFacts & Readonly<{ timeout: number }>;
  base: string | null;
  head: string | null;
  /** The work tree it runs in. */
  workspace: string;
  /** The folder for its output and evidence; it is made here, and stays. */
  evidence: string;
  /** Where passing folders lie. */
  tempDir: string;
  path: string;
  place: Place;
  redactor: Redactor;
  show: (line: string) => void;
  /** Says elsewhere that it starts; it is not let go before this resolves, and never where it throws. */
  onStart?: () => Promise<void>;
  signal: AbortSignal;
}>;

/** What a command came to: its receipt, and what kept a part of it from being known. */
export type Executed = Readonly<{ receipt: ReceiptDetail; notes: readonly string[] }>;

/** Runs it to its end; throws only where its folders cannot be made. */
export async function execute(of: Execution): Promise<Executed> {
  const notes: string[] = [];
  const note = (what: string, error: unknown): null => {
    notes.push(`${what}: ${error instanceof Error ? error.message : 'failed'}`);
    return null;
  };
  await mkdir(of.evidence, { recursive: true, mode: 0o700 });
  const scratch = await mkdtemp(join(of.tempDir, 'countersign-verify-'));
  const temp = join(scratch, 'tmp');
  await mkdir(temp, { mode: 0o700 });
  const output = captureOutput({ redact: of.redactor.redact, show: of.show });
  try {
    const tree = await watchTree({ ...of, dir: join(scratch, 'tree') }).catch((e) => note('tree', e));
    const before = (await tree?.print().catch((e) => note('tree before', e))) ?? null;
    const ports = await of.place.reserve(of.command.ports).catch((e) => note('ports', e));
    let exit: HeldExit = unstarted(of.signal.aborted);
    const { env, lasting } = of.place.environment({
      command: of.name,
      env: of.command.env,
      ports: ports?.ports ?? [],
      evidence: of.evidence,
      temp,
    });
    try {
      if (ports !== null)
        exit = await of.place.run({
          argv: of.command.run,
          workspace: of.workspace,
          evidence: of.evidence,
          env,
          timeoutMs: of.command.timeout,
          signal: of.signal,
          record: async (process) => {
            await recordStart(of, process);
            await of.onStart?.();
            await ports.handOver();
          },
          onOutput: output.take,
        });
    } catch (error) {
      note('start', error);
    } finally {
      await ports?.release().catch((e) => note('ports', e));
    }
    const kept = output.end();
    // a runner that is told to stop has seconds: what it does not look at is not known
    const compared =
      tree === null || before === null || of.signal.aborted
        ? null
        : await tree.compare(before, of.command.artifacts).catch((e) => note('tree after', e));
    const environment = environmentDigest(lasting, of.place.machine);
    const { redact } = of.redactor;
    const mutated = (compared?.mutated ?? []).map((path) =>
      typeof path === 'string' ? cut(redact(path), 4096) : path,
    );
    const artifacts = await findArtifacts(of.workspace, of.command.artifacts);
    const receipt: ReceiptDetail = {
      v: RECEIPT_VERSION,
      command: of.name,
      run: { items: of.command.run.map((arg) => cut(redact(arg), 1000)), more: 0 },
      command_sha256: commandDigest(of.command),
      environment_sha256: environment,
      input_sha256: inputHash(of.command, environment),
      base: of.base,
      head: of.head,
      tree: { before, after: compared?.after ?? null },
      mutated: { items: mutated.slice(0, MOST_PATHS), more: Math.max(0, mutated.length - MOST_PATHS) },
      started: exit.started,
      exit: exit.code,
      signal: exit.signal,
      timed_out: exit.timedOut,
      cancelled: exit.cancelled,
      ms: exit.ms,
      stdout: streamOf(kept.stdout),
      stderr: streamOf(kept.stderr),
      artifacts,
      ports: [...(ports?.ports ?? [])],
    };
    await writeFile(join(of.evidence, 'stdout.tail'), kept.stdout.tail);
    await writeFile(join(of.evidence, 'stderr.tail'), kept.stderr.tail);
    await writeFile(join(of.evidence, 'receipt.json'), `${JSON.stringify(receipt, null, 2)}\n`);
    return { receipt, notes };
  } finally {
    await rm(scratch, { recursive: true, force: true }).catch(() => undefined);
  }
}

/** A marker may be longer than what it replaced. */
function cut(text: string, most: number): string {
  return text.slice(0, most).toWellFormed();
}

function unstarted(cancelled: boolean): HeldExit {
  return { started: false, code: NOT_STARTED_EXIT, signal: null, timedOut: false, cancelled, ms: 0 };
}

/** Writes that it starts, so that it lasts; a start that was recorded before is another one's. */
async function recordStart(of: Execution, process: string): Promise<void> {
  const file = await open(join(of.evidence, 'start.json'), 'wx', 0o600);
  try {
    const at = new Date().toISOString();
    await file.writeFile(
      `${JSON.stringify({ command: of.name, run: of.command.run.map(of.redactor.redact), base: of.base, head: of.head, process, at })}\n`,
    );
    await file.sync();
  } finally {
    await file.close();
  }
}
