process.stdout.write(`Countersign runner: starting
`);var{start:t}=await import("./chunks/start-JNAXWQTT.js");process.exitCode=await t(process);
