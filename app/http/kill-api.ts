/** The kill switch by the API (CTL-5), for programs that hold an operator token. */
import { createRoute, type OpenAPIHono, type z } from '@hono/zod-openapi';
import type { Context } from 'hono';
import { authenticateOperator } from '../flow/authenticate-operator.ts';
import { changeSetting } from '../flow/change-setting.ts';
import type { Deps } from '../flow/deps.ts';
import { readSettings } from '../flow/read-settings.ts';
import { killQuery, killRequest, killResponse, killStateResponse } from '../protocol/kill.ts';
import { errorResponse } from '../protocol/runner.ts';
import { bearer } from './runner-claim.ts';

const PATH = '/api/v1/kill-switch';
const json = <T extends z.ZodType>(schema: T) => ({ 'application/json': { schema } });
const answers = <T extends z.ZodType>(schema: T, description: string) => ({
  200: { description, content: json(schema) },
  default: { description: 'An error: its code is stable.', content: json(errorResponse) },
});
const security = [{ operator: [] }];

const stateRoute = createRoute({
  method: 'get',
  path: PATH,
  summary: 'Which kill switches hold for an installation, or for the whole app (CTL-5).',
  security,
  request: { query: killQuery },
  responses: answers(killStateResponse, 'Those that are on, by whom and why.'),
});
const throwRoute = createRoute({
  method: 'post',
  path: PATH,
  summary: 'Stops everything of an installation, or of the whole app, or lets it go on (CTL-5).',
  security,
  request: { body: { content: json(killRequest), required: true } },
  responses: answers(killResponse, 'It is so.'),
});

/** Adds the routes to the API and to its description. */
export function mountKill(app: OpenAPIHono, deps: Deps): void {
  const operatorOf = (c: Context, installation: string | null) =>
    authenticateOperator(deps, bearer(c), installation);

  app.openapi(stateRoute, async (c) => {
    const { installation } = c.req.valid('query');
    const id = idOf(installation);
    await operatorOf(c, id);
    const switches = (await readSettings(deps, id))
      .filter(({ key }) => key === 'kill')
      .map(({ installation, by, reason, at }) => ({ installation, by, reason, at: at.toISOString() }));
    return c.json({ installation, switches }, 200);
  });

  app.openapi(throwRoute, async (c) => {
    const { installation, on, reason } = c.req.valid('json');
    const id = idOf(installation);
    const by = await operatorOf(c, id);
    const outcome = await changeSetting(deps, {
      installation: id,
      key: 'kill',
      value: on ? 'on' : undefined,
      by,
      reason,
      via: 'api',
    });
    return c.json({ installation, on, ...outcome }, 200);
  });

  app.openAPIRegistry.registerComponent('securitySchemes', 'operator', {
    type: 'http',
    scheme: 'bearer',
    description: 'A token of `countersign operator add NAME`.',
  });
}

/** Null: the whole app. */
function idOf(installation: string): string | null {
  return installation === 'all' ? null : installation;
}
