import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import {
  checkAnswer,
  checkBody,
  checkParameters,
  checkWebhook,
  operationOf,
  operationsByPath,
} from '../../sandbox/openapi.ts';
import { OPERATIONS } from '../../sandbox/operations.ts';

describe('GitHub’s description', () => {
  it('is cut to what is served, names its source and carries its licence', () => {
    const file = readFileSync(new URL('../../sandbox/github-openapi.json', import.meta.url), 'utf8');
    const description = JSON.parse(file) as { source: string; license: string; operations: object };
    expect(description.source).toContain('@octokit/openapi@23.0.2');
    expect(description.license).toContain('Permission is hereby granted, free of charge');
    expect(Object.keys(description.operations).sort()).toEqual([...OPERATIONS].sort());
  });

  it('literal paths are tried before parameters', () => {
    const paths = operationsByPath.map(([, { path }]) => path);
    expect(paths.indexOf('/app/hook/deliveries')).toBeLessThan(paths.indexOf('/app'));
    expect(paths.indexOf('/installation/repositories')).toBeLessThan(paths.indexOf('/repos/{owner}/{repo}'));
    expect(operationOf('checks/create')).toMatchObject({ method: 'POST', bodyRequired: true });
  });

  it('bodies: what is missing, too long or not allowed is named; unknown fields are told apart', () => {
    const check = (body: unknown) => checkBody('checks/create', body);
    expect(check({ name: 'a' }).faults).toEqual(['"head_sha" wasn\'t supplied.']);
    expect(check(undefined).faults).toHaveLength(1);
    expect(check({ name: 'a', head_sha: 'b', status: 'waiting' }).faults).toHaveLength(1);
    expect(check({ name: 'a', head_sha: 'b', nmae: 'c' })).toEqual({ faults: [], unknown: ['nmae'] });
  });

  it('parameters get their types and defaults', () => {
    expect(
      checkParameters('checks/list-for-ref', 'query', { per_page: '7', app_id: '2300000001' }),
    ).toMatchObject({
      values: { per_page: 7, app_id: 2_300_000_001, filter: 'latest' },
      faults: [],
    });
    expect(
      checkParameters('checks/get', 'path', { owner: 'a', repo: 'b', check_run_id: 'x' }).faults,
    ).toHaveLength(1);
    expect(checkParameters('repos/get', 'query', { page: '1' }).unknown).toEqual(['page']);
  });

  it('answers and payloads of another shape are told', () => {
    expect(checkAnswer('pulls/get', 200, { number: 1 }).length).toBeGreaterThan(20);
    expect(checkAnswer('pulls/get', 201, {})).toEqual(['pulls/get: GitHub never answers 201']);
    expect(checkAnswer('pulls/get', 418, {})).toEqual([]);
    expect(checkWebhook('pull_request', 'opened', { action: 'closed' }).length).toBeGreaterThan(3);
    expect(checkWebhook('pull_request', 'vanished', {})).toEqual([
      'webhook pull-request-vanished is not in the description',
    ]);
  });
});
