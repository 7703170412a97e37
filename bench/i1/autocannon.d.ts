/** The little we use of autocannon, which ships no types. */
declare module 'autocannon' {
  interface Request {
    readonly method: string;
    readonly headers: Readonly<Record<string, string>>;
    readonly body: string;
    readonly setupRequest?: (request: Request) => Request;
  }
  interface Result {
    readonly '2xx': number;
    readonly non2xx: number;
    readonly errors: number;
    readonly latency: { readonly p50: number; readonly p99: number };
  }
  export default function autocannon(options: {
    readonly url: string;
    readonly connections: number;
    readonly duration: number;
    readonly sampleInt: number;
    readonly requests: readonly Request[];
  }): Promise<Result>;
}
