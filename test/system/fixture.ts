import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import { SessionInitResponse } from '../../contracts/api/sessions.js';
import { messageWorkflowId } from '../../contracts/workflows.js';
import { type Behaviour, type Dispatched, dispatched, type RawAgent } from '../setup/agent.js';
import type { ApiClient, SendOptions } from '../setup/platform/api-client.js';
import { type Home, joinAgent } from '../setup/platform/fleet.js';
import { sharedPlatform, type TenantPlatform } from '../setup/platform/shared-platform.js';

/** Sends to agents of a type. */
export const to = (agent_type: string, more: object = {}) => ({ metadata: { agent_type, ...more } });

/** An agent `{type}-1` that may have any number of sessions, where nothing else is said. */
export const joinType = (home: Home, agentType: string, behaviour?: Behaviour, max = 0): Promise<RawAgent> =>
  joinAgent(home, { instanceId: `${agentType}-1`, agentType, maxConcurrentSessions: max }, behaviour);

/** What an agent does by the text of a message: `ask` asks a human once, `hold` is kept, and anything else is answered. */
export function byText(held: Dispatched[] = []): Behaviour {
  return (dispatch) => {
    const { resolution } = (dispatch.payload.params.metadata ?? {}) as { resolution?: { resolution: unknown } };
    if (dispatch.text === 'hold') held.push(dispatch);
    else if (dispatch.text === 'ask' && !resolution) dispatch.ask({ kind: 'confirmation', title: 'Really?' });
    else dispatch.result(`${dispatch.text}: ${resolution?.resolution ?? 'done'}`);
  };
}

export const dispatchesTo = (agent: RawAgent) => agent.received.filter(({ type }) => type === 'dispatch');

/** Sends without waiting for the answer, and waits for the dispatch. */
export async function hold(client: ApiClient, agent: RawAgent, options: SendOptions, text = 'hold') {
  const task = await client.send(text, { ...options, blocking: false });
  const frame = await agent.next(
    ({ type, payload }) =>
      type === 'dispatch' && (payload as unknown as Dispatched['payload']).session_context.message_id === task.id,
  );
  return { task, dispatch: dispatched(agent, frame) };
}

export async function initSession(client: ApiClient, body: object = {}): Promise<string> {
  return (await client.ok('/sessions/init', body, SessionInitResponse)).session_id;
}

/** What a platform's record and its Temporal say of messages. */
export function looksOf({ database, temporal, platform }: Pick<TenantPlatform, 'database' | 'temporal' | 'platform'>) {
  const workflowOf = (message_id: string): ReturnType<Client['workflow']['getHandle']> =>
    temporal.workflow.getHandle(messageWorkflowId({ tenant_id: platform.devJson().tenant_id, message_id }));
  return {
    workflowOf,
    hasWorkflow: (messageId: string): Promise<boolean> =>
      workflowOf(messageId)
        .describe()
        .then(
          () => true,
          (error: unknown) => (error instanceof WorkflowNotFoundError ? false : Promise.reject(error)),
        ),
    /** What the Temporal UI shows of a message's workflow. */
    detailsOf: async (messageId: string): Promise<string | undefined> => {
      const query = workflowOf(messageId).query<{ currentDetails?: string }>('__temporal_workflow_metadata');
      return (await query).currentDetails;
    },
    /** The states of a message's dispatches, the oldest first. */
    dispatchStates: (messageId: string): Promise<string[]> =>
      database.column('SELECT state FROM dispatches WHERE message_id = $1 ORDER BY created_at', [messageId]),
  };
}

/** A new tenant on the shared platform, with what the tests of a running platform ask it. */
export async function fleetOn() {
  const shared = await sharedPlatform();
  const { platform } = shared;
  const { client } = platform;
  return {
    ...shared,
    ...looksOf(shared),
    client,
    join: (agentType: string, behaviour?: Behaviour, max?: number) => joinType(platform, agentType, behaviour, max),
  };
}
