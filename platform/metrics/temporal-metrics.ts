import { freePort } from '../../embedded/free-port.js';

const TIMEOUT_MS = 2_000;
/** The queues of a node carry its id, which is another one after each start. */
const NODE_ID = /mesh_[0-9a-f-]{36}/g;

/** The options with which the Temporal SDK serves its metrics on a free port of this machine; it has no other way to hand them out. */
export async function temporalMetricsOptions() {
  const bindAddress = `127.0.0.1:${await freePort()}`;
  const prometheus = { bindAddress, countersTotalSuffix: true, unitSuffix: true, useSecondsForDurations: true };
  return { prometheus, attachServiceName: false };
}

/**
 * Reads the metrics of the Temporal SDK in this process, in the text format of Prometheus.
 * @param address from `temporalMetricsOptions`
 * @throws Error when it does not answer in two seconds
 */
export async function readTemporalMetrics(address: string): Promise<string> {
  const response = await fetch(`http://${address}/metrics`, { signal: AbortSignal.timeout(TIMEOUT_MS) });
  if (!response.ok) throw new Error(`the metrics of Temporal answered ${response.status}`);
  return (await response.text()).replace(NODE_ID, 'node');
}
