process.stdout.write(`Countersign runner: starting
`);var{start:t}=await import("./chunks/start-EU6IVSTO.js");process.exitCode=await t(process);
