/** The rules that a day must keep, looked at while it lasts and at its end. */
import { dayPolicy } from './fill.ts';
import { DAY_MS } from './trace.ts';
import { hours, type World } from './world.ts';

const CHECK_MS = 10 * 60_000;

/** Nothing is over its cap, leased twice or holding a slot for nobody. */
export async function check(world: World, progress: (line: string) => void): Promise<void> {
  await world.clock.tell();
  const { rows } = await world.clock.owner.query<{ what: string }>(
    `select 'run ' || l.run_id as what from lease l where l.state = 'live' group by l.run_id having count(*) > $1
     union all select 'provider ' || l.installation_id || ' ' || l.provider from lease l where l.state = 'live' and l.provider <> 'command'
       group by l.installation_id, l.provider having count(*) > (select count(*) from slot s where s.installation_id = l.installation_id and s.provider = l.provider)
     union all select 'ticket ' || ticket_id from lease where state = 'live' group by ticket_id having count(*) > 1
     union all select 'cell ' || run_id from ticket where state in ('pending', 'leased') group by run_id, block_id, path having count(*) > 1
     union all select 'unleased ' || t.id from ticket t where t.state = 'leased' and not exists (select from lease l where l.id = t.lease_id and l.state = 'live')
     union all select 'slot ' || s.session_id from slot s where s.session_id is not null and not exists (select from lease l where l.session_id = s.session_id and l.state = 'live')
       and not exists (select from session x join lease l on l.id = x.lease_id where x.id = s.session_id and l.state = 'live')`,
    [dayPolicy.review.parallel],
  );
  for (const { what } of rows) {
    world.tally.violations.push(what);
    progress(`violation at ${hours(world.clock.nowMs)}: ${what}`);
  }
  if (world.open > 0) world.clock.after(CHECK_MS, () => check(world, progress));
  else world.clock.after(CHECK_MS, () => (world.clock.nowMs < DAY_MS ? check(world, progress) : undefined));
}

/** At the end: every ticket ended, once by its rows, and what was told is what is stored. */
export async function account(world: World): Promise<void> {
  const { rows } = await world.clock.owner.query<{ what: string }>(
    `select 'not over: ' || id || ' ' || state as what from ticket where state <> 'ended'
     union all select 'ended without a row: ' || id from ticket where state = 'ended' and seq is null
     union all select 'lease left: ' || id from lease where state = 'live'
     union all select 'slot left: ' || session_id from slot where session_id is not null`,
  );
  for (const { what } of rows) world.tally.violations.push(what);
  for (const [id, one] of world.tally.tickets)
    if (one.endedMs === null) world.tally.violations.push(`nobody ended ${id}`);
}
