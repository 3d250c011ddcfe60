/** Hexadecimal digits that decide: the last seven bytes of a trace id, which W3C Trace Context wants to be random. */
const DIGITS = 14;

/**
 * Whether a trace is sampled. Its id decides, so all processes agree, also those of others that sample by the same rule (OpenTelemetry's
 * consistent probability sampling).
 * @param ratio the share of traces that are, 0 to 1
 */
export function isSampled(traceId: string, ratio: number): boolean {
  if (ratio >= 1) return true;
  const random = Number.parseInt(traceId.slice(-DIGITS), 16) / 16 ** DIGITS;
  return random >= 1 - ratio;
}
