/** One command inside its unit of work: is it in time, well formed, available, permitted; then what it does (CMD-3, CMD-4). */

import { listStuckChecks } from '../../../db/store/check.ts';
import { PREVIEW_NAME, STUCK_ATTEMPTS } from '../../domain/check.ts';
import { type CheckSight, checkWarnings } from '../../domain/command/check-sight.ts';
import { helpReply, statusReply } from '../../domain/command/reply.ts';
import { rightFault } from '../../domain/command/rights.ts';
import { COMMANDS } from '../../domain/command/table.ts';
import type { ParsedCommand } from '../../domain/command.ts';
import type { Cause } from '../../domain/ledger/row-fields.ts';
import { POLICY_PATH } from '../../domain/policy.ts';
import { isAllowed } from '../../domain/run-state/coverage.ts';
import { Markdown, md } from '../../domain/summary/markdown.ts';
import { Refusal } from '../../errors.ts';
import type { Permission } from '../../github/port.ts';
import type { RunUnit } from '../append-rows.ts';
import type { Deps } from '../deps.ts';
import type { Judged } from '../judge-run.ts';
import { shownDecision } from '../share-head.ts';
import { allow } from './allow.ts';
import { answerFinding } from './answer-finding.ts';
import { approve } from './approve.ts';
import { claim, releaseClaim } from './claim.ts';
import { dismiss } from './dismiss.ts';
import { explain } from './explain.ts';
import type { Given } from './given.ts';
import { override } from './override.ts';
import { reload } from './reload.ts';
import { rerun } from './rerun.ts';
import { seal } from './seal.ts';
import type { PathSight } from './see-path.ts';

/** A command with all that is known when it is carried out. */
export interface Order {
  readonly deps: Deps;
  readonly unit: RunUnit;
  readonly judged: Judged;
  readonly parsed: ParsedCommand;
  /** Null where the look-up failed or was not needed. */
  readonly permission: Permission | null;
  /** What GitHub tells of checks of our name; null where nobody asked. */
  readonly check: CheckSight | null;
  readonly user: { readonly id: string; readonly bot: boolean };
  /** How they asked: by a comment, or by a button of the check. */
  readonly via: 'comment' | 'button';
  readonly cause: Cause;
  readonly prefix: string;
  readonly commentMs: number;
  readonly alone: boolean;
  /** Whether the comment is older than an hour. */
  readonly late: boolean;
  /** What git told of the paths of claims. */
  readonly sight: PathSight;
}

/** Why a mended policy does not mend its own pull request (case 52). */
function policyNote({ state, run }: Judged): Markdown[] {
  if (state.policy?.state !== 'valid' || !state.files.has(POLICY_PATH)) return [];
  return [
    md`This pull request changes ${Markdown.code(POLICY_PATH)}: until it is merged, what ${Markdown.code(run.baseRef)} says decides; the check ${Markdown.code(PREVIEW_NAME)} tells what the new one would.`,
  ];
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
  if (command.name === 'status') {
    const decision =
      closed === null ? await shownDecision(order.deps, unit.tx, judged, unit.now) : judged.decision;
    const stuck = await listStuckChecks(unit.tx, unit.run.id, STUCK_ATTEMPTS, 10);
    const status = statusReply(prefix, decision, closed, stuck);
    const warnings = order.check === null ? [] : checkWarnings(order.check);
    const notes = [...policyNote(judged), ...warnings].map((one) => md`  - ${one}`);
    return Markdown.join([status, ...notes], '\n');
  }
  if (command.name === 'help') return helpReply(prefix, command.topic);
  if (closed !== null && command.name !== 'explain')
    throw new Refusal('conflict', `the pull request is ${closed}`);
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
  const given: Given = {
    deps: order.deps,
    unit,
    judged,
    asker,
    actor: { kind: order.user.bot ? 'bot' : 'person', id: order.user.id, via: order.via },
    cause: order.cause,
    prefix,
    commentMs: order.commentMs,
    alone: order.alone,
    name: `${order.cause.id}:${order.parsed.index}`,
  };
  // the one command that is for a chain that does not verify
  if (command.name === 'seal') return seal(given, command);
  if (judged.facts.ledger !== null) {
    throw new Refusal('conflict', 'the ledger of this run does not verify, so nothing can be built on it');
  }
  switch (command.name) {
    case 'allow':
      return allow(given, command);
    case 'claim':
      return claim(given, command, order.sight);
    case 'release':
      return releaseClaim(given, command);
    case 'rerun':
      return rerun(given, command);
    case 'reload':
      return reload(given);
    case 'answer':
      return answerFinding(given, command);
    case 'approve':
      return approve(given, command);
    case 'override':
      return override(given, command);
    case 'dismiss':
      return dismiss(given, command);
    case 'explain':
      return explain(given, command);
    default:
      // the table says which are available; what it says and this does not do is a refusal, never silence
      throw new Refusal('not_supported', 'it is not available yet');
  }
}
