import { expect, test } from 'vitest';
import { runHeld } from '../../action/verify/held.ts';

type Options = Parameters<typeof runHeld>[0];
const hold = (more: Partial<Options> = {}) =>
  runHeld({
    argv: ['/bin/sh', '-c', 'echo ran'],
    cwd: '/',
    env: { PATH: process.env['PATH'] ?? '' },
    mark: 'COUNTERSIGN_OUTPUT=nowhere',
    timeoutMs: 60_000,
    signal: new AbortController().signal,
    record: async () => undefined,
    onOutput: () => undefined,
    ...more,
  });

test('VER-2: the process is there and has not begun while its start is being recorded', async () => {
  const order: string[] = [];
  const exit = await hold({
    onOutput: (_, chunk) => void order.push(chunk.toString().trim()),
    record: async (pid) => {
      expect(process.kill(pid, 0)).toBe(true);
      await new Promise((resolve) => setTimeout(resolve, 300));
      order.push('recorded');
    },
  });
  expect(order).toEqual(['recorded', 'ran']);
  expect(exit).toMatchObject({ started: true, code: 0 });
});

test('VER-2: a record that fails, or a stop before it, starts nothing and exits 125', async () => {
  const printed: string[] = [];
  const onOutput: Options['onOutput'] = (_, chunk) => void printed.push(chunk.toString());
  const refused = await hold({ onOutput, record: () => Promise.reject(new Error('fenced')) });
  expect(refused).toMatchObject({ started: false, code: 125, cancelled: false });
  const stop = new AbortController();
  const stopped = await hold({ onOutput, signal: stop.signal, record: async () => stop.abort() });
  expect(stopped).toMatchObject({ started: false, code: 125, cancelled: true });
  expect(printed).toEqual([]);
});

test('VER-2: what cannot be run says so by its exit code, and a folder that is not there by an error', async () => {
  for (const [argv, code] of [
    [['no-such-program'], 127],
    [['-c', 'true'], 127],
    [['/etc/passwd'], 126],
    [['/bin/sh', '-c', 'exit 125'], 125],
  ] as const)
    expect(await hold({ argv })).toMatchObject({ started: true, code });
  await expect(hold({ cwd: '/no/such/folder' })).rejects.toMatchObject({ code: 'ENOENT' });
});
