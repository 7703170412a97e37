import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Files that take longest, in that order: begun last, one of them would keep one processor waiting at the end. */
const LONGEST = [
  'test/faults/kill.test.ts',
  'test/faults/doubled.test.ts',
  'test/flow/receive-delivery.test.ts',
  'test/action/resident/resident.test.ts',
  'test/acceptance/merge-queue.test.ts',
  'test/action/verify.test.ts',
  'test/acceptance/budget.test.ts',
  'test/flow/run-command.test.ts',
  'test/flow/sync-run.test.ts',
  'test/acceptance/command-road.test.ts',
  'test/acceptance/life.test.ts',
  'test/acceptance/rounds.test.ts',
  'test/action/model.test.ts',
  'test/action/drain.test.ts',
  'test/flow/people.test.ts',
  'test/faults/statement.test.ts',
  'test/flow/settle-receipts.test.ts',
  'test/action/command.test.ts',
  'test/flow/sync-group.test.ts',
  'test/flow/run-command/claim.test.ts',
  'test/acceptance/outage.test.ts',
  'test/acceptance/verify-commands.test.ts',
  'test/github/git.test.ts',
];

/** Starts the longest files first, and the rest as vitest would. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rest = await super.sort(files);
    const place = ({ moduleId }: TestSpecification) => {
      const at = LONGEST.findIndex((file) => moduleId.replaceAll('\\', '/').endsWith(`/${file}`));
      return at < 0 ? LONGEST.length : at;
    };
    return rest.toSorted((a, b) => place(a) - place(b));
  }
}
