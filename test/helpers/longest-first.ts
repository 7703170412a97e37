import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Files that take longest, in that order: begun last, one of them would keep one processor waiting at the end. */
const LONGEST = [
  'test/faults/kill.test.ts',
  'test/faults/doubled.test.ts',
  'test/action/verify.test.ts',
  'test/flow/receive-delivery.test.ts',
  'test/flow/run-command.test.ts',
  'test/action/command.test.ts',
  'test/action/model.test.ts',
  'test/action/drain.test.ts',
  'test/acceptance/outage.test.ts',
  'test/acceptance/command-road.long.test.ts',
  'test/flow/sync-run.test.ts',
  'test/flow/publish-checks.test.ts',
  'test/flow/reconcile.test.ts',
  'test/faults/ledger.test.ts',
  'test/acceptance/force-push.test.ts',
  'test/acceptance/stranger.test.ts',
  'test/domain/neutralise.test.ts',
  'test/github/git.test.ts',
  'test/acceptance/no-policy.test.ts',
  'test/acceptance/commands.long.test.ts',
  'test/acceptance/budget.long.test.ts',
  'test/acceptance/merge-queue.long.test.ts',
  'test/action/resident/resident.long.test.ts',
  'test/flow/sync-group.long.test.ts',
  'test/flow/settle-receipts.long.test.ts',
  'test/acceptance/life.long.test.ts',
  'test/acceptance/rounds.long.test.ts',
  'test/faults/statement.long.test.ts',
  'test/action/verify-container.long.test.ts',
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
