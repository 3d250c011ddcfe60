import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { HealthQuery, healthStatus } from '../../contracts/api/health.js';
import { OPERATIONS } from '../../contracts/api/operations.js';
import type { DbCounts } from '../../db/pool.js';
import type { Config } from '../../runtime/config.js';
import { errorMessage } from '../../runtime/errors.js';
import type { Logger } from '../../runtime/logger.js';
import { settledWithin } from '../../runtime/promises/settled-within.js';
import { CollectedMetrics } from './collected.js';
import { METRICS } from './metric-table.js';
import { definePlatformMetrics, type MetricSources } from './platform-metrics.js';
import { readTemporalMetrics } from './temporal-metrics.js';

/** Prometheus waits ten seconds by default. */
const COLLECT_MS = 8_000;
const PATH = '/metrics';
/** Nobody needs more, and the port takes no token. */
const CONNECTIONS_MAX = 64;

export interface MetricsServerOptions {
  config: Pick<Config, 'FLEET_HOST' | 'FLEET_METRICS_PORT'>;
  log: Logger;
  sources: MetricSources;
  /** Where the Temporal SDK of this process serves its metrics. */
  temporalAddress: string;
}

/**
 * `GET /metrics` for Prometheus, and `GET /health` of processes that have no other port. A port of its own: without a token, and with nothing
 * that belongs to a tenant.
 */
export class MetricsServer {
  readonly #options: MetricsServerOptions;
  readonly #server = createServer((request, response) => void this.#answer(request, response));
  readonly #metrics: CollectedMetrics<keyof typeof METRICS>;
  #scrape: Promise<string | null> | null = null;
  /** As they were before the scrape, which asks the database itself. */
  #database: DbCounts;

  constructor(options: MetricsServerOptions) {
    this.#options = options;
    this.#database = options.sources.database();
    this.#server.maxConnections = CONNECTIONS_MAX;
    this.#metrics = new CollectedMetrics(options.log, METRICS);
    definePlatformMetrics(this.#metrics, options.sources, () => this.#database);
  }

  /**
   * Listens. A port that is taken is no reason not to start: the log says so, and the process answers everything else.
   * @returns the address; null when it cannot be had
   */
  async listen(): Promise<string | null> {
    const { config, log } = this.#options;
    const { FLEET_HOST: host, FLEET_METRICS_PORT: port } = config;
    try {
      this.#server.listen(port, host);
      await once(this.#server, 'listening');
      this.#server.on('error', (error) => log.warn({ err: errorMessage(error) }, 'the server of metrics failed'));
    } catch (error) {
      log.error({ err: errorMessage(error), port }, 'metrics are not served');
      return null;
    }
    const { port: bound } = this.#server.address() as AddressInfo;
    return `http://${host.includes(':') ? `[${host}]` : host}:${bound}${PATH}`;
  }

  async stop(): Promise<void> {
    if (!this.#server.listening) return;
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [path, query] = (request.url ?? '').split('?', 2);
    const isKnown = path === PATH || path === OPERATIONS.health.path;
    if (!isKnown || request.method !== 'GET') {
      response.writeHead(isKnown ? 405 : 404, { 'content-length': 0 }).end();
      return;
    }
    if (path === OPERATIONS.health.path) return this.#answerHealth(response, query);
    // However many ask at once, the values are read once for them all.
    this.#scrape ??= this.#read().finally(() => {
      this.#scrape = null;
    });
    const text = await settledWithin(this.#scrape, COLLECT_MS);
    if (text === null) response.writeHead(503, { 'content-length': 0 }).end();
    else response.writeHead(200, { 'content-type': this.#metrics.registry.contentType }).end(text);
  }

  async #answerHealth(response: ServerResponse, query: string | undefined): Promise<void> {
    const health = await this.#options.sources.health();
    const status = healthStatus(health, HealthQuery.parse(Object.fromEntries(new URLSearchParams(query))));
    response.writeHead(status, { 'content-type': 'application/json; charset=utf-8' }).end(JSON.stringify(health));
  }

  /** Never rejects; null when nothing can be read. */
  async #read(): Promise<string | null> {
    this.#database = this.#options.sources.database();
    const [own, temporal] = await Promise.all([
      this.#metrics.read('all', () => this.#metrics.registry.metrics(), null),
      this.#metrics.read('temporal', () => readTemporalMetrics(this.#options.temporalAddress), ''),
    ]);
    return own === null ? null : own + temporal;
  }
}
