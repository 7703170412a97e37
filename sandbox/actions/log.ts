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
    const command = /^::([a-z-]+)(?: .*?)?::(.*)$/s.exec(text);
    if (this.#stopToken !== null) {
      if (text === `::${this.#stopToken}::`) this.#stopToken = null;
      this.#write(text);
      return;
    }
    const [, name = '', value = ''] = command ?? [];
    if (name === 'stop-commands') this.#stopToken = value;
    else if (name === 'add-mask') {
      for (const part of decodeCommand(value).split('\n')) if (part.trim() !== '') this.#masks.add(part);
      return;
    } else if (name === 'error' || name === 'warning' || name === 'notice') {
      if (++this.#counts[name] <= MAX_ANNOTATIONS)
        this.#job.annotations.push({
          level: name,
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

function decodeCommand(value: string): string {
  return value.replaceAll('%0D', '\r').replaceAll('%0A', '\n').replaceAll('%25', '%');
}
