process.stdout.write(`Countersign runner: starting
`);var{start:t}=await import("./chunks/start-7CJMYH6V.js");process.exitCode=await t(process);
