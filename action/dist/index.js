process.stdout.write(`Countersign runner: starting
`);var{start:t}=await import("./chunks/start-AY7PZW5S.js");process.exitCode=await t(process);
