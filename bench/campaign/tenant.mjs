/** One tenant of a campaign or a soak: its rules, its messages, and what its callers were told. */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { ApiError } from '../../dist/sdk/index.js';
import { between, randomOf } from '../harness/cluster/pace.mjs';
import { answerOf, PersistentCaller } from '../harness/cluster/persistent-caller.mjs';
import { EventFollower } from './event-follower.mjs';
import { CAMPAIGN_KINDS, newMessage } from './messages.mjs';

/** Events of which every one is to be delivered. */
export const DELIVERED = ['message.completed', 'message.error', 'message.canceled', 'message.input_required'];
/** Range of the time after which a caller cancels or a human answers. */
const HUMAN_MS = [0, 4_000];
const PUSHED_SHARE = 0.5;
/** This share of the messages goes on in one of the tenant's last sessions of its type. */
const CONTINUED_SHARE = 0.3;
const SESSIONS_KEPT = 10;

export class CampaignTenant {
  sent = 0;
  /** What callers were told, by message id: `{ text, answers: [{ state, answer? }], pushed }`. */
  accepted = new Map();
  violations = [];
  /** Texts of the messages that have not ended for their callers. */
  underWay = new Set();
  #caller;
  #receiver;
  #kinds;
  /** The last sessions, by the type of their agents. */
  #sessions = new Map();

  /** @param {{ tenant_id: string, access: object[], receiver?: import('./receiver.mjs').Receiver, kinds?: string[] }} options without a receiver nothing is pushed */
  constructor({ tenant_id, access, receiver, kinds = CAMPAIGN_KINDS }) {
    this.id = tenant_id;
    this.access = access;
    this.#caller = new PersistentCaller(access);
    this.#receiver = receiver;
    this.#kinds = kinds;
  }

  /** Makes its alert rules and the policy that wants an approval for the tool `pay`, and begins to follow its events. */
  async prepare() {
    const webhook = { type: 'webhook', config: { url: `${this.#receiver.url}/alert`, secret: 'campaign' } };
    await this.#caller.retry(async (client) => {
      for (const event of DELIVERED)
        await client.policies.newAlert({ name: event, condition: { event }, notifications: [webhook] });
      const policy = { scope: 'tool', name: 'pay', decision: 'require_approval', match: { tools: ['pay'] } };
      await client.policies.createPolicy({ ...policy, evaluator: { approval: {} } });
    });
    this.follower = await EventFollower.start(this.access);
  }

  async close() {
    await this.follower?.stop();
    this.#caller.close();
  }

  /** Has the hosted agent fetch the platform's keys, which it keeps for ten minutes: it asks the first node alone, which is killed. */
  warmUp() {
    return this.#send({ kind: 'quick', text: 'quick 0 warm-up', agentType: 'hosted' });
  }

  /** Sends a message and follows it to its end; never rejects. */
  sendOne(name) {
    return this.#send(newMessage(name, this.#kinds));
  }

  async #send({ kind, text, agentType }) {
    const options = { messageId: randomUUID(), agentType, ...this.#session(agentType) };
    this.sent += 1;
    this.underWay.add(text);
    try {
      const { id, answers } = await this.#accept(kind, text, options);
      const entry = { text, answers, pushed: false };
      this.accepted.set(id, entry);
      await this.#goOn(kind, id, entry);
    } catch (error) {
      this.violations.push(`${text}: ${error.stack}`);
    } finally {
      this.underWay.delete(text);
    }
  }

  #session(agentType) {
    const sessions = this.#sessions.get(agentType) ?? [];
    return sessions.length > 0 && Math.random() < CONTINUED_SHARE ? { contextId: randomOf(sessions) } : {};
  }

  /** Notes what its caller was told of a message. */
  #tell(entry, { state, sessionId, agentType, assistantOutput: answer }) {
    entry.answers.push({ state, ...(state === 'completed' && { answer }) });
    const sessions = this.#sessions.get(agentType) ?? [];
    if (!sessions.includes(sessionId)) this.#sessions.set(agentType, [sessionId, ...sessions].slice(0, SESSIONS_KEPT));
  }

  async #accept(kind, text, options) {
    if (kind === 'stream') {
      const { id, state, text: answer } = await this.#caller.stream(text, options);
      return { id, answers: [{ state, ...(state === 'completed' && { answer }) }] };
    }
    const blocking = kind !== 'cancel';
    const task = await this.#caller.send(text, { ...options, blocking });
    const { state } = task.status;
    return { id: task.id, answers: [{ state, ...(state === 'completed' && { answer: answerOf(task) }) }] };
  }

  async #goOn(kind, id, entry) {
    if (kind === 'cancel') await this.#cancel(id, entry);
    else if (kind === 'ask' || kind === 'pay') await this.#decide(kind, id, entry);
    else if (kind === 'wait') return this.#tell(entry, await this.#caller.waitFor(id, ['input-required']));
    this.#tell(entry, await this.#caller.waitFor(id));
  }

  async #cancel(id, entry) {
    await this.#subscribe(id, entry);
    await delay(between(HUMAN_MS));
    try {
      await this.#caller.retry((client) => client.messages.cancel({ messageId: id }));
      entry.answers.push({ state: 'canceled' });
    } catch (error) {
      if (!(error instanceof ApiError && error.code === 'ALREADY_TERMINAL')) throw error;
    }
  }

  async #decide(kind, id, entry) {
    const { state, inputRequest: request } = await this.#caller.waitFor(id, ['input-required']);
    if (state !== 'input-required') return;
    await this.#subscribe(id, entry);
    await delay(between(HUMAN_MS));
    const resolution = kind === 'pay' ? 'approved' : 'confirmed';
    try {
      await this.#caller.retry((client) => client.messages.resolve(id, { resolution, requestId: request.requestId }));
    } catch (error) {
      // The answer to an earlier attempt was lost: the decision counts once.
      if (!(error instanceof ApiError && error.code === 'ALREADY_RESOLVED')) throw error;
    }
  }

  /** Half of the messages that wait have a push configuration. */
  async #subscribe(id, entry) {
    if (!this.#receiver || Math.random() > PUSHED_SHARE) return;
    const pushNotificationConfig = { id: 'campaign', url: `${this.#receiver.url}/push` };
    const params = { taskId: id, pushNotificationConfig };
    const answer = await this.#caller.retry((client) =>
      client.post('/send', { jsonrpc: '2.0', id: 1, method: 'tasks/pushNotificationConfig/set', params }),
    );
    if (answer.error) throw new Error(`the push configuration was refused: ${JSON.stringify(answer.error)}`);
    entry.pushed = true;
    entry.pushedAtMs = Date.now();
  }
}
