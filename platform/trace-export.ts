import type { Db } from '../db/pool.js';
import { createOutbound } from '../http/outbound.js';
import type { Config } from '../runtime/config.js';
import type { Logger } from '../runtime/logger.js';
import { Collector, tracesUrl } from '../telemetry/traces/export/collector.js';
import { TraceExporter } from '../telemetry/traces/export/trace-exporter.js';
import type { SpanCounts } from '../telemetry/traces/span-recorder.js';

/** The operator names the collector, so it may be in any network. */
const ANYWHERE = ['0.0.0.0/0', '::/0'];

/** What exports traces in this process; undefined where no collector is configured. */
export function createTraceExport(options: {
  config: Config;
  db: Db;
  log: Logger;
  version: string;
  counts: SpanCounts;
}): Pick<TraceExporter, 'start' | 'stop'> | undefined {
  const { config, db, log, version, counts } = options;
  const url = tracesUrl(config);
  if (url === undefined) return undefined;
  const outbound = createOutbound({ allowCidrs: ANYWHERE, log });
  const collector = new Collector(url, config, version, (to, request) => outbound.request(to, request));
  const sampleRatio = config.FLEET_TRACE_SAMPLE_RATIO;
  const exporter = new TraceExporter({ db, log, collector, sampleRatio, counts, clocks: config.FLEET_CLOCKS });
  return {
    start: () => exporter.start(),
    stop: async () => {
      await exporter.stop();
      await outbound.close();
    },
  };
}
