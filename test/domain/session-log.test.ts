import { describe, expect, it } from 'vitest';
import type { ReportedResult } from '../../app/domain/result.ts';
import { judgeLogs } from '../../app/domain/session-log.ts';
import { plainSpec } from '../helpers/queue.ts';

const agent = { name: 'codex', uses: 'codex' as const, model: 'm', fallbacks: ['claude'] };
const spec = {
  ...plainSpec('a.ts', 'command'),
  reviewers: [agent, { name: 'model', uses: 'openai' as const, model: 'm' }],
  fallbacks: [{ name: 'claude', uses: 'claude-code' as const, model: 'm' }],
};
const start = '{"type":"thread.started"}';
const tool = '{"type":"item.started","item":{"type":"command_execution","command":"env"}}';
const end = '{"type":"turn.completed"}';
const session = (reviewer: string, log: string | undefined, more: object = {}) => ({
  id: `s-${reviewer}`,
  reviewer,
  provider: null,
  model: null,
  end: 'complete' as const,
  detail: null,
  tokens_in: 0,
  tokens_out: 0,
  cost_micro: 0,
  ms: 1,
  ...(log === undefined ? {} : { log }),
  ...more,
});
type Sessions = ReturnType<typeof session>[];
const judge = (sessions: Sessions, more: Partial<ReportedResult> = {}) =>
  judgeLogs(spec, {
    end: 'reviewed',
    detail: null,
    blobs: spec.blob,
    verdict: 'approve',
    partial: false,
    findings: [],
    unplaced: [],
    ...more,
    sessions,
  });

describe('REV-7: logs are scanned again where they arrive', () => {
  it('a whole session without tools lets its result stand', () => {
    const { result, breaks } = judge([session('codex', `${start}\n${end}`)]);
    expect(result).toMatchObject({ end: 'reviewed', verdict: 'approve' });
    expect(breaks).toEqual([]);
  });

  it('a tool event ends the ticket, whatever the runner made of the session and of the result', () => {
    for (const more of [{}, { end: 'timeout' as const }, { end: 'abandoned' as const }])
      for (const all of [{}, { end: 'timeout' as const, verdict: null }])
        expect(judge([session('codex', `${start}\n${tool}`, more)], all)).toEqual({
          result: expect.objectContaining({ end: 'rule_break', verdict: null }),
          breaks: [{ session: 's-codex', detail: 'codex used a tool: command_execution: env' }],
        });
  });

  it('a fallback that reviewed does not cover for the one before it', () => {
    const init = '{"type":"system","subtype":"init","tools":[]}';
    const sessions = [
      session('codex', `${start}\n${tool}`, { end: 'invalid' }),
      session('claude', `${init}\n{"type":"result","subtype":"success","result":"{}"}`),
    ];
    expect(judge(sessions).result).toMatchObject({ end: 'rule_break', verdict: null });
  });

  it('a complete session without a log, or with another, is no review', () => {
    for (const log of [undefined, '', 'I did nothing', start, `${end}`, `${start}\n${end}\n${end}`])
      expect(judge([session('codex', log)])).toMatchObject({
        result: { end: 'bad_output', verdict: null, detail: expect.stringContaining('codex') },
        breaks: [],
      });
    const open =
      '{"type":"system","subtype":"init","tools":["Bash"]}\n{"type":"result","subtype":"success","result":"x"}';
    expect(judge([session('claude', open)]).result).toMatchObject({ end: 'reviewer_unsafe' });
  });

  it('a session that did not complete needs no log; a model has none', () => {
    const failed = { end: 'provider_error' as const, verdict: null };
    expect(judge([session('codex', undefined, { end: 'failed' })], failed).result).toMatchObject(failed);
    expect(judge([session('model', undefined)]).result.end).toBe('reviewed');
  });

  it('what a runner tells of itself is kept without a log too', () => {
    const told = { end: 'rule_break' as const, verdict: null, detail: 'codex: used a tool' };
    expect(judge([session('codex', '', { end: 'invalid' })], told).breaks).toEqual([
      { session: 's-codex', detail: 'codex: used a tool' },
    ]);
    expect(judge([], { ...told, detail: null }).breaks).toEqual([
      { session: 'none', detail: 'a tool was used' },
    ]);
  });
});
