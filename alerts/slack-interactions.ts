import { createHmac, timingSafeEqual } from 'node:crypto';
import { z } from 'zod';
import { type ChannelRow, readableChannel } from '../deliveries/channels/channel-store.js';
import { type ButtonValue, escaped, SLACK_ACTION, SLACK_LINK } from '../deliveries/channels/slack.js';
import { type Envelope, unsealBody } from '../deliveries/envelope.js';
import type { Outbound } from '../http/outbound.js';
import type { MessageCore } from '../messages/core.js';
import type { RequestSubject } from '../messages/input/callback-tokens.js';
import type { Identify } from '../messages/input/identify.js';
import { slackPrincipal } from '../messages/input/principals.js';
import type { DecisionRequest } from '../messages/input/resolve.js';
import { PlatformError } from '../runtime/errors.js';
import type { Secrets } from '../runtime/secrets.js';
import { linkForSlackUser } from './slack-links.js';

/** Slack's own bound: an older request may be a replay. */
const MAX_AGE_SECONDS = 300;
/** For the note in the Slack channel, which nobody waits for. */
const NOTE_TIMEOUT_MS = 3_000;
const CHANGED = 'Somebody has edited the arguments since this message was posted.';

export interface SlackInteractionDeps {
  core: MessageCore;
  secrets: Pick<Secrets, 'decrypt'>;
  outbound: Pick<Outbound, 'request'>;
  /** Decides about a message or a plan. */
  decideAs: (subject: RequestSubject, answer: DecisionRequest, identify: Identify) => Promise<unknown>;
  /** Bounds how often a tenant's deliveries are looked for: until then nothing of the request is verified. */
  guard: <T>(tenantId: string, work: () => Promise<T>) => Promise<T>;
}

/** A request of Slack as it came. */
export interface SlackRequest {
  /** The form as it arrived: the signature covers these bytes. */
  body: Buffer;
  signature: string | undefined;
  timestamp: string | undefined;
}

/** Postgres takes no NUL, and nothing is verified yet when this is looked for. */
const Id = z
  .string()
  .max(64)
  .refine((id) => !id.includes('\0'));
const Value = z.object({ tenant_id: Id, delivery_id: Id, request_id: Id });
const Interaction = z.object({
  type: z.literal('block_actions'),
  user: z.object({ id: z.string().min(1).max(64) }),
  response_url: z.url().optional(),
  actions: z.array(z.object({ action_id: z.string().max(64), value: z.string().max(2_000) })).min(1),
});
type Interaction = z.infer<typeof Interaction>;

function unauthorized(): PlatformError {
  return new PlatformError('unauthorized', 'The request is not signed by Slack.');
}

/** Parses JSON of unknown origin by its schema. @throws PlatformError BAD_REQUEST */
function parsed<Schema extends z.ZodType>(schema: Schema, text: string): z.infer<Schema> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    value = undefined; // refused below
  }
  const result = schema.safeParse(value);
  if (!result.success)
    throw new PlatformError('BAD_REQUEST', 'payload: not an interaction with a button of the platform');
  return result.data;
}

/** Whether a request may be signed: nothing has to be read to refuse any other. @param nowMs milliseconds since 1970 */
function mayBeSigned({ signature = '', timestamp = '' }: SlackRequest, nowMs: number): boolean {
  if (!/^v0=[0-9a-f]{64}$/.test(signature) || !/^\d{1,12}$/.test(timestamp)) return false;
  return Math.abs(nowMs / 1_000 - Number(timestamp)) <= MAX_AGE_SECONDS;
}

/** Whether Slack has signed a request with this secret. */
function isSignedBySlack(secret: string, { body, signature = '', timestamp = '' }: SlackRequest): boolean {
  const expected = `v0=${createHmac('sha256', secret).update(`v0:${timestamp}:`).update(body).digest('hex')}`;
  const given = Buffer.from(signature);
  return given.length === expected.length && timingSafeEqual(given, Buffer.from(expected));
}

const FIND = `
  SELECT d.body, r.approvers, r.writers, c.channel_id, c.rule_id, c.type, c.enabled, c.config, c.secrets
    FROM deliveries d JOIN alert_channels c USING (tenant_id, channel_id) JOIN alert_rules r ON r.tenant_id = d.tenant_id AND r.rule_id = d.rule_id
   WHERE d.tenant_id = $1 AND d.delivery_id = $2`;

type Row = ChannelRow & { body: Buffer; approvers: string[]; writers: string[] };

async function readDelivery(
  { core }: SlackInteractionDeps,
  { tenant_id, delivery_id }: ButtonValue,
): Promise<Row | null> {
  try {
    const [row] = await core.db.tenant(tenant_id, (tx) => tx.query<Row>(FIND, [tenant_id, delivery_id]));
    return row ?? null;
  } catch (error) {
    if (error instanceof PlatformError && error.code === 'NOT_FOUND') return null; // no such tenant
    throw error;
  }
}

/**
 * The delivery whose button was pressed, with its rule.
 * @throws PlatformError unauthorized unless the signing secret of its channel has signed the request
 */
async function signedDelivery(deps: SlackInteractionDeps, value: ButtonValue, request: SlackRequest) {
  const row = await readDelivery(deps, value);
  const secret = row && readableChannel(deps.secrets, row).secrets.signing_secret;
  if (!row || !secret || !isSignedBySlack(secret, request)) throw unauthorized();
  const { rule_id, approvers, writers } = row;
  return {
    rule: { rule_id, approvers, writers },
    envelope: JSON.parse(unsealBody(deps.secrets, row.body).toString()) as Envelope,
  };
}

type Found = Awaited<ReturnType<typeof signedDelivery>>;

/** What is said in Slack about a press of a button. */
interface Note {
  text: string;
  /** Only whoever pressed the button reads it; else everybody in the channel. */
  response_type?: 'ephemeral';
}

/** Nothing depends on whether the note arrives. */
async function say({ outbound, core }: SlackInteractionDeps, { response_url }: Interaction, note: Note): Promise<void> {
  if (response_url === undefined) return;
  const body = JSON.stringify({ replace_original: false, ...note });
  const headers = { 'content-type': 'application/json' };
  try {
    await outbound.request(response_url, { method: 'POST', headers, body, timeoutMs: NOTE_TIMEOUT_MS });
  } catch (error) {
    core.log.info({ err: String(error) }, 'Slack did not take the note about a decision');
  }
}

/** Tells whoever pressed a button why nothing came of it: Slack shows no more of a refusal than that there was one. */
function sayRefusal(deps: SlackInteractionDeps, interaction: Interaction, { code, message }: PlatformError): void {
  const text = `Nothing was decided. ${escaped(code === 'CONFLICT' ? CHANGED : message)}`;
  void say(deps, interaction, { text, response_type: 'ephemeral' });
}

/** Decides by a button. @throws PlatformError as `answerFromSlack` */
async function decide(deps: SlackInteractionDeps, interaction: Interaction, word: string, { envelope, rule }: Found) {
  const { tenant_id, event, request_id, digest } = envelope;
  const { user } = interaction;
  const subject: RequestSubject =
    typeof event.message_id === 'string'
      ? { tenant_id, message_id: event.message_id, plan_id: null }
      : { tenant_id, message_id: null, plan_id: String(event.plan_id) };
  const answer = {
    resolution: word,
    ...(request_id !== undefined && { request_id }),
    ...(digest !== undefined && { digest }),
  };
  await deps.decideAs(subject, answer, async () => ({ principal: slackPrincipal(user.id, rule) }));
  void say(deps, interaction, { text: `${word} by <@${user.id}>` });
}

/** Shows whoever presses the button a link of their own. @throws PlatformError as `linkForSlackUser` */
async function giveLink(deps: SlackInteractionDeps, interaction: Interaction, { envelope, rule }: Found) {
  const url = await linkForSlackUser(deps.core.db, envelope, interaction.user.id, rule);
  const text = `<${url}|Open the page>. The link is yours alone: what is decided there is your decision.`;
  void say(deps, interaction, { text, response_type: 'ephemeral' });
}

/**
 * Does what the button says that somebody pressed in Slack: answers a request, or shows a link to its page.
 * @param nowMs milliseconds since 1970
 * @throws PlatformError BAD_REQUEST for anything that is no such button; unauthorized without a valid signature; RATE_LIMITED; forbidden unless the
 * `approvers` of the rule or of the request name the user; of an answer CONFLICT where the arguments were edited since the delivery,
 * ALREADY_RESOLVED and the other errors of `/messages/{id}/resolve`
 */
export async function answerFromSlack(deps: SlackInteractionDeps, request: SlackRequest, nowMs: number): Promise<void> {
  const interaction = parsed(Interaction, new URLSearchParams(request.body.toString()).get('payload') ?? '');
  const [action] = interaction.actions;
  if (!action || (action.action_id !== SLACK_LINK && !action.action_id.startsWith(SLACK_ACTION)))
    throw new PlatformError('BAD_REQUEST', 'action_id: unknown');
  const value = parsed(Value, action.value);
  const found = await deps.guard(value.tenant_id, async () => {
    if (!mayBeSigned(request, nowMs)) throw unauthorized();
    return signedDelivery(deps, value, request);
  });
  const { request_id } = found.envelope;
  if (request_id === undefined || request_id !== value.request_id) throw unauthorized();
  try {
    if (action.action_id === SLACK_LINK) await giveLink(deps, interaction, found);
    else await decide(deps, interaction, action.action_id.slice(SLACK_ACTION.length), found);
  } catch (error) {
    if (error instanceof PlatformError && error.statusCode < 500) sayRefusal(deps, interaction, error);
    throw error;
  }
}
