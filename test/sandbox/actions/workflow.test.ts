import { describe, expect, it } from 'vitest';
import { inputEnvironment, isOurs } from '../../../sandbox/actions/action-file.ts';
import {
  BadExpression,
  condition,
  evaluate,
  interpolate,
  type Scope,
} from '../../../sandbox/actions/expressions.ts';
import { parsePairs } from '../../../sandbox/actions/files.ts';
import { BadWorkflow, dispatchInputs, parseWorkflow } from '../../../sandbox/actions/workflow.ts';

const scope: Scope = {
  status: 'success',
  contexts: {
    inputs: { name: 'Ada', count: '3', yes: true },
    github: { event: { inputs: { 'a-b': 'dash' } }, actor: 'alice' },
    steps: { one: { outputs: { list: '["x","y"]' } } },
  },
};

describe('expressions', () => {
  it.each([
    ["inputs.name == 'ada'", true],
    ["inputs['name'] != 'Ada'", false],
    ['github.event.inputs.a-b', 'dash'],
    ['inputs.missing', null],
    ["inputs.missing || 'fallback'", 'fallback'],
    ["inputs.yes && 'a' || 'b'", 'a'],
    ['inputs.count > 2 && !(inputs.count >= 4)', true],
    ["format('{0}-{1}', inputs.name, 'it''s')", "Ada-it's"],
    ["contains(fromJSON(steps.one.outputs.list), 'Y')", true],
    ["join(fromJSON(steps.one.outputs.list), '+')", 'x+y'],
    ["startsWith(github.actor, 'AL') && endsWith(github.actor, 'ce')", true],
    ["null == ''", true],
  ])('%s', (source, value) => {
    expect(evaluate(source, scope)).toEqual(value);
  });

  it('fills text, and refuses unknown names and functions', () => {
    expect(interpolate(`\${{ inputs.name }} has \${{ inputs.count }}, \${{ inputs.none }}.`, scope)).toBe(
      'Ada has 3, .',
    );
    expect(() => evaluate('unheard.of', scope)).toThrow(BadExpression);
    expect(() => evaluate('hashFiles(inputs.name)', scope)).toThrow(BadExpression);
    expect(() => evaluate('inputs.name inputs.count', scope)).toThrow(BadExpression);
  });

  it('an if without a status function means success() as well', () => {
    const failed: Scope = { ...scope, status: 'failure' };
    expect(condition(undefined, scope)).toBe(true);
    expect(condition('inputs.yes', failed)).toBe(false);
    expect(condition(`\${{ always() && inputs.yes }}`, failed)).toBe(true);
    expect(condition('failure()', scope)).toBe(false);
  });
});

const job = 'jobs: {a: {runs-on: x, steps: [{run: "true"}]}}';

describe('workflow files', () => {
  it('finds the trigger in each of its forms', () => {
    expect(dispatchInputs('on: workflow_dispatch')).toEqual({});
    expect(dispatchInputs('on: [push, workflow_dispatch]')).toEqual({});
    expect(dispatchInputs('on: {push: }')).toBeNull();
    expect(dispatchInputs('on: {workflow_dispatch: {inputs: {n: {required: true, default: 4}}}}')).toEqual({
      n: { required: true, default: '4', type: 'string', options: [] },
    });
  });

  it.each([
    ['no jobs', 'on: push'],
    ['an unknown key', `colour: red\n${job}`],
    ['a job without runs-on', 'jobs: {a: {steps: [{run: x}]}}'],
    ['a step with both uses and run', 'jobs: {a: {runs-on: x, steps: [{run: x, uses: y}]}}'],
    ['a need that is no job', 'jobs: {a: {runs-on: x, needs: b, steps: [{run: x}]}}'],
    ['a permission that does not exist', `permissions: {everything: write}\n${job}`],
    ['a matrix, which is not run here', 'jobs: {a: {runs-on: x, strategy: {matrix: {}}, steps: [{run: x}]}}'],
    ['no YAML', 'a: [b'],
  ])('refuses %s', (_, text) => {
    expect(() => parseWorkflow(text, 'w.yml')).toThrow(BadWorkflow);
  });

  it('permissions that are given leave out all others', () => {
    expect(parseWorkflow(job, 'w.yml')).toMatchObject({
      name: 'w.yml',
      permissions: null,
      concurrency: null,
    });
    expect(parseWorkflow(`permissions: {contents: read}\n${job}`, 'w.yml').permissions).toEqual({
      contents: 'read',
    });
    expect(
      parseWorkflow(`concurrency: {group: G, cancel-in-progress: true}\n${job}`, 'w.yml').concurrency,
    ).toEqual({
      group: 'G',
      cancelInProgress: true,
    });
  });
});

describe('what a step is given and gives', () => {
  it('facts §17: INPUT_ with upper case and spaces as underscores', () => {
    expect(inputEnvironment({ idle_ms: '1', 'my input': 'x', 'a-b': 'y' })).toEqual({
      INPUT_IDLE_MS: '1',
      INPUT_MY_INPUT: 'x',
      'INPUT_A-B': 'y',
    });
    expect(['acme/countersign@v1', 'x/countersign@abc'].every(isOurs)).toBe(true);
    expect(['actions/checkout@v4', 'a/b/countersign@v1', './countersign', 'a/countersign'].some(isOurs)).toBe(
      false,
    );
  });

  it('command files hold plain pairs and blocks; anything else is an error', () => {
    expect(parsePairs('a=1\nb<<END\nx\ny=2\nEND\nc=d=e\n')).toEqual({ a: '1', b: 'x\ny=2', c: 'd=e' });
    expect(() => parsePairs('b<<END\nx\n')).toThrow('Matching delimiter not found');
    expect(() => parsePairs('nothing\n')).toThrow('Invalid format');
  });
});
