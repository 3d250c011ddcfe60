import { setTimeout as delay } from 'node:timers/promises';
import type { Connection } from '@temporalio/client';
import { defineSearchAttributeKey, type SearchAttributePair, SearchAttributeType } from '@temporalio/common';
import { errorMessage } from '../../runtime/errors.js';
import type { Logger } from '../../runtime/logger.js';

const ATTRIBUTES = ['FleetTenant', 'FleetSession', 'FleetAgentType', 'FleetState', 'FleetError'] as const;

const key = (name: (typeof ATTRIBUTES)[number]) => defineSearchAttributeKey(name, SearchAttributeType.KEYWORD);

/** The search attributes of a new workflow. The server bounds keyword values; these identifiers are far shorter. */
export function searchAttributes(tenantId: string, sessionId: string, state: string): SearchAttributePair[] {
  return [
    { key: key('FleetTenant'), value: tenantId },
    { key: key('FleetSession'), value: sessionId },
    { key: key('FleetState'), value: state },
  ];
}

/** The time for a cluster to accept new search attributes; its services reload them every two seconds. */
const KNOWN_WITHIN_MS = 10_000;
const POLL_MS = 100;

/** Resolves when the cluster accepts the new search attributes: it refuses workflows that start with them earlier. */
async function untilKnown(connection: Connection, namespace: string): Promise<void> {
  const query = ATTRIBUTES.map((name) => `${name} = 'none'`).join(' AND ');
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

/** Registers missing search attributes. @returns whether the cluster has all of them */
export async function ensureSearchAttributes(connection: Connection, namespace: string, log: Logger): Promise<boolean> {
  try {
    const { customAttributes } = await connection.operatorService.listSearchAttributes({ namespace });
    const missing = ATTRIBUTES.filter((name) => !(name in (customAttributes ?? {})));
    if (missing.length > 0) {
      const KEYWORD = 2;
      await connection.operatorService.addSearchAttributes({
        namespace,
        searchAttributes: Object.fromEntries(missing.map((name) => [name, KEYWORD])),
      });
      await untilKnown(connection, namespace);
      log.info({ missing }, 'search attributes registered');
    }
    return true;
  } catch (error) {
    log.warn(
      { err: errorMessage(error), search_attributes: ATTRIBUTES },
      'the Temporal cluster refuses the search attributes; workflows run without them, filter by workflow id instead',
    );
    return false;
  }
}
