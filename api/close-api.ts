import type { FastifyInstance } from 'fastify';

const IDLE_CHECK_MS = 100;
const GRACE_MIN_MS = 1_000;

/**
 * Ends streams and waiting calls, and closes the API once everything is answered.
 * @param draining the `draining` signal of the API
 * @param graceMs after it all connections are cut: a stalled reader would otherwise block the close for ever
 */
export async function closeApi(http: FastifyInstance, draining: AbortController, graceMs: number): Promise<void> {
  draining.abort();
  const cut = setTimeout(() => http.server.closeAllConnections(), Math.max(GRACE_MIN_MS, graceMs));
  // Fastify closes connections that are idle now; one that is answered later would stay for the time of a keep-alive.
  const idle = setInterval(() => http.server.closeIdleConnections(), IDLE_CHECK_MS);
  await http.close();
  clearTimeout(cut);
  clearInterval(idle);
}
