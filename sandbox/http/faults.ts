import type { OperationId } from '../operations.ts';

/** What a fault looks at. */
export interface FaultRequest {
  readonly operation: OperationId | 'git' | 'graphql';
  readonly method: string;
  readonly path: string;
  readonly body: unknown;
}

/** Something that goes wrong on purpose. Of several that match the first strikes; delays add up. */
export interface FaultOptions {
  /** Operation ids, 'git' for smart HTTP, 'graphql' for queries; default: all of REST. */
  readonly on?: OperationId | 'git' | 'graphql' | readonly (OperationId | 'git' | 'graphql')[];
  readonly match?: (request: FaultRequest) => boolean;
  /** How often; default: until removed. */
  readonly times?: number;
  /** 'before' answers instead of doing the work, 'after' does it and then answers so (a lost answer: case 36). */
  readonly when?: 'before' | 'after';
  /** The status to answer with; without it the answer is only late. */
  readonly status?: number;
  readonly message?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Milliseconds before anything happens. */
  readonly delay?: number;
  /** Cuts the connection instead of answering. */
  readonly hangUp?: boolean;
}

/** A fault that was set: how often it struck, and how to end it. */
export interface Fault {
  readonly options: FaultOptions;
  hits: number;
  remove(): void;
}

/** The faults in force. */
export class Faults {
  readonly #faults: Fault[] = [];

  /** Sets a fault. */
  add(options: FaultOptions): Fault {
    const fault: Fault = {
      options,
      hits: 0,
      remove: () => {
        const index = this.#faults.indexOf(fault);
        if (index >= 0) this.#faults.splice(index, 1);
      },
    };
    this.#faults.push(fault);
    return fault;
  }

  /** Removes all faults. */
  clear(): void {
    this.#faults.length = 0;
  }

  /** The fault that strikes a request, and the delays of all that only delay it; each is counted. */
  strike(request: FaultRequest): { fault: Fault | null; delay: number } {
    const matching = this.#faults.filter(({ options, hits }) => {
      if (options.times !== undefined && hits >= options.times) return false;
      const on = options.on === undefined ? null : [options.on].flat();
      if (
        on === null
          ? request.operation === 'git' || request.operation === 'graphql'
          : !on.includes(request.operation)
      )
        return false;
      return options.match === undefined || options.match(request);
    });
    const fault = matching.find((one) => !onlyDelays(one)) ?? null;
    const struck = matching.filter((one) => one === fault || onlyDelays(one));
    for (const one of struck) one.hits++;
    return { fault, delay: struck.reduce((sum, one) => sum + (one.options.delay ?? 0), 0) };
  }
}

function onlyDelays({ options }: Fault): boolean {
  return options.status === undefined && options.hangUp !== true;
}
