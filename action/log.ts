/** What the Action prints (ACT-4, ACT-6): text of a pull request can never become a workflow command. */

/** Where lines go: one at a time, or a group of them at once. */
export type Log = Readonly<{
  /** A progress line; control characters and workflow commands in it are neutralised. */
  line: (text: string) => void;
  /** A failure, as the annotation GitHub shows on the run. */
  error: (text: string) => void;
  /** A ticket's lines, folded under a title; written at once, so that parallel tickets do not mix. */
  group: (title: string, lines: readonly string[]) => void;
  /** A failure that does not end the job, as an annotation. */
  warning: (text: string) => void;
  /** An annotation with a title; both are ours, or neutral already. */
  notice: (title: string, text: string) => void;
  /** Begins a group whose lines come one by one, until `close`. */
  open: (title: string) => void;
  close: () => void;
  /** A line that is neutral already. */
  raw: (line: string) => void;
  /** Hides a value in everything that is printed after it. */
  mask: (value: string) => void;
}>;

/** One printed line of foreign text: no control characters, no `::command::`, no `##[command]`. */
export function printable(text: string): string {
  return text
    .replace(/[\r\n\u2028\u2029\u0085]+/g, ' ⏎ ')
    .replace(/\p{Cc}|\p{Cf}/gu, '\ufffd')
    .replaceAll('::', ': :')
    .replaceAll('##[', '# #[');
}

/** The escaping that the runner undoes in the data of a workflow command. */
function commandData(text: string): string {
  return text.replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A');
}

/** A log that writes to a stream; every write ends in a line break. */
export function createLog(write: (text: string) => void): Log {
  return {
    line: (text) => write(`${printable(text)}\n`),
    error: (text) => write(`::error::${commandData(printable(text))}\n`),
    group: (title, lines) =>
      write(`::group::${printable(title)}\n${lines.map((l) => `${printable(l)}\n`).join('')}::endgroup::\n`),
    warning: (text) => write(`::warning::${commandData(printable(text))}\n`),
    notice: (title, text) => write(`::notice title=${commandData(printable(title))}::${commandData(text)}\n`),
    open: (title) => write(`::group::${printable(title)}\n`),
    close: () => write('::endgroup::\n'),
    raw: (line) => write(`${line}\n`),
    mask: (value) => {
      // a mask command broken over two lines is not obeyed and prints the secret: case 82
      for (const line of value.split(/[\r\n]+/))
        if (line.trim().length >= 8) write(`::add-mask::${commandData(line)}\n`);
    },
  };
}
