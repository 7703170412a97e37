import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { workflowFile } from '../../app/domain/workflow.ts';

const file = workflowFile({
  serverUrl: 'https://cs.example/',
  ref: 'countersign-dev/countersign@v0',
  setup: ['npm install --global "@biomejs/biome@2.6.8"'],
});
const workflow = parse(file);

const expression = (of: string) => `\${{ ${of} }}`;

describe('the workflow file', () => {
  test('ACT-3: starts by dispatch only, with at most ten inputs, and no concurrency group', () => {
    expect(Object.keys(workflow.on)).toEqual(['workflow_dispatch']);
    expect(Object.keys(workflow.on.workflow_dispatch.inputs)).toEqual(['server', 'run', 'nonce']);
    expect(workflow.concurrency).toBeUndefined();
  });
  test('AUT-4: the job may read contents and prove itself, nothing else, and ends by itself', () => {
    expect(workflow.permissions).toEqual({});
    expect(workflow.jobs.review.permissions).toEqual({ contents: 'read', 'id-token': 'write' });
    expect(workflow.jobs.review['timeout-minutes']).toBeLessThanOrEqual(60);
  });
  test('ACT-4: no input reaches shell text, and the server is the file’s own, never the dispatch’s', () => {
    const [setup, step] = workflow.jobs.review.steps;
    expect(setup.run).toBe('npm install --global "@biomejs/biome@2.6.8"');
    expect(step).toEqual({
      name: 'Countersign',
      uses: 'countersign-dev/countersign@v0',
      with: {
        server: 'https://cs.example',
        run: expression('inputs.run'),
        nonce: expression('inputs.nonce'),
      },
      env: {
        ANTHROPIC_API_KEY: expression('secrets.ANTHROPIC_API_KEY'),
        OPENAI_API_KEY: expression('secrets.OPENAI_API_KEY'),
        XAI_API_KEY: expression('secrets.XAI_API_KEY'),
      },
    });
    expect(file).not.toContain('inputs.server');
    expect(file).not.toContain('actions/checkout');
  });
  test('a job without provider keys has no environment of its own; a key that is no name is refused', () => {
    const bare = parse(workflowFile({ serverUrl: 'https://cs.example', ref: 'a/countersign@v0', keys: [] }));
    expect(bare.jobs.review.steps).toHaveLength(1);
    expect(bare.jobs.review.steps[0].env).toBeUndefined();
    expect(() => workflowFile({ serverUrl: 'x', ref: 'y', keys: ['A: b\n'] })).toThrow('variable name');
  });
});
