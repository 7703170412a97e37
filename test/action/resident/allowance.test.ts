import { describe, expect, test } from 'vitest';
import { allowanceOf, allowed, type Provider } from '../../../action/resident/allowance.ts';
import type { ReviewerSpec } from '../../../app/protocol/runner.ts';
import { makeTicket } from '../server.ts';

const of = (providers: readonly Provider[] = [], commands: readonly string[] = []) =>
  allowanceOf({ providers, commands });
const model = (more: Partial<ReviewerSpec> = {}): ReviewerSpec => ({
  name: 'model',
  uses: 'openai',
  model: 'm-1',
  ...more,
});
const command = (program: string): ReviewerSpec => ({
  name: 'lint',
  uses: 'command',
  command: {
    run: [program, '{path}'],
    output: 'sarif',
    paths: ['**'],
    ok_exit: [0],
    deletions: false,
    config: [],
    severity: { error: 'high', warning: 'medium', note: 'low' },
  },
});

describe('POOL-1: what a policy may use of a resident runner', () => {
  test('POOL-1: by default a vendor at its own address under its usual key, and no program', () => {
    expect(of().of(model())).toEqual({ spec: model({ key: 'OPENAI_API_KEY' }) });
    expect(of().of(model({ key: 'OPENAI_API_KEY' }))).toEqual({ spec: model({ key: 'OPENAI_API_KEY' }) });
    expect(of().of(command('eslint'))).toMatchObject({ refused: expect.stringContaining('eslint') });
  });

  test.each([
    ['an address of its own, to which the key would go', { base_url: 'https://evil.example/v1' }],
    ['another variable, such as the pool token’s', { key: 'COUNTERSIGN_POOL_TOKEN' }],
    ['a variable of another vendor', { key: 'ANTHROPIC_API_KEY' }],
    ['a server inside, without any key', { uses: 'openai-compatible', base_url: 'http://10.0.0.5/v1' }],
  ] as const)('POOL-1: a policy that names %s gets nothing', (_, more) => {
    expect(of().of(model(more))).toMatchObject({ refused: expect.stringContaining('--providers') });
    expect(of([{ uses: 'anthropic', key: 'TEAM' }]).of(model(more))).toHaveProperty('refused');
  });

  test('POOL-1: the operator’s address and key hold, whatever the policy says', () => {
    const gateway = of([{ uses: 'openai', base_url: 'https://gateway.example/v1', key: 'GATEWAY' }]);
    const there = { spec: model({ base_url: 'https://gateway.example/v1', key: 'GATEWAY' }) };
    expect(gateway.of(model())).toEqual(there);
    expect(gateway.of(model({ base_url: 'https://evil.example/v1', key: 'PATH' }))).toEqual(there);
  });

  test('POOL-1: an address that is allowed is allowed as it is written, and no other', () => {
    const own = of([{ uses: 'openai-compatible', for: 'http://models.example/v1' }]);
    const spec = model({ uses: 'openai-compatible', base_url: 'http://models.example/v1' });
    expect(own.of(spec)).toEqual({ spec });
    expect(own.of({ ...spec, base_url: 'http://models.example/v1/../x' })).toHaveProperty('refused');
  });

  test('POOL-1: programs by name, or any', () => {
    expect(of([], ['eslint']).of(command('eslint'))).toHaveProperty('spec');
    expect(of([], ['eslint']).of(command('/tmp/eslint'))).toHaveProperty('refused');
    expect(of([], ['any']).of(command('sh'))).toHaveProperty('spec');
  });

  test('POOL-1: only the variables of models are keys', () => {
    const { keys } = of([{ uses: 'openai', key: 'GATEWAY' }]);
    expect([...keys].sort()).toEqual(['ANTHROPIC_API_KEY', 'GATEWAY', 'OPENAI_API_KEY', 'XAI_API_KEY']);
  });

  test('POOL-1: a ticket keeps a refused reviewer to say why, and loses a refused fallback', () => {
    const ticket = makeTicket({
      path: 'a.ts',
      head: 'a'.repeat(40),
      merge_base: 'b'.repeat(40),
      blob: { base: null, head: 'c'.repeat(40) },
      repository: { id: '1', owner: 'o', name: 'r', clone_url: 'https://github.example/o/r.git' },
      reviewers: [command('sh'), model()],
      fallbacks: [model({ name: 'other', base_url: 'https://evil.example' })],
    });
    const held = allowed(of(), ticket);
    expect(held.ticket.reviewers.map((one) => one.name)).toEqual(['lint', 'model']);
    expect(held.ticket.fallbacks).toEqual([]);
    expect([...held.refused.keys()]).toEqual(['lint']);
    expect(allowed(undefined, ticket)).toEqual({ ticket, refused: new Map() });
  });
});
