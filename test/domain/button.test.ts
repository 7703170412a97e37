import { describe, expect, it } from 'vitest';
import { BUTTONS, type ButtonId, buttonsOf, commandsOf, isButton } from '../../app/domain/button.ts';
import { rightFault } from '../../app/domain/command/rights.ts';
import { COMMANDS } from '../../app/domain/command/table.ts';
import type { GateConclusion, GateDecision } from '../../app/domain/gate/decide.ts';
import { type GateReason, REASONS, type ReasonCode, sortReasons } from '../../app/domain/gate/reason.ts';

const codes = Object.keys(REASONS) as ReasonCode[];

function decision(conclusion: GateConclusion, ...found: ReasonCode[]): GateDecision {
  const reasons = sortReasons(
    found.map(
      (code): GateReason => ({
        code,
        class: REASONS[code].class ?? 'machine',
        blocks: [],
        paths: [],
        findings: [],
        count: 1,
        detail: null,
        untilMs: null,
        past: false,
      }),
    ),
  );
  return {
    head: 'a'.repeat(40),
    mode: 'enforce',
    conclusion,
    reasons,
    next: [],
    blocking: [],
    counts: { files: 1, counted: 0, unreviewed: 0 },
    dueAtMs: null,
  };
}
const ids = (one: GateDecision) => buttonsOf(one).map((button) => button.identifier);

describe('PUB-6: buttons', () => {
  it('fit what GitHub takes: labels and identifiers of 20 characters, descriptions of 40', () => {
    for (const [identifier, { label, description, command }] of Object.entries(BUTTONS)) {
      expect(identifier.length).toBeLessThanOrEqual(20);
      expect(label.length).toBeLessThanOrEqual(20);
      expect(description.length).toBeLessThanOrEqual(40);
      expect(Object.hasOwn(COMMANDS, command)).toBe(true);
      expect(isButton(identifier)).toBe(true);
    }
    expect(isButton('toString')).toBe(false);
  });

  it('of every pair of reasons at most three are shown, none twice, none of a command that is not available', () => {
    for (const a of codes) {
      for (const b of codes) {
        for (const conclusion of ['failure', 'action_required'] as const) {
          const shown = buttonsOf(decision(conclusion, a, b));
          expect(shown.length).toBeLessThanOrEqual(3);
          expect(new Set(shown.map((one) => one.label)).size).toBe(shown.length);
          for (const { identifier } of shown)
            expect(COMMANDS[BUTTONS[identifier].command].available, identifier).toBe(true);
        }
      }
    }
  });

  it('a table of what is offered', () => {
    expect(ids(decision('in_progress', 'reviews_pending'))).toEqual([]);
    expect(ids(decision('queued'))).toEqual([]);
    expect(ids(decision('success'))).toEqual(['rerun-all']);
    expect(ids(decision('failure', 'open_findings'))).toEqual(['rerun-all']);
    expect(ids(decision('failure', 'verify_failed'))).toEqual(['rerun-failed']);
    expect(ids(decision('failure', 'ticket_unavailable', 'orphan'))).toEqual([
      'rerun-failed',
      'claim-orphans',
    ]);
    const approve = COMMANDS.approve.available ? ['approve'] : [];
    expect(ids(decision('action_required', 'guarded'))).toEqual(['rerun-all', ...approve]);
    expect(ids(decision('failure', 'orphan', 'human_check'))).toEqual([
      'rerun-all',
      'claim-orphans',
      ...approve,
    ]);
    // what nobody read is cleared by its name alone
    expect(ids(decision('failure', 'unreviewed_files'))).toEqual(['rerun-all']);
    // a round of review would not begin, and nothing can be claimed away
    expect(ids(decision('action_required', 'needs_allow', 'orphan'))).toEqual(['allow']);
    expect(ids(decision('failure', 'config_invalid', 'orphan'))).toEqual([]);
    expect(ids(decision('failure', 'ledger_invalid'))).toEqual([]);
    expect(ids(decision('action_required', 'paused'))).toEqual([]);
  });

  it('GAT-6: what depends on a head names the head whose check it was', () => {
    const head = 'b'.repeat(40);
    expect(commandsOf('allow', head, [])).toEqual([{ name: 'allow', scope: 'head', sha: head }]);
    expect(commandsOf('approve', head, [])).toMatchObject([
      { name: 'approve', text: expect.stringContaining(head) },
    ]);
  });

  it('OWN-5: one press claims fifty orphans at most, so that no unit of work grows without bound', () => {
    const orphans = Array.from({ length: 120 }, (_, i) => `src/${i}.ts`);
    expect(commandsOf('claim-orphans', 'd'.repeat(40), orphans)).toHaveLength(50);
    expect(commandsOf('claim-orphans', 'd'.repeat(40), [])).toEqual([]);
  });

  it('CMD-3: each button asks for the right of its command, so that no press can do more than a comment', () => {
    for (const id of Object.keys(BUTTONS) as ButtonId[]) {
      const [command] = commandsOf(id, 'c'.repeat(40), ['a.ts']);
      if (command === undefined) throw new Error('no command');
      expect(command.name).toBe(BUTTONS[id].command);
      const stranger = { permission: 'read', author: false, allowed: true } as const;
      expect(rightFault(command, stranger), id).not.toBeNull();
    }
  });
});
