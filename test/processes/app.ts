/** `app/main.ts` as a process that has loaded its modules and starts on the first line of input: what a restart costs is then only the start. */
import '../../app/server/serve.ts';
import { once } from 'node:events';

await once(process.stdin, 'data');
process.stdin.unref();
await import('../../app/main.ts');
