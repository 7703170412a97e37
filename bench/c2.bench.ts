/** C2: what the Action costs a ticket beside its reviewer, from the lease to the submit. */
import { spawn } from 'node:child_process';
import type { ReviewerSpec } from '../app/protocol/runner.ts';
import { makeRepository, startAction } from '../test/action/harness.ts';
import { makeTicket, startProtocolServer } from '../test/action/server.ts';
import { type Bench, median, versionsOf } from './bench.ts';

const REPS = 7;
const FILES = 150;
const MUST_MS = 25;
const SAID = JSON.stringify({ version: 1, count: 0, findings: [] });

/** A reviewer that does nothing: the smallest program that says so. */
const nothing: ReviewerSpec = {
  name: 'nothing',
  uses: 'command',
  command: {
    run: ['printf', SAID, '{path}'],
    output: 'countersign',
    paths: ['**'],
    ok_exit: [0],
    deletions: false,
    config: [],
    severity: { error: 'high', warning: 'medium', note: 'low' },
  },
};

/** Milliseconds of the same program alone. */
function bare(): Promise<number> {
  return new Promise((resolve, reject) => {
    const from = performance.now();
    const child = spawn('printf', [SAID, 'src/a.ts'], { stdio: ['ignore', 'pipe', 'ignore'] });
    child.stdout.resume();
    child.on('error', reject);
    child.on('close', () => resolve(performance.now() - from));
  });
}

/** One Action over all the files: milliseconds a ticket less its reviewer's, and its reviewer's. */
async function drained(repository: ReturnType<typeof makeRepository>): Promise<[number, number]> {
  const server = await startProtocolServer();
  try {
    server.heartbeatMs = 5000;
    server.leaseMs = 60_000;
    const submitted: number[] = [];
    server.knob = (call) => {
      if (call.verb === 'submit') submitted.push(performance.now());
      return null;
    };
    for (let i = 0; i < FILES; i++)
      server.add(makeTicket({ ...repository.at(`src/f${i}.ts`), reviewers: [nothing] }));
    const { done } = startAction({ server: server.url, parallel: '1' }, server.env);
    const { code, stdout } = await done;
    const results = [...server.results.values()];
    if (code !== 0 || results.length !== FILES || results.some((one) => one.verdict !== 'approve'))
      throw new Error(`exit ${code}, ${results.length} results of ${FILES}\n${stdout.slice(-2000)}`);
    // the next ticket travels in the answer to a submit: from one submit to the next is a ticket
    const own = results.map((one) => one.sessions[0]?.ms ?? 0);
    const cycles = submitted.slice(1).map((at, i) => at - (submitted[i] ?? at) - (own[i + 1] ?? 0));
    return [median(cycles), median(own)];
  } finally {
    await server.close();
  }
}

/**
 * One built Action with one ticket at a time, so that no wait is hidden behind another ticket, and a server
 * that answers at once: what the real one takes is in L2, L3 and S2. The peer is the reviewer's program alone.
 */
export const bench: Bench = {
  id: 'C2',
  what: 'overhead per ticket of the Action, lease → submit, less its reviewer that does nothing',
  must: MUST_MS,
  aim: 8,
  unit: 'ms',
  async run() {
    const files = Object.fromEntries(
      Array.from({ length: FILES }, (_, i) => [`src/f${i}.ts`, `export const v${i} = ${i};\n`]),
    );
    const repository = makeRepository({}, files);
    try {
      const overhead: number[] = [];
      const reviewer: number[] = [];
      const peer: number[] = [];
      for (let rep = 0; rep <= REPS; rep++) {
        const [over, own] = await drained(repository);
        const alone: number[] = [];
        for (let i = 0; i < 30; i++) alone.push(await bare());
        if (rep === 0) continue; // warm-up
        overhead.push(over);
        reviewer.push(own);
        peer.push(median(alone));
      }
      const value = median(overhead);
      return {
        value,
        peer: median(peer),
        ok: value <= MUST_MS,
        reps: REPS,
        versions: versionsOf([]),
        figures: { reviewer: `${median(reviewer).toFixed(1)} ms as the runner measures it` },
      };
    } finally {
      repository.remove();
    }
  },
};
