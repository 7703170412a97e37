/**
 * `npm run soak`: the fault tests with many rounds. `SOAK_ROUNDS` (200) says how many, `FAULT_SEED`
 * where the kills fall; arguments are files to run instead of all.
 */
import { startVitest } from 'vitest/node';

process.env['SOAK_ROUNDS'] ??= '200';
const asked = process.argv.slice(2);
const vitest = await startVitest('test', asked.length > 0 ? asked : ['test/faults'], {
  watch: false,
  reporters: ['verbose'],
  // rounds side by side would slow each other down
  fileParallelism: false,
});
await vitest.close();
