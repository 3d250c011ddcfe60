/** The load of `bench:deliveries`: events that rules match, and messages with push notifications, at steady rates. */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';

export const RULES = 20;
/** One event in so many matches one of the rules. */
export const DELIVERED_SHARE = 25;
const TICK_MS = 50;

const INSERT = `
  INSERT INTO event_groups (tenant_id, types, instance_mark, group_id, events)
    SELECT uuid_of($1), event_bit('agent.health_changed'), instance_mark('bench'), (left(uuidv7()::text, 34) || '00')::uuid,
           jsonb_build_array(jsonb_build_object('agent_type', t, 'instance_id', 'bench', 'status', 'offline', 'previous_status', 'available'))
      FROM unnest($2::text[]) AS t`;

/** Calls `work` with how many are due since the last call, at a steady rate. */
async function steadily(count, perSecond, work) {
  const from = performance.now();
  for (let done = 0; done < count; ) {
    const due = Math.min(count, Math.ceil(((performance.now() - from) / 1_000) * perSecond));
    if (due > done) await work(done, due);
    done = Math.max(done, due);
    await delay(TICK_MS);
  }
}

/** Writes events of these agent types. @returns when all are written */
export function writeEvents(database, tenantId, agentTypes, perSecond) {
  return steadily(agentTypes.length, perSecond, (from, to) =>
    database.query(INSERT, [tenantId, agentTypes.slice(from, to)]),
  );
}

/** The types of `count` events, of which one in 25 matches one of the rules. */
export function eventTypes(count) {
  return Array.from({ length: count }, (_, index) =>
    index % DELIVERED_SHARE === 0 ? `rule-${(index / DELIVERED_SHARE) % RULES}` : 'no-rule',
  );
}

/** A rule that delivers events of an agent type by webhook. */
export function rule(name, agentType, url) {
  const condition = { event: 'agent.health_changed', filters: { agent_type: agentType } };
  return { name, condition, notifications: [{ type: 'webhook', config: { url, secret: 'bench' } }] };
}

/** Sends messages, each with a push-notification config for this receiver. @returns when all are answered */
export async function sendWithPush(post, agentType, url, { count, perSecond }) {
  const answers = [];
  const send = () => {
    const message = {
      kind: 'message',
      messageId: randomUUID(),
      role: 'user',
      parts: [{ kind: 'text', text: 'hello' }],
    };
    const params = {
      message: { ...message, metadata: { agent_type: agentType } },
      configuration: { pushNotificationConfig: { url } },
    };
    return post('/send', { jsonrpc: '2.0', id: message.messageId, method: 'message/send', params });
  };
  await steadily(count, perSecond, async (from, to) => {
    for (let sent = from; sent < to; sent += 1) answers.push(send());
  });
  for (const { error, result } of await Promise.all(answers))
    if (result?.status?.state !== 'completed')
      throw new Error(`a message ended with ${JSON.stringify(error ?? result)}`);
}
