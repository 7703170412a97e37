/** The text of the server's answer, at most so much of it (OPS-10): a job does not fill its memory with what it was sent. */
import { LIMITS } from '../app/domain/limits.ts';
import { Fault } from '../app/errors.ts';

/** Reads it; throws `server_refused` past `mostBytes`, and lets go of the rest. */
export async function answerText(
  response: Response,
  mostBytes: number = LIMITS.answerBytes.default,
): Promise<string> {
  if (response.body === null) return '';
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const part of response.body) {
    length += part.byteLength;
    // leaving the loop cancels the stream
    if (length > mostBytes)
      throw new Fault('server_refused', `the server's answer is larger than ${mostBytes} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
}
