#!/usr/bin/env node
/**
 * `countersign <command>`. Exit codes: 0 done, 1 refused or failed, 2 cannot tell, 3 usage, where a
 * command's own help does not say otherwise. Commands print their answer on standard output and
 * everything else on standard error.
 */
import { Usage } from './cli/entry.ts';
import { commandHelp, helpText } from './cli/help.ts';
import { commands } from './cli/table.ts';
import { Fault, Refusal } from './errors.ts';

async function main(): Promise<number | null> {
  const [name, ...args] = process.argv.slice(2);
  if (name === 'help' || name === '--help' || name === '-h') return help(args[0]);
  const entry = name !== undefined && Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (entry === undefined) {
    if (name !== undefined) console.error(`there is no command ${name}`);
    console.error(helpText(commands));
    return 3;
  }
  if (args.includes('--help') || args.includes('-h')) return help(name);
  try {
    return await entry.run(args);
  } catch (error) {
    if (error instanceof Usage) {
      const ways = entry.usage.map((one) => `usage: countersign ${one}`);
      console.error([error.message, ...ways].join('\n'));
      return error.code;
    }
    const accepted =
      error instanceof Refusal && error.accepted !== undefined ? `; accepted: ${error.accepted}` : '';
    if (error instanceof Fault || error instanceof Refusal)
      console.error(`${error.code}: ${error.message}${accepted}`);
    else console.error((error as Error).message);
    return 1;
  }
}

function help(name: string | undefined): number {
  const entry = name !== undefined && Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (name !== undefined && entry === undefined) {
    console.error(`there is no command ${name}; there are ${Object.keys(commands).join(', ')}`);
    return 3;
  }
  console.log(entry === undefined ? helpText(commands) : commandHelp(entry));
  return 0;
}

main().then((code) => {
  if (code !== null) process.exit(code);
});
