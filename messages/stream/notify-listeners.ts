import { errorMessage } from '../../runtime/errors.js';
import type { Logger } from '../../runtime/logger.js';
import type { PlacedEvent } from './bus.js';

/** Hands an event to a listener. What a listener throws is logged: it never reaches the publisher or other listeners. */
export function deliver(
  listener: (placed: PlacedEvent) => void,
  placed: PlacedEvent,
  log: Pick<Logger, 'error'>,
): void {
  try {
    listener(placed);
  } catch (error) {
    log.error({ err: errorMessage(error) }, 'a listener of the chunk bus failed');
  }
}
