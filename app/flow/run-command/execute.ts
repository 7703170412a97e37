/** One command inside its unit of work: is it in time, well formed, available, permitted; then what it does (CMD-3, CMD-4). */

import { helpReply, statusReply } from '../../domain/command/reply.ts';
import { rightFault } from '../../domain/command/rights.ts';
import { COMMANDS } from '../../domain/command/table.ts';
import type { ParsedCommand } from '../../domain/command.ts';
import type { Cause } from '../../domain/ledger/row-fields.ts';
import { isAllowed } from '../../domain/run-state/coverage.ts';
import type { Markdown } from '../../domain/summary/markdown.ts';
import { Refusal } from '../../errors.ts';
import type { Permission } from '../../github/port.ts';
import type { RunUnit } from '../append-rows.ts';
import type { Deps } from '../deps.ts';
import type { Judged } from '../judge-run.ts';
import { allow } from './allow.ts';
import { claim, releaseClaim } from './claim.ts';
import type { Given } from './given.ts';
import { rerun } from './rerun.ts';

/** A command with all that is known when it is carried out. */
export interface Order {
  readonly deps: Deps;
  readonly unit: RunUnit;
  readonly judged: Judged;
  readonly parsed: ParsedCommand;
  /** Null where the look-up failed or was not needed. */
  readonly permission: Permission | null;
  readonly user: { readonly id: string; readonly bot: boolean };
  readonly cause: Cause;
  readonly prefix: string;
  readonly commentMs: number;
  /** Whether the comment is older than an hour. */
  readonly late: boolean;
  readonly touched: string | null;
}

/** Does the command and gives its reply; throws `Refusal` before it changed anything. */
export async function execute(order: Order): Promise<Markdown> {
  const { unit, judged, prefix } = order;
  const { name, command } = order.parsed;
  if (order.late && !COMMANDS[name].late) {
    throw new Refusal('too_late', 'too late: the comment is over an hour old; repeat it if it still holds');
  }
  if ('message' in command) throw new Refusal('bad_command', command.message, command.accepted);
  if (!COMMANDS[name].available) throw new Refusal('not_supported', 'it is not available yet');
  const { status } = unit.run;
  const closed = status === 'closed' || status === 'merged' ? status : null;
  if (command.name === 'status') return statusReply(prefix, judged.decision, closed);
  if (command.name === 'help') return helpReply(prefix, command.topic);
  if (closed !== null) throw new Refusal('conflict', `the pull request is ${closed}`);
  if (order.permission === null) {
    throw new Refusal(
      'lookup_failed',
      'GitHub did not tell what you may do in this repository; repeat the command in a minute',
    );
  }
  const asker = {
    permission: order.permission,
    author: unit.run.authorId !== null && unit.run.authorId === order.user.id,
    allowed: isAllowed(judged.state),
  };
  const fault = rightFault(command, asker);
  if (fault !== null) throw new Refusal('denied', fault);
  if (judged.facts.ledger !== null) {
    throw new Refusal('conflict', 'the ledger of this run does not verify, so nothing can be built on it');
  }
  const given: Given = {
    deps: order.deps,
    unit,
    judged,
    asker,
    actor: { kind: order.user.bot ? 'bot' : 'person', id: order.user.id, via: 'comment' },
    cause: order.cause,
    prefix,
    commentMs: order.commentMs,
    name: `${order.cause.id}:${order.parsed.index}`,
  };
  switch (command.name) {
    case 'allow':
      return allow(given, command);
    case 'claim':
      return claim(given, command, order.touched);
    case 'release':
      return releaseClaim(given, command);
    case 'rerun':
      return rerun(given, command);
    default:
      // the table says which are available; what it says and this does not do is a refusal, never silence
      throw new Refusal('not_supported', 'it is not available yet');
  }
}
