import { expect, it } from 'vitest';
import { answerText } from '../../action/answer-text.ts';

/** An answer in pieces, and how many of them were taken. */
function answer(pieces: number): { response: Response; taken: () => number } {
  let taken = 0;
  const body = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        if (taken === pieces) controller.close();
        else controller.enqueue(Buffer.from('é'.repeat(5)));
        taken += 1;
      },
    },
    { highWaterMark: 0 },
  );
  return { response: new Response(body), taken: () => taken };
}

it('OPS-10: an answer of the server is read whole up to its bound, and not a piece further', async () => {
  expect(await answerText(answer(3).response, 30)).toBe('é'.repeat(15));
  const long = answer(1000);
  await expect(answerText(long.response, 30)).rejects.toMatchObject({
    code: 'server_refused',
    retryable: false,
  });
  expect(long.taken()).toBeLessThan(10);
  expect(await answerText(new Response(null))).toBe('');
});
