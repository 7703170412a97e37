/** `npm run bench -- [ID…] [--json]`: runs benches one after another and prints their lines. */
import { readdirSync } from 'node:fs';
import type { Bench } from './bench.ts';

const args = process.argv.slice(2);
const json = args.includes('--json');
const wanted = args.filter((arg) => !arg.startsWith('--')).map((id) => id.toUpperCase());

const here = new URL('.', import.meta.url);
const benches: Bench[] = [];
for (const file of readdirSync(here)
  .filter((name) => name.endsWith('.bench.ts'))
  .sort()) {
  const module = (await import(new URL(file, here).href)) as { bench: Bench };
  benches.push(module.bench);
}

const unknown = wanted.filter((id) => !benches.some((bench) => bench.id === id));
if (unknown.length > 0) {
  console.error(
    `unknown bench ${unknown.join(', ')}; there are ${benches.map((bench) => bench.id).join(', ')}`,
  );
  process.exit(3);
}

let failed = false;
for (const bench of benches.filter(({ id }) => wanted.length === 0 || wanted.includes(id))) {
  try {
    const result = await bench.run();
    const { id, unit, must, aim } = bench;
    const line = {
      id,
      value: result.value,
      unit,
      peer: result.peer,
      ratio: result.ratio,
      must,
      aim,
      ok: result.ok,
      reps: result.reps,
      versions: result.versions,
      figures: result.figures,
    };
    if (json) console.log(JSON.stringify(line));
    else {
      const ratio = result.ratio === undefined ? '' : `  ratio ${result.ratio.toFixed(2)}`;
      console.log(`${id}  ${bench.what}`);
      console.log(
        `    ${result.value.toFixed(2)} ${unit}  peer ${result.peer}${ratio}  must ${must}  aim ${aim}  ${result.ok ? 'ok' : 'BELOW must'}  (${result.reps} repetitions)`,
      );
      for (const [name, value] of Object.entries(result.figures ?? {})) console.log(`    ${name}: ${value}`);
    }
  } catch (error) {
    failed = true;
    console.error(`${bench.id} did not run: ${error instanceof Error ? error.message : String(error)}`);
  }
}
process.exit(failed ? 1 : 0);
