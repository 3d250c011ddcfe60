import { setTimeout as delay } from 'node:timers/promises';
import type { Connection } from '@temporalio/client';
import { SEARCH_ATTRIBUTES } from '../../contracts/workflows.js';
import { errorMessage } from '../../runtime/errors.js';
import type { Logger } from '../../runtime/logger.js';
import { isUnavailable } from './temporal-availability.js';

const NAMES = Object.values(SEARCH_ATTRIBUTES).map(({ name }) => name);
/** The type of an attribute in the server's interface. */
const KEYWORD = 2;
/** The time for a cluster to accept new search attributes; its services reload them every two seconds. */
const KNOWN_WITHIN_MS = 10_000;
const POLL_MS = 100;

/** Resolves when the cluster accepts the new search attributes: it refuses workflows that start with them earlier. */
async function untilKnown(connection: Connection, namespace: string): Promise<void> {
  const query = NAMES.map((name) => `${name} = 'none'`).join(' AND ');
  const giveUpAt = performance.now() + KNOWN_WITHIN_MS;
  for (;;) {
    try {
      await connection.workflowService.countWorkflowExecutions({ namespace, query });
      return;
    } catch (error) {
      if (performance.now() > giveUpAt) throw error;
      await delay(POLL_MS);
    }
  }
}

/** Registers missing search attributes. @returns whether the cluster has all of them @throws when it does not answer */
export async function ensureSearchAttributes(connection: Connection, namespace: string, log: Logger): Promise<boolean> {
  const { operatorService } = connection;
  try {
    const { customAttributes } = await operatorService.listSearchAttributes({ namespace });
    const missing = NAMES.filter((name) => !(name in (customAttributes ?? {})));
    if (missing.length > 0) {
      const searchAttributes = Object.fromEntries(missing.map((name) => [name, KEYWORD]));
      await operatorService.addSearchAttributes({ namespace, searchAttributes });
      await untilKnown(connection, namespace);
      log.info({ missing }, 'search attributes registered');
    }
    return true;
  } catch (error) {
    if (isUnavailable(error)) throw error;
    log.warn(
      { err: errorMessage(error), search_attributes: NAMES },
      'the Temporal cluster refuses the search attributes; workflows run without them, filter by workflow id instead',
    );
    return false;
  }
}
