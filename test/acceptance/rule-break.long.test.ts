/** An agent that uses a tool, on the whole road: the built Action, the server, the gate, and the person who clears it (REV-7, REV-11). */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { workflowFile } from '../../app/domain/workflow.ts';
import type { User } from '../../sandbox/model.ts';
import type { Pull } from '../../sandbox/pull.ts';
import { AGENT_KEYS, type InstalledAgents, installAgents } from '../action/reviewers/agents.ts';
import { seen, sticky } from '../helpers/sight.ts';
import { type TestStage, testStage } from '../helpers/stage.ts';

let stage: TestStage;
let installed: InstalledAgents;
beforeAll(async () => {
  stage = await testStage();
  installed = installAgents();
});
afterAll(async () => {
  await stage.close();
  installed.remove();
});

async function say(pull: Pull, user: User, body: string): Promise<void> {
  await pull.comment(user, body);
  await stage.settle();
  // three replies a minute
  await stage.advance(61_000);
}

// another user is had by root alone: elsewhere the agent is not asked at all
describe.skipIf(process.getuid?.() !== 0)('an agent that uses a tool', { timeout: 180_000 }, () => {
  it('REV-7: holds the gate, through a clean review of the same file too, until somebody without a part in it acknowledges', async () => {
    const mara = stage.gh.createUser('mara');
    const { author } = stage;
    const { repository } = await stage.repository({
      name: 'agents',
      collaborators: [
        [author, 'write'],
        [mara, 'write'],
      ],
      policy: 'version: 1\nreviewers:\n  agent: {uses: codex, model: "m:tool-while-told"}\n',
      workflow: false,
      files: {
        '.github/workflows/countersign.yml': workflowFile({
          serverUrl: stage.server.url,
          ref: 'countersign-dev/countersign@v0',
          keys: ['OPENAI_API_KEY'],
          setup: [`echo ${installed.dir} >> "$GITHUB_PATH"`],
        }).replace('with:\n', 'with:\n          idle_ms: "200"\n'),
      },
    });
    repository.secrets['OPENAI_API_KEY'] = AGENT_KEYS['OPENAI_API_KEY'] ?? '';
    const told = join(installed.dir, 'use-a-tool');
    writeFileSync(told, '');
    await repository.commit({ branch: 'topic', author, files: { 'src/a.ts': 'export const a = 1;\n' } });
    const pull = await repository.openPull({ head: 'topic', user: author });

    // what it approved in the same breath does not count
    const broken = await stage.verdict(pull);
    expect(broken.summary).toMatch(/`ticket_unavailable`[^\n]*src\/a\.ts/);
    expect(broken.summary).toMatch(
      /\| `rule_break` A reviewer did what it may not do[^|]*agent used a tool: command\\_execution[^|]*\|[^|]*src\/a\.ts[^|]*\| `\/approve rule_break REASON`/,
    );
    const kinds = async (kind: string) => (await stage.rows(pull)).filter((row) => row.kind === kind);
    expect((await kinds('rule.break')).length).toBe(1);
    expect((await kinds('ticket.ended')).map(({ data }) => data)).toMatchObject([
      { end: 'rule_break', final: true, verdict: null },
    ]);

    rmSync(told);
    await say(pull, author, '/rerun failed');
    const held = await stage.verdict(pull, { until: (run) => run.conclusion === 'action_required' });
    await stage.settle();
    expect((await kinds('ticket.ended')).at(-1)?.data).toMatchObject({ end: 'reviewed', verdict: 'approve' });
    expect(held.summary).toContain('`rule_break`');
    expect(held.summary).not.toContain('`ticket_unavailable`');
    expect(seen(stage, pull)?.mergeable).toBe(false);

    await say(pull, author, '/approve rule_break It is fine.');
    expect(sticky(stage, pull)).toContain('`/approve` was not done');
    expect(seen(stage, pull)?.mergeable).toBe(false);
    await say(
      pull,
      mara,
      '/approve rule_break It listed its environment, and its environment holds nothing.',
    );
    await stage.verdict(pull, { until: (run) => run.conclusion === 'success' });
    expect(seen(stage, pull)?.mergeable).toBe(true);
  });
});
