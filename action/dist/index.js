process.stdout.write(`Countersign runner: starting
`);var{start:t}=await import("./chunks/start-Q62OT5YU.js");process.exitCode=await t(process);
