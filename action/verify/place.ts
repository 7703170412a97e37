/** Where a verify command runs: what its environment is made of, what its ports are, and how it is held, let go and ended. */
import { join } from 'node:path';
import type { MachineFacts } from '../../app/domain/receipt/input-hash.ts';
import { commandEnvironment, OUTPUT_VARIABLE } from './environment.ts';
import { type HeldExit, runHeld } from './held.ts';
import { type Ports, reservePorts } from './ports.ts';

/** A command about to run. */
export type Held = Readonly<{
  argv: readonly string[];
  workspace: string;
  /** The folder for its output and evidence, as this process sees it. */
  evidence: string;
  env: Readonly<Record<string, string>>;
  timeoutMs: number;
  signal: AbortSignal;
  /** Must resolve before it is let go; gets what names the process on this machine. */
  record: (process: string) => Promise<void>;
  onOutput: (stream: 'stdout' | 'stderr', chunk: Buffer) => void;
}>;

/** The job's own machine, or a container. */
export type Place = Readonly<{
  machine: MachineFacts;
  reserve: (names: readonly string[]) => Promise<Ports>;
  /** The environment, and the part of it that is the same in every run. */
  environment: (of: {
    command: string;
    env: Readonly<Record<string, string>>;
    ports: Ports['ports'];
    evidence: string;
    temp: string;
  }) => { env: Record<string, string>; lasting: Record<string, string> };
  run: (of: Held) => Promise<HeldExit>;
}>;

/** This machine, as the job's user. */
export function jobPlace(of: {
  machine: MachineFacts;
  /** The variables that a command's are chosen from. */
  job: Readonly<Record<string, string>>;
  tempDir: string;
}): Place {
  return {
    machine: of.machine,
    reserve: (names) => reservePorts(names, join(of.tempDir, 'countersign-ports')),
    environment: (command) => commandEnvironment({ ...command, job: of.job, output: command.evidence }),
    run: ({ workspace, evidence, record, ...held }) =>
      runHeld({
        ...held,
        cwd: workspace,
        mark: `${OUTPUT_VARIABLE}=${evidence}`,
        record: (pid) => record(`pid ${pid}`),
      }),
  };
}
