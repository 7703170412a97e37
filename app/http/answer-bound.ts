/** The largest answer about a run (OPS-10): a program that asks gets all of it or is told so, never a part. */
import { Refusal } from '../errors.ts';
import { EDGE_LIMITS } from '../flow/edge-limits.ts';

/** The answer itself; refused `too_large` where its JSON is larger, saying how to ask for less. */
export function bounded<T>(answer: T, mostBytes: number = EDGE_LIMITS.answerBytes): T {
  if (Buffer.byteLength(JSON.stringify(answer)) <= mostBytes) return answer;
  throw new Refusal('too_large', `the answer is larger than ${mostBytes} bytes`, 'one block: ?block=NAME');
}
