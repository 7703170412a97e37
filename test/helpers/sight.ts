/** What a person sees of a pull request, and what a run has cost: for acceptance tests. */
import type { Pull } from '../../sandbox/pull.ts';
import type { Repository } from '../../sandbox/repository.ts';
import type { TestStage } from './stage.ts';

/** The gate in a pull request's list of checks: its state, its line, and whether the merge button is free. */
export function seen(
  stage: TestStage,
  pull: Pull,
): { readonly state: string; readonly title: string; readonly mergeable: boolean } | null {
  const run = stage.gate(pull);
  if (run === null) return null;
  return {
    state: run.conclusion ?? run.status,
    title: run.title ?? '',
    mergeable: stage.gh.mergeable(pull, 'countersign', stage.app),
  };
}

/** What was spent on a repository so far: dispatches, workflow runs at GitHub, tickets, leases, sessions. */
export async function spent(stage: TestStage, repository: Repository): Promise<Record<string, number>> {
  const [row] = await stage.query<Record<string, string>>(`
    select (select count(*) from dispatch where repository_id = ${repository.id}) as dispatches,
           (select count(*) from ticket where repository_id = ${repository.id}) as tickets,
           (select count(*) from lease where repository_id = ${repository.id}) as leases,
           (select count(*) from session s join lease l on l.id = s.lease_id
             where l.repository_id = ${repository.id}) as sessions`);
  const counted = Object.entries(row ?? {}).map(([what, n]) => [what, Number(n)] as const);
  const jobs = stage.gh.actions.runs.filter((run) => run.repository === repository).length;
  return { ...Object.fromEntries(counted), jobs };
}

/** Nothing at all. */
export const NOTHING = { dispatches: 0, tickets: 0, leases: 0, sessions: 0, jobs: 0 };

/** The text of our one comment; empty while there is none, and a second one is an error. */
export function sticky(stage: TestStage, pull: Pull): string {
  const ours = stage.gh.comments(pull).filter((one) => one.viaApp === stage.app);
  if (ours.length > 1) throw new Error(`${ours.length} comments of ours`);
  return ours[0]?.body ?? '';
}

/** Waits until something holds, asking every 20 ms; fails with what `or` says. */
export async function eventually(holds: () => boolean | Promise<boolean>, or: () => string): Promise<void> {
  const end = Date.now() + 120_000;
  while (!(await holds())) {
    if (Date.now() > end) throw new Error(or());
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/**
 * A policy whose reviewer marks BUG like the usual one; a line `HOLD name` makes it write `name.begun`
 * into the folder `at` and keeps the review until `name.go` is there.
 */
export function holdingPolicy(at: string): string {
  const script = `const fs=require('node:fs');const t=fs.readFileSync(process.argv[1],'utf8').split('\\n');
const h=t.map(l=>/HOLD (\\w+)/.exec(l)).find(Boolean);const at=process.argv[2];
const say=()=>{const f=t.flatMap((l,i)=>/BUG/.test(l)?[{start_line:i+1,severity:'high',title:'Marked line',body:'The line is marked.'}]:[]);
console.log(JSON.stringify({version:1,count:f.length,findings:f}))};
if(!h)say();else{fs.writeFileSync(at+'/'+h[1]+'.begun','');const w=setInterval(()=>{if(fs.existsSync(at+'/'+h[1]+'.go')){clearInterval(w);say()}},20)}`;
  return `version: 1
reviewers:
  marker:
    uses: command
    run: [node, -e, ${JSON.stringify(script)}, '{path}', ${JSON.stringify(at)}]
    output: countersign
    paths: ['**']
    trusted: true
`;
}
