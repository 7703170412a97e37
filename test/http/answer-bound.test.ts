import { expect, it } from 'vitest';
import { bounded } from '../../app/http/answer-bound.ts';

it('OPS-10: an answer about a run that is too large is refused and says how to ask for less, never cut', () => {
  const answer = { files: ['é'] };
  const size = Buffer.byteLength(JSON.stringify(answer));
  expect(bounded(answer, size)).toBe(answer);
  expect(() => bounded(answer, size - 1)).toThrowError(
    expect.objectContaining({ code: 'too_large', accepted: 'one block: ?block=NAME' }),
  );
  expect(() => bounded({ files: 'x'.repeat(8 * 1_048_576) })).toThrowError(/larger than 8388608 bytes/);
});
