/** `npm start`: the server from the environment. Imported by nobody. */
import { Fault } from './errors.ts';
import { serve } from './server/serve.ts';

serve().catch((error: unknown) => {
  // a Fault's message is ours and says what to do; of anything else the stack helps
  console.error(error instanceof Fault ? `${error.code}: ${error.message}` : error);
  process.exit(1);
});
