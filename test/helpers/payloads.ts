/** GitHub's own example payloads, as installed apps get them. */
import published from '@octokit/webhooks-examples';

interface Payload {
  readonly action?: string;
  readonly [key: string]: unknown;
}
// the package's types describe a namespace; at run time its default export is the list
const list = published as unknown as readonly {
  readonly name: string;
  readonly examples: readonly Payload[];
}[];

/** The first example of an event (and action), with an installation and with `changes` laid over its top level. */
export function payload(
  name: string,
  action?: string,
  changes: Readonly<Record<string, unknown>> = {},
): Payload {
  const found = list
    .find((event) => event.name === name)
    ?.examples.find((one) => action === undefined || one.action === action);
  if (found === undefined) throw new Error(`GitHub publishes no example of ${name}.${action ?? ''}`);
  return structuredClone({ installation: { id: 4_900_000_002 }, ...found, ...changes });
}
