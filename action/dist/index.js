process.stdout.write(`Countersign runner: starting
`);var{start:t}=await import("./chunks/start-WCJP4HI6.js");process.exitCode=await t(process);
