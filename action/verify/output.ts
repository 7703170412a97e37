/**
 * What a verify command prints: shown as it comes, line by line and neutral, and its end kept. Everything is
 * redacted before it is shown or kept (REV-8), and no line of it is a workflow command (ACT-4).
 */
import { createHash } from 'node:crypto';
import { StringDecoder } from 'node:string_decoder';
import type { ReceiptDetail } from '../../app/protocol/receipt.ts';
import { TAIL_CHARS } from '../../app/protocol/receipt.ts';

type StreamName = 'stdout' | 'stderr';
/** A kept stream: its redacted end, and how much there was. */
export type Kept = Readonly<{ bytes: number; tail: string; sha256: string }>;

/** Kept of each stream, in characters. */
const KEPT_CHARS = 64 * 1024;
/** Kept beside, so that a secret which the cut would halve is whole when it is looked for. */
const MARGIN_CHARS = 16 * 1024;
/** Shown of a command, in characters; the rest is in no log, its end in the tail. */
const SHOWN_CHARS = 8 * 1024 * 1024;
/** A line longer than this is shown in pieces. */
const LONGEST_LINE = 8 * 1024;
/** Lines are shown at least as often. */
const SHOW_EVERY_MS = 500;

// biome-ignore lint/suspicious/noControlCharactersInRegex: colours are made of one
const ESCAPES = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-Z\\-_])/g;

/** Text as a log may hold it: no colours, no controls but line breaks. */
function plain(text: string): string {
  return text
    .replace(/\r\n?/g, '\n')
    .replace(ESCAPES, '')
    .replaceAll('\t', '    ')
    .replace(/(?!\n)[\p{Cc}\p{Cf}\u2028\u2029]/gu, '\ufffd')
    .toWellFormed();
}

/** A line that GitHub's runner takes for text: `::` counts at a line's beginning only, `##[` anywhere. */
export function neutralLine(line: string): string {
  const rest = line.trimStart();
  const safe = rest.startsWith('::')
    ? `${line.slice(0, line.length - rest.length)}: :${rest.slice(2)}`
    : line;
  return safe.replaceAll('##[', '# #[');
}

/** A private key goes over many lines: they are shown together, when its end is there. */
const OPENS_KEY = /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----(?![\s\S]*-----END )/;

/** Takes the chunks of both streams. */
export type Output = Readonly<{
  take: (stream: StreamName, chunk: Buffer) => void;
  /** Shows what is left and gives what was kept. */
  end: () => Record<StreamName, Kept>;
}>;

/** `show` gets whole neutral lines without a line break. */
export function captureOutput(of: {
  redact: (text: string) => string;
  show: (line: string) => void;
}): Output {
  const streams = { stdout: opened(), stderr: opened() };
  let shown = 0;
  let timer: NodeJS.Timeout | null = null;

  const flush = (name: StreamName, whole: boolean): void => {
    const stream = streams[name];
    const until = whole ? stream.open.length : stream.open.lastIndexOf('\n') + 1;
    let text = stream.open.slice(0, until);
    if (!whole && stream.open.length > LONGEST_LINE * 8 && until === 0) text = stream.open;
    if (text === '' || (!whole && OPENS_KEY.test(text) && text.length < KEPT_CHARS)) return;
    stream.open = stream.open.slice(text.length);
    if (shown >= SHOWN_CHARS) return;
    shown += text.length;
    const lines = plain(of.redact(text)).replace(/\n$/, '').split('\n');
    for (const line of lines)
      for (let at = 0; at === 0 || at < line.length; at += LONGEST_LINE)
        of.show(neutralLine(line.slice(at, at + LONGEST_LINE)));
    if (shown >= SHOWN_CHARS) of.show('(the rest of the output is not shown)');
  };

  return {
    take(name, chunk) {
      const stream = streams[name];
      stream.bytes += chunk.length;
      const text = stream.decoder.write(chunk);
      stream.kept = (stream.kept + text).slice(-(KEPT_CHARS + MARGIN_CHARS));
      stream.open += text;
      if (stream.open.length >= KEPT_CHARS) flush(name, false);
      timer ??= setTimeout(() => {
        timer = null;
        for (const each of ['stdout', 'stderr'] as const) flush(each, false);
      }, SHOW_EVERY_MS);
    },
    end() {
      if (timer !== null) clearTimeout(timer);
      for (const name of ['stdout', 'stderr'] as const) {
        const stream = streams[name];
        const rest = stream.decoder.end();
        stream.kept += rest;
        stream.open += rest;
        flush(name, true);
      }
      return { stdout: keptOf(streams.stdout, of.redact), stderr: keptOf(streams.stderr, of.redact) };
    },
  };
}

type Open = { decoder: StringDecoder; bytes: number; kept: string; open: string };

function opened(): Open {
  return { decoder: new StringDecoder('utf8'), bytes: 0, kept: '', open: '' };
}

function keptOf(stream: Open, redact: (text: string) => string): Kept {
  const tail = plain(redact(stream.kept))
    .slice(-KEPT_CHARS)
    .replace(/^[\udc00-\udfff]/, '');
  return { bytes: stream.bytes, tail, sha256: createHash('sha256').update(tail).digest('hex') };
}

/** A kept stream as a receipt carries it. */
export function streamOf(kept: Kept): ReceiptDetail['stdout'] {
  const tail = kept.tail.slice(-TAIL_CHARS).replace(/^[\udc00-\udfff]/, '');
  return { bytes: kept.bytes, sha256: kept.sha256, tail };
}
