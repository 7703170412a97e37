/**
 * `/rerun [all|failed|block B|PATH|COMMAND]` (TKT-1): asks for the next round. Results of earlier rounds stay
 * (TKT-4): asking again is no way to lose a finding. Jobs of verify commands that have ended run again with it, by
 * `/rerun COMMAND` one alone (VER-3).
 *
 * Reads: blocks, files, receipts. Writes: row `human.acted`, receipt. Queues: cut-tickets with what to open,
 * settle-receipts, sync-run, decide-gate. May fail with: `unknown_block`, `bad_path`.
 */
import { listBlocks } from '../../../db/store/block.ts';
import { askRerun } from '../../../db/store/receipt.ts';
import { PSEUDO_BLOCKS } from '../../domain/block.ts';
import type { Command } from '../../domain/command/arguments.ts';
import { doneReply } from '../../domain/command/reply.ts';
import type { Rerun } from '../../domain/cut.ts';
import { pathKey, type WirePath } from '../../domain/path.ts';
import { isOver, type ReceiptFact } from '../../domain/receipt.ts';
import { isAllowed } from '../../domain/run-state/coverage.ts';
import { Markdown, md } from '../../domain/summary/markdown.ts';
import { Refusal } from '../../errors.ts';
import { changedFiles, Declined, type Given, readAgain } from './given.ts';

/** Records who asked and opens the round. */
export async function rerun(given: Given, command: Extract<Command, { name: 'rerun' }>): Promise<Markdown> {
  const { unit, judged, asker, actor, cause, prefix } = given;
  const { scope, paths, what, verify } = await scopeOf(given, command);
  unit.append('human.acted', {
    block: scope?.scope === 'block' ? scope.value : null,
    actor,
    cause,
    data: {
      act: 'rerun',
      head: unit.run.toldHead,
      permission: asker.permission,
      clause: scope?.scope ?? 'verify',
      paths,
      self: asker.author,
      text: null,
    },
  });
  readAgain(given);
  // a key of its own: a plain cut of the same run must not take its place before it began
  if (scope !== null)
    unit.enqueue(
      'cut-tickets',
      { run: unit.run.id, rerun: scope },
      { key: `cut-tickets:${unit.run.id}:${given.name}` },
    );
  await runAgain(given, verify);
  const waits = isAllowed(judged.state) ? md`` : md` It begins once this pull request may be reviewed.`;
  return doneReply(prefix, 'rerun', md`the next round of ${what} was asked for.${waits}`);
}

/** Asks for another attempt of the jobs of receipts that are over (VER-3); GitHub is asked outside of this transaction. */
async function runAgain({ unit, judged }: Given, verify: (receipt: ReceiptFact) => boolean): Promise<void> {
  const { run, tx } = unit;
  const over = [...judged.state.receipts.values()].filter(
    (one) => one.head === run.head && isOver(one) && verify(one),
  );
  if (over.length === 0 || !isAllowed(judged.state)) return;
  await askRerun(
    tx,
    run.id,
    over.map(({ block, id }) => ({ blockId: block, id })),
  );
  unit.enqueue('settle-receipts', { run: run.id }, { key: `settle-receipts:${run.id}` });
}

/** What is asked for: files to cut anew (null: none), and which receipts. */
interface Scope {
  readonly scope: Rerun | null;
  readonly paths: WirePath[];
  readonly what: Markdown;
  readonly verify: (receipt: ReceiptFact) => boolean;
}

async function scopeOf(
  { unit, judged }: Given,
  command: Extract<Command, { name: 'rerun' }>,
): Promise<Scope> {
  const value = command.value ?? '';
  switch (command.scope) {
    case 'all':
      return { scope: { scope: 'all' }, paths: [], what: md`all files`, verify: () => true };
    case 'failed':
      return {
        scope: { scope: 'failed' },
        paths: [],
        what: md`what failed`,
        verify: ({ state }) => state !== 'passed',
      };
    case 'block': {
      const blocks = (await listBlocks(unit.tx, unit.run.id)).filter((block) => block.status !== 'dropped');
      const known = [...blocks.map((block) => block.id), ...PSEUDO_BLOCKS];
      if (!known.includes(value)) {
        throw new Declined(
          'unknown_block',
          md`there is no block ${Markdown.code(value)}`,
          known.slice(0, 20).join(', '),
        );
      }
      return {
        scope: { scope: 'block', value },
        paths: [],
        what: md`block ${Markdown.code(value)}`,
        verify: ({ block }) => block === value,
      };
    }
    case 'path': {
      const found = (await changedFiles(unit.tx, unit.run.id)).get(pathKey(value));
      if (found === undefined && judged.policy?.verify.has(value) === true)
        return {
          scope: null,
          paths: [],
          what: md`verify command ${Markdown.code(value)}`,
          verify: ({ commands }) => commands.includes(value),
        };
      if (found === undefined) {
        throw new Refusal(
          'bad_path',
          'this pull request does not change that path',
          'a changed path, a verify command, all, failed, block B',
        );
      }
      return {
        scope: { scope: 'path', value: pathKey(found.path) },
        paths: [found.path],
        what: md`${Markdown.code(value)}`,
        verify: () => false,
      };
    }
  }
}
