/**
 * The transcript scan (REV-7): what a session of a command-line agent did counts, not what it read or
 * said. Who controls the text: a program that read an attacker's file. Every line is looked at once.
 */
import { readCodex } from './transcript/codex.ts';
import { readClaudeCode, readGrok } from './transcript/messages.ts';
import { readOpencode } from './transcript/opencode.ts';
import { type EventReader, type LogEvent, objectOf, type Step, type Usage } from './transcript/step.ts';

/** The command-line agents (REV-1, REV-11). */
export const AGENTS = ['claude-code', 'codex', 'grok', 'opencode'] as const;
/** A command-line agent. */
export type AgentKind = (typeof AGENTS)[number];

/** Whether a reviewer of this kind is a command-line agent. */
export function isAgent(uses: string): uses is AgentKind {
  return (AGENTS as readonly string[]).includes(uses);
}

const readers: Readonly<Record<AgentKind, EventReader>> = {
  'claude-code': readClaudeCode,
  codex: readCodex,
  grok: readGrok,
  opencode: readOpencode,
};

/** What a log says of its session, worst first: one that used a tool did so whatever else is wrong with it. */
export type Transcript =
  | Readonly<{ kind: 'rule_break'; line: number; entry: string }>
  /** The session cannot be held without tools (REV-11). */
  | Readonly<{ kind: 'unsafe'; line: number; why: string }>
  | Readonly<{ kind: 'failed'; status: number | null; code: string | null }>
  | Readonly<{ kind: 'empty' }>
  /** Not the structured log of this agent; `cutOff` where only its last line is not whole, or its end is missing. */
  | Readonly<{ kind: 'unstructured'; line: number; why: string; cutOff: boolean }>
  | Readonly<{ kind: 'answered'; text: string; finish: string; usage: Usage }>;

/** One line of a log with what it means; `event` is null for a line that is no JSON object. */
export type LogLine = Readonly<{
  line: number;
  text: string;
  event: LogEvent | null;
  steps: readonly Step[];
}>;

/** The lines of a log that are not empty, each read as one event of this agent. */
export function* linesOfLog(kind: AgentKind, log: string): Generator<LogLine> {
  let line = 0;
  for (let from = 0; from < log.length; ) {
    const newline = log.indexOf('\n', from);
    const to = newline === -1 ? log.length : newline;
    const text = log.slice(from, to).trim();
    line++;
    from = to + 1;
    if (text === '') continue;
    const event = parse(text);
    const steps = event === null ? [] : readers[kind](event);
    yield { line, text, event, steps };
  }
}

function parse(text: string): LogEvent | null {
  try {
    return objectOf(JSON.parse(text));
  } catch {
    return null;
  }
}

/** What was found in a log so far: the first of each. */
interface Found {
  broken: Extract<Transcript, { kind: 'rule_break' }> | null;
  unsafe: Extract<Transcript, { kind: 'unsafe' }> | null;
  wrong: Readonly<{ line: number; why: string; parsed: boolean }> | null;
  failed: Extract<Step, { kind: 'fail' }> | null;
  end: Extract<Step, { kind: 'end' }> | null;
  started: boolean;
  readonly said: string[];
}

/** Reads the whole log of a reviewer's session; a session may begin once, end once and say nothing after it. */
export function readTranscript(kind: AgentKind, log: string): Transcript {
  const found: Found = {
    broken: null,
    unsafe: null,
    wrong: null,
    failed: null,
    end: null,
    started: false,
    said: [],
  };
  let last = 0;
  for (const { line, event, steps } of linesOfLog(kind, log)) {
    if (event === null) found.wrong ??= { line, why: 'a line that is no JSON object', parsed: false };
    else if (last === 0 && kind === 'codex' && event['type'] !== 'thread.started')
      found.wrong ??= { line, why: 'it does not begin with thread.started', parsed: true };
    last = line;
    for (const step of steps) take(found, step, line);
  }
  if (found.broken !== null) return found.broken;
  if (found.unsafe !== null) return found.unsafe;
  if (last === 0) return { kind: 'empty' };
  const { wrong, failed, end } = found;
  if (failed !== null && (failed.sure || end === null))
    return { kind: 'failed', status: failed.status, code: failed.code };
  if (wrong !== null) {
    const cutOff = !wrong.parsed && wrong.line === last && end === null && !log.endsWith('\n');
    return { kind: 'unstructured', line: wrong.line, why: wrong.why, cutOff };
  }
  if (end === null) return { kind: 'unstructured', line: last, why: 'it has no end', cutOff: true };
  // OpenCode tells one answer in parts; where messages are whole, two of them are no document
  const text = end.text ?? found.said.join(kind === 'opencode' ? '' : '\n');
  return { kind: 'answered', text, finish: end.finish, usage: end.usage };
}

function take(found: Found, step: Step, line: number): void {
  const note = (why: string): void => {
    found.wrong ??= { line, why, parsed: true };
  };
  switch (step.kind) {
    case 'act':
      found.broken ??= { kind: 'rule_break', line, entry: step.entry };
      break;
    case 'fail':
      // what was told before it may say more than the last word does
      found.failed =
        found.failed?.sure === true
          ? found.failed
          : {
              ...step,
              status: step.status ?? found.failed?.status ?? null,
              code: step.code ?? found.failed?.code ?? null,
            };
      break;
    case 'unknown':
      note(step.why);
      break;
    case 'start':
      if (step.unsafe !== null) found.unsafe ??= { kind: 'unsafe', line, why: step.unsafe };
      if (found.started) note('a second beginning');
      found.started = true;
      break;
    case 'say':
    case 'end':
      if (!found.started) note('it does not say how it began');
      if (found.end !== null) note('it goes on after its end');
      if (step.kind === 'say') found.said.push(step.text);
      else found.end = step;
      break;
    case 'skip':
      break;
  }
}
