/** The clock of a simulated day: events in order of their moment, and product time that is that moment exactly. */
import pg from 'pg';

/** What happens at a moment. */
export type Happening = () => Promise<void> | void;

interface Event {
  readonly atMs: number;
  readonly n: number;
  readonly happen: Happening;
}

/** When the day begins, for everybody: product time is this and what has passed. */
export const EPOCH_MS = Date.UTC(2026, 10, 30);

/** A clock that stands still while something happens, and then jumps to what is next. */
export class DayClock {
  readonly #heap: Event[] = [];
  readonly #client: pg.Client;
  #n = 0;
  #told = -1;
  /** Milliseconds since the day began. */
  nowMs = 0;

  private constructor(client: pg.Client) {
    this.#client = client;
  }

  /** Takes over `cs_now()` of a throw-away database: from here on it is this clock's moment, to the millisecond. */
  static async start(url: string): Promise<DayClock> {
    const client = new pg.Client({ connectionString: url, application_name: 'day clock' });
    await client.connect();
    await client.query(`
      create unlogged table day_clock (moment timestamptz not null) with (fillfactor = 10);
      insert into day_clock values (to_timestamp(${EPOCH_MS} / 1000.0));
      grant select on day_clock to public;
      create or replace function cs_now() returns timestamptz language sql stable parallel safe as
        'select moment from public.day_clock'`);
    return new DayClock(client);
  }

  /** Something that happens `afterMs` from now. */
  after(afterMs: number, happen: Happening): void {
    this.at(this.nowMs + Math.max(0, afterMs), happen);
  }

  /** Something that happens at a moment; of two at one moment, the first told happens first. */
  at(atMs: number, happen: Happening): void {
    const heap = this.#heap;
    heap.push({ atMs: Math.max(Math.round(atMs), this.nowMs), n: this.#n++, happen });
    for (let i = heap.length - 1; i > 0; ) {
      const up = (i - 1) >> 1;
      if (before(heap[up] as Event, heap[i] as Event)) break;
      [heap[up], heap[i]] = [heap[i] as Event, heap[up] as Event];
      i = up;
    }
  }

  /** Goes to the next event; undefined when there is none. */
  next(): Happening | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (first === undefined || last === undefined) return undefined;
    if (heap.length > 0) {
      heap[0] = last;
      for (let i = 0; ; ) {
        let least = i;
        for (const child of [2 * i + 1, 2 * i + 2])
          if (child < heap.length && before(heap[child] as Event, heap[least] as Event)) least = child;
        if (least === i) break;
        [heap[least], heap[i]] = [heap[i] as Event, heap[least] as Event];
        i = least;
      }
    }
    this.nowMs = first.atMs;
    return first.happen;
  }

  /** Makes product time this clock's; called before anything that asks the database. */
  async tell(): Promise<void> {
    if (this.#told === this.nowMs) return;
    this.#told = this.nowMs;
    await this.#client.query({
      name: 'tell',
      text: 'update day_clock set moment = to_timestamp($1::float8 / 1000.0)',
      values: [EPOCH_MS + this.nowMs],
    });
  }

  /** The owner's connection, for what the application may not do. */
  get owner(): pg.Client {
    return this.#client;
  }

  /** Gives the connection back. */
  async close(): Promise<void> {
    await this.#client.end();
  }
}

function before(one: Event, other: Event): boolean {
  return one.atMs < other.atMs || (one.atMs === other.atMs && one.n < other.n);
}
