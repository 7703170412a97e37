import { createHmac, randomUUID } from 'node:crypto';
import { holds } from './http/permit.ts';
import type { App, Delivery, Installation, Json } from './model.ts';
import { checkWebhook } from './openapi.ts';
import { userJson } from './render/accounts.ts';
import { repositoryJson } from './render/repositories.ts';
import { type Emission, nodeId, type World } from './world.ts';

const TIMEOUT = 10_000;
// facts/github.md §11: a payload over 25 MB makes no event at all.
const MAX_PAYLOAD = 25 * 1024 * 1024;

/** The permission without which an app does not get an event (facts/github.md §10). */
const EVENT_PERMISSION: Readonly<Record<string, string>> = {
  check_run: 'checks',
  check_suite: 'checks',
  issue_comment: 'issues',
  merge_group: 'merge_queues',
  pull_request: 'pull_requests',
  pull_request_review: 'pull_requests',
  pull_request_review_comment: 'pull_requests',
  push: 'contents',
  repository: 'metadata',
  workflow_dispatch: 'contents',
  workflow_job: 'actions',
  workflow_run: 'actions',
};
const AUTOMATIC = new Set(['check_run', 'check_suite', 'installation', 'installation_repositories']);

/** An event as the log keeps it, whether or not an app got it. */
export interface EventRecord {
  readonly event: string;
  readonly action: string | null;
  readonly payload: Json;
}

/** Which deliveries a disturbance touches; everything when undefined. */
export type DeliveryFilter = (delivery: { event: string; action: string | null; payload: Json }) => boolean;

interface Disturbance {
  readonly kind: 'drop' | 'double' | 'delay' | 'hold';
  readonly filter: DeliveryFilter;
  readonly milliseconds: number;
  readonly newGuid: boolean;
  left: number;
  readonly held: (() => void)[];
}

/** Sends webhooks as GitHub does: signed, once, without retry, in no promised order (facts/github.md §11). */
export class Webhooks {
  readonly world: World;
  /** Every event in the order it happened. */
  readonly events: EventRecord[] = [];
  readonly #disturbances: Disturbance[] = [];
  readonly #stopped = new AbortController();

  constructor(world: World) {
    this.world = world;
  }

  /** Makes the payload, checks its shape, and delivers it to every app that gets the event. */
  async emit(emission: Emission): Promise<void> {
    const { world } = this;
    const { event, action, repository, sender, onlyApp, onlyInstallation } = emission;
    const guid = randomUUID();
    const base: Json = {
      ...(action === null ? {} : { action }),
      ...(await emission.payload()),
      ...(repository === null ? {} : { repository: repositoryJson(world, repository) }),
      sender: userJson(world, sender),
    };
    this.events.push({ event, action, payload: base });
    world.violations.push(...checkWebhook(event, action, base));
    const receivers: Installation[] =
      onlyInstallation !== undefined
        ? [onlyInstallation]
        : repository === null
          ? []
          : world.installationsOn(repository).filter((installation) => {
              if (onlyApp !== undefined && installation.app !== onlyApp) return false;
              return gets(installation, event);
            });
    for (const installation of receivers) {
      const short = { id: installation.id, node_id: nodeId('I', installation.id) };
      const payload = { ...base, installation: base['installation'] ?? short };
      const body = JSON.stringify(payload);
      if (Buffer.byteLength(body) > MAX_PAYLOAD || installation.app.webhookUrl === null) continue;
      this.#dispatch(
        this.#record(installation.app, {
          guid,
          installationId: installation.id,
          repositoryId: repository?.id ?? null,
          event,
          action,
          body,
          redelivery: false,
        }),
        payload,
      );
    }
  }

  /** Sends a kept delivery again under the same GUID; knobs do not touch it. */
  redeliver(delivery: Delivery): void {
    const again = this.#record(delivery.app, { ...delivery, redelivery: true });
    this.world.background('redelivery', () => this.#send(again));
  }

  /** Loses the next deliveries (`times`, default all) that match: GitHub keeps them as failed. */
  drop(filter: DeliveryFilter = () => true, times = Number.POSITIVE_INFINITY): () => void {
    return this.#disturb('drop', filter, times, 0, false);
  }

  /** Sends matching deliveries twice: under one GUID, or with `newGuid` as when the hook is registered twice (case 2). */
  double(
    filter: DeliveryFilter = () => true,
    options: { times?: number; newGuid?: boolean } = {},
  ): () => void {
    return this.#disturb(
      'double',
      filter,
      options.times ?? Number.POSITIVE_INFINITY,
      0,
      options.newGuid ?? false,
    );
  }

  /** Sends matching deliveries late. */
  delay(
    milliseconds: number,
    filter: DeliveryFilter = () => true,
    times = Number.POSITIVE_INFINITY,
  ): () => void {
    return this.#disturb('delay', filter, times, milliseconds, false);
  }

  /** Keeps matching deliveries back until `release`, which sends them in order or reversed and ends the hold. */
  hold(filter: DeliveryFilter = () => true): { release(order?: 'kept' | 'reversed'): void; count(): number } {
    const disturbance: Disturbance = {
      kind: 'hold',
      filter,
      milliseconds: 0,
      newGuid: false,
      left: Number.POSITIVE_INFINITY,
      held: [],
    };
    this.#disturbances.push(disturbance);
    return {
      count: () => disturbance.held.length,
      release: (order = 'kept') => {
        this.#remove(disturbance);
        const sends = disturbance.held.splice(0);
        for (const send of order === 'kept' ? sends : sends.reverse()) send();
      },
    };
  }

  /** Ends every disturbance and cuts deliveries under way. */
  stop(): void {
    this.#disturbances.length = 0;
    this.#stopped.abort();
  }

  #disturb(
    kind: Disturbance['kind'],
    filter: DeliveryFilter,
    left: number,
    milliseconds: number,
    newGuid: boolean,
  ): () => void {
    const disturbance: Disturbance = { kind, filter, milliseconds, newGuid, left, held: [] };
    this.#disturbances.push(disturbance);
    return () => this.#remove(disturbance);
  }

  #remove(disturbance: Disturbance): void {
    const index = this.#disturbances.indexOf(disturbance);
    if (index >= 0) this.#disturbances.splice(index, 1);
  }

  #record(
    app: App,
    what: Pick<
      Delivery,
      'guid' | 'installationId' | 'repositoryId' | 'event' | 'action' | 'body' | 'redelivery'
    >,
  ): Delivery {
    const delivery: Delivery = {
      id: this.world.id('delivery'),
      guid: what.guid,
      app,
      installationId: what.installationId,
      repositoryId: what.repositoryId,
      event: what.event,
      action: what.action,
      body: what.body,
      redelivery: what.redelivery,
      deliveredAt: this.world.now().toISOString(),
      requestHeaders: {},
      responseHeaders: null,
      responseBody: null,
      duration: 0,
      status: 'pending',
      statusCode: 0,
    };
    this.world.deliveries.push(delivery);
    return delivery;
  }

  #dispatch(delivery: Delivery, payload: Json): void {
    const { world } = this;
    const { event, action } = delivery;
    const disturbance = this.#disturbances.find(
      (one) => one.left > 0 && one.filter({ event, action, payload }),
    );
    if (disturbance !== undefined) disturbance.left--;
    const send = (one = delivery) => world.background('delivery', () => this.#send(one));
    switch (disturbance?.kind) {
      case 'drop':
        delivery.status = 'failed to connect to host';
        delivery.statusCode = 502;
        return;
      case 'hold':
        disturbance.held.push(send);
        return;
      case 'delay':
        world.background('delayed delivery', async () => {
          await new Promise((resolve) => setTimeout(resolve, disturbance.milliseconds));
          await this.#send(delivery);
        });
        return;
      case 'double': {
        send();
        const guid = disturbance.newGuid ? randomUUID() : delivery.guid;
        send(this.#record(delivery.app, { ...delivery, guid }));
        return;
      }
      default:
        send();
    }
  }

  async #send(delivery: Delivery): Promise<void> {
    const { app, body } = delivery;
    if (app.webhookUrl === null) return;
    delivery.requestHeaders = {
      'content-type': 'application/json',
      accept: '*/*',
      'user-agent': 'GitHub-Hookshot/5a4d0ba',
      'x-github-delivery': delivery.guid,
      'x-github-event': delivery.event,
      'x-github-hook-id': String(app.hookId),
      'x-github-hook-installation-target-id': String(app.id),
      'x-github-hook-installation-target-type': 'integration',
      'x-hub-signature-256': `sha256=${createHmac('sha256', app.webhookSecret).update(body).digest('hex')}`,
    };
    const started = performance.now();
    const timeout = AbortSignal.timeout(TIMEOUT);
    try {
      const response = await fetch(app.webhookUrl, {
        method: 'POST',
        headers: delivery.requestHeaders,
        body,
        redirect: 'manual',
        signal: AbortSignal.any([timeout, this.#stopped.signal]),
      });
      delivery.responseBody = await response.text();
      delivery.responseHeaders = Object.fromEntries(response.headers);
      delivery.statusCode = response.status;
      delivery.status = response.ok ? 'OK' : `Invalid HTTP Response: ${response.status}`;
    } catch {
      // facts/github.md §11: no 2XX within 10 s is a failure, and nobody tries again.
      delivery.status = timeout.aborted ? 'timed out' : 'failed to connect to host';
      delivery.statusCode = timeout.aborted ? 504 : 502;
    }
    delivery.duration = Math.round((performance.now() - started) / 10) / 100;
  }
}

function gets(installation: Installation, event: string): boolean {
  if (installation.suspendedAt !== null) return false;
  if (!AUTOMATIC.has(event) && !installation.events.includes(event)) return false;
  const permission = EVENT_PERMISSION[event];
  return permission === undefined || holds(installation.permissions, permission, 'read');
}
