import { queryOptions } from '@tanstack/react-query';
import { call } from './call.js';

/** How much is in flight changes all the time. */
const READ_EVERY_MS = 5_000;
const PAGE_SIZE = 100;
const FAILURES = 5;

/** All agent types. */
export const agentTypesQuery = queryOptions({
  queryKey: ['fleet', 'types'],
  queryFn: async () => (await call('/agents/get_types', {})).agent_types,
  refetchInterval: READ_EVERY_MS,
});

/** The body of the list of a type's registered instances. */
export const instancesBody = (agentType: string) => ({ agent_type: agentType, registered: true, page_size: PAGE_SIZE });

/** The registered instances of a type, the newest first, and how many there are in all. */
export const instancesQuery = (agentType: string) =>
  queryOptions({
    queryKey: ['fleet', 'instances', agentType],
    queryFn: async () => {
      const { agents, count } = await call('/agents/get', instancesBody(agentType));
      return { agents, count };
    },
    refetchInterval: READ_EVERY_MS,
  });

/** How an instance is reached, and why it is degraded. */
export const connectionQuery = (instanceId: string) =>
  queryOptions({
    queryKey: ['fleet', 'connection', instanceId],
    queryFn: async () => (await call('/agents/get_connection', { instance_id: instanceId })).connection,
  });

/** The newest messages that a type failed. */
export const failuresQuery = (agentType: string) =>
  queryOptions({
    queryKey: ['fleet', 'failures', agentType],
    queryFn: async () =>
      (await call('/messages/get', { agent_type: agentType, state: 'failed', page_size: FAILURES })).messages,
  });
