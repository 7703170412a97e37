/** /healthz, /readyz and /metrics (OPS-7). */
import { Hono } from 'hono';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';

import type { Figures } from '../flow/read-figures.ts';
import { registerFigures } from './figures.ts';

/** What the server counts. */
export interface Metrics {
  readonly registry: Registry;
  /** Counts one answer of the webhook edge. */
  delivery(status: number): void;
  /** Counts one job and its time. */
  job(task: string, outcome: string, ms: number): void;
}

/** What is asked when a metric is read. */
export interface Gauges {
  /** Jobs that wait or run. */
  readonly jobs: () => Promise<number>;
  /** Deliveries that were not worked yet. */
  readonly deliveries: () => Promise<number>;
  /** Check runs that GitHub did not take so often that they are stuck (PUB-2). */
  readonly stuckChecks: () => Promise<number>;
  /** The queue, its runners, providers and spending. */
  readonly figures: () => Promise<Figures>;
}

/** Makes the counters of one server. */
export function createMetrics(gauges: Gauges): Metrics {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  const deliveries = new Counter({
    name: 'countersign_deliveries_total',
    help: 'Answers of the webhook edge by status',
    labelNames: ['status'],
    registers,
  });
  const jobs = new Histogram({
    name: 'countersign_job_seconds',
    help: 'Time of jobs by task and outcome',
    labelNames: ['task', 'outcome'],
    buckets: [0.005, 0.02, 0.1, 0.5, 2, 10, 60],
    registers,
  });
  for (const [name, help, read] of [
    ['countersign_jobs', 'Jobs that wait or run', gauges.jobs],
    ['countersign_deliveries_unfinished', 'Deliveries that were not worked yet', gauges.deliveries],
    [
      'countersign_checks_stuck',
      'Check runs that could not be written 25 times in a row',
      gauges.stuckChecks,
    ],
  ] as const) {
    new Gauge({
      name,
      help,
      registers,
      async collect() {
        this.set(await read().catch(() => Number.NaN));
      },
    });
  }
  registerFigures(registry, gauges.figures);
  return {
    registry,
    delivery: (status) => deliveries.inc({ status: String(status) }),
    job: (task, outcome, ms) => jobs.observe({ task, outcome }, ms / 1000),
  };
}

/** The routes. `ready` names what is not, and says nothing of why: the log does. */
export function healthRoutes(metrics: Metrics, ready: () => Promise<readonly string[]>): Hono {
  const app = new Hono();
  app.get('/healthz', (c) => c.json({ ok: true }));
  app.get('/readyz', async (c) => {
    const missing = await ready();
    return c.json({ ok: missing.length === 0, missing }, missing.length === 0 ? 200 : 503);
  });
  app.get('/metrics', async (c) => {
    c.header('content-type', metrics.registry.contentType);
    return c.body(await metrics.registry.metrics());
  });
  return app;
}
