import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { inputDefaults } from '../../action/inputs.ts';
import { countsOf, createTally } from '../../action/summary.ts';
import { verifyOutputs } from '../../action/verify/report.ts';
import { root } from './harness.ts';

const action = parse(readFileSync(path.join(root, 'action.yml'), 'utf8'));

test('ACT-1: action.yml runs the committed bundle under node24', () => {
  expect(action.runs).toEqual({ using: 'node24', main: 'action/dist/index.js' });
  expect(existsSync(path.join(root, action.runs.main))).toBe(true);
});

test('ACT-4: the inputs of action.yml are those that are parsed, with the same defaults', () => {
  const { token, ...inputs } = action.inputs;
  const declared = Object.entries<{ default?: string }>(inputs).map(([name, input]) => [
    name,
    input.default ?? '',
  ]);
  const { token: _, ...parsed } = inputDefaults;
  expect(Object.fromEntries(declared)).toEqual(parsed);
  expect(token.default).toBe(['$', '{{ github.token }}'].join(''));
});

test('ACT-6: the outputs of action.yml are those that are written', () => {
  expect(Object.keys(action.outputs)).toEqual([
    ...Object.keys(countsOf(createTally())),
    'run_url',
    ...Object.keys(verifyOutputs([], '')),
  ]);
});
