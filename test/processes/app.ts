/** `app/main.ts` as a process that has loaded its modules and starts on the first line of input: what a restart costs is then only the start. */
import '../../app/server/serve.ts';
import { once } from 'node:events';

// a test that died takes its app with it
process.stdin.once('end', () => process.exit(1));
await once(process.stdin, 'data');
await import('../../app/main.ts');
