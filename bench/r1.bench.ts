/** R1: REST writes of one pull request from open to green, against the fewest that could do. */
import { type Bench, median, versionsOf } from './bench.ts';
import { withRoad } from './road/stage.ts';

const REPS = 5;
const FINDINGS = 120;
const MUST = 1.5;
/** Each file is in a commit that names a block of its own. */
const BLOCKS = 3;

/** Checks and comments count; tokens, and the dispatch that starts a runner, are needed by any way. */
const COUNTED = /^(checks|issues)\//;

/** Writes for a pull request with n findings that do not block, in b blocks, vs 2 + b + ⌈n/50⌉. */
export const bench: Bench = {
  id: 'R1',
  what: `REST writes for a pull request from open to green with ${FINDINGS} findings in ${BLOCKS} named blocks vs the minimum (2 + b + ⌈n/50⌉)`,
  must: MUST,
  aim: 1,
  unit: 'writes',
  run: () =>
    withRoad(async ({ gh, repository, check, settle, open, postgres }) => {
      const fewest = 2 + BLOCKS + Math.ceil(FINDINGS / 50);
      const counts: number[] = [];
      for (let rep = 0; rep < REPS; rep++) {
        const before = gh.requests.length;
        const text = `// NIT ${rep}\n`.repeat(FINDINGS / BLOCKS);
        const files = Array.from({ length: BLOCKS }, (_, index) => [`src/f${rep}-${index}.ts`, text]);
        const pull = await open(`topic-${rep}`, Object.fromEntries(files), 'named');
        const gate = await check(pull.head.sha, 'countersign', (one) => one.status === 'completed');
        await settle();
        const findings = await check(
          pull.head.sha,
          'countersign / findings',
          (one) => one.status === 'completed',
        );
        const passed = () =>
          gh
            .checkRuns(repository, pull.head.sha)
            .filter((one) => one.name.startsWith('countersign / block ') && one.conclusion === 'success');
        // the turn of blocks comes after those of the gate and the findings
        for (let tries = 0; tries < 60 && passed().length < BLOCKS; tries++) {
          await new Promise((done) => setTimeout(done, 500));
          await settle();
        }
        const named = passed();
        if (named.length !== BLOCKS) throw new Error(`${named.length} of ${BLOCKS} blocks have a check run`);
        if (gate.conclusion !== 'success' || findings.annotations.length !== FINDINGS)
          throw new Error(
            `not what was asked: ${gate.conclusion}, ${findings.annotations.length} annotations`,
          );
        counts.push(
          gh.requests.slice(before).filter((one) => one.content && COUNTED.test(one.operation)).length,
        );
      }
      const value = median(counts);
      const ratio = value / fewest;
      return {
        value,
        peer: fewest,
        ratio,
        ok: ratio <= MUST,
        reps: REPS,
        versions: versionsOf([], { postgres }),
      };
    }),
};
