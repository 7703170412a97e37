import type { Job } from './run.ts';

// facts/github.md §17: the first 10 of each type a step; messages are cut at 4,096 characters.
const MAX_ANNOTATIONS = 10;
const MAX_MESSAGE = 4096;

/** Takes what a step prints: workflow commands are obeyed, secrets and masked values leave as ***. */
export class StepLog {
  readonly #job: Job;
  readonly #masks: Set<string>;
  readonly #counts = { error: 0, warning: 0, notice: 0 };
  #stopToken: string | null = null;

  constructor(job: Job, masks: Set<string>) {
    this.#job = job;
    this.#masks = masks;
  }

  /** One line of stdout or stderr. */
  line(text: string): void {
    const command = /^::([a-z-]+)(?: (.*?))?::(.*)$/s.exec(text);
    if (this.#stopToken !== null) {
      if (text === `::${this.#stopToken}::`) this.#stopToken = null;
      this.#write(text);
      return;
    }
    const [, name = '', given = '', value = ''] = command ?? [];
    if (name === 'stop-commands') this.#stopToken = value;
    else if (name === 'add-mask') {
      for (const part of decodeCommand(value).split('\n')) if (part.trim() !== '') this.#masks.add(part);
      return;
    } else if (name === 'error' || name === 'warning' || name === 'notice') {
      if (++this.#counts[name] <= MAX_ANNOTATIONS)
        this.#job.annotations.push({
          level: name,
          ...placeOf(given),
          message: this.#masked(decodeCommand(value)).slice(0, MAX_MESSAGE),
        });
      this.#write(`##[${name}]${decodeCommand(value)}`);
      return;
    }
    this.#write(text);
  }

  #write(text: string): void {
    this.#job.log += `${this.#masked(text)}\n`;
  }

  #masked(text: string): string {
    let out = text;
    for (const mask of this.#masks) out = out.replaceAll(mask, '***');
    return out;
  }
}

/** Title, file and line of a printed command: `title=…,file=…,line=…`; without a file GitHub shows it at `.github` (RUN). */
function placeOf(given: string): { title: string | null; path: string; line: number } {
  const properties = new Map(
    given.split(',').map((one) => {
      const at = one.indexOf('=');
      return [one.slice(0, at).trim(), decodeProperty(one.slice(at + 1))] as const;
    }),
  );
  return {
    title: properties.get('title') ?? null,
    path: properties.get('file') ?? '.github',
    line: Number(properties.get('line') ?? 1),
  };
}

function decodeProperty(value: string): string {
  return decodeCommand(value.replaceAll('%3A', ':').replaceAll('%2C', ','));
}

function decodeCommand(value: string): string {
  return value.replaceAll('%0D', '\r').replaceAll('%0A', '\n').replaceAll('%25', '%');
}
