import { expect, test } from 'vitest';
import { runProgram } from '../../action/process.ts';

test('ACT-5: a program whose child left its group and holds its output is over all the same', async () => {
  const exit = await runProgram({
    argv: ['/bin/sh', '-c', 'setsid sh -c "trap \\"\\" TERM; sleep 120" & echo said'],
    cwd: '/',
    env: { PATH: process.env['PATH'] ?? '' },
    timeoutMs: 60_000,
    signal: new AbortController().signal,
    maxStdout: 1000,
  });
  expect(exit).toMatchObject({ code: 0, timedOut: false });
  expect(exit.stdout.toString()).toBe('said\n');
});
