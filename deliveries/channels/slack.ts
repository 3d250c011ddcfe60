import { type Attempted, attemptRequest } from '../attempts.js';
import type { Envelope } from '../envelope.js';
import type { Channel } from './channel-store.js';
import type { ChannelClients } from './clients.js';

/** Slack refuses longer texts: 150 characters in a header, 3,000 in a section, 2,000 in a button's value. */
const HEADER_MAX = 150;
const SECTION_MAX = 2_900;

/** The `action_id` of the buttons that answer, followed by the word of the answer. */
export const SLACK_ACTION = 'resolve:';
/** The `action_id` of the button that gives whoever presses it a link to the page. */
export const SLACK_LINK = 'link';

const EMOJI: Record<string, string> = {
  info: ':information_source:',
  warning: ':warning:',
  critical: ':rotating_light:',
};

/** The beginning of a text. Slack takes no JSON with half of a surrogate pair. */
const cut = (text: string, max: number): string => text.slice(0, max).toWellFormed();

/** Text that Slack shows as it is: `&`, `<` and `>` would begin entities, links and mentions. */
export function escaped(text: string, max = SECTION_MAX): string {
  return cut(text, max).replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

/** A value in one line, so that none can pass for another field. */
function shown(value: unknown): string {
  return (typeof value === 'string' ? value : JSON.stringify(value)).replace(/\s+/g, ' ');
}

/** The fields of an event, one in a line: as many as have room in a section. */
function fieldsOf(event: Envelope['event']): string {
  let text = '';
  for (const [name, value] of Object.entries(event)) {
    const line = `${text && '\n'}*${escaped(name)}*: ${escaped(shown(value), 500)}`;
    if (text.length + line.length <= SECTION_MAX) text += line; // never a part: its end may be half of an entity
  }
  return text;
}

/** `verbatim`: Slack makes no links and mentions of text that looks like them. */
const markdown = (text: string) => ({ type: 'mrkdwn', text, verbatim: true });

/** The request that buttons answer, as a button's value: not secret, Slack's signature proves who pressed it. */
export interface ButtonValue {
  tenant_id: string;
  delivery_id: string;
  request_id: string;
}

/** A form is answered on the page alone; it, and whatever else is asked, stands there in full. Without a token there is no page. */
function buttons({ tenant_id, delivery_id, request_id, callback_token, event }: Envelope) {
  if (request_id === undefined) return [];
  const isForm = event.kind === 'form';
  const value = JSON.stringify({ tenant_id, delivery_id, request_id } satisfies ButtonValue);
  const button = (text: string, action_id: string, style?: string) => ({
    type: 'button',
    text: { type: 'plain_text', text },
    ...(style !== undefined && { style }),
    action_id,
    value,
  });
  const answers = [
    button('Approve', `${SLACK_ACTION}approved`, 'primary'),
    button('Reject', `${SLACK_ACTION}rejected`, 'danger'),
  ];
  const page = isForm ? button('Open the form', SLACK_LINK, 'primary') : button('Show everything', SLACK_LINK);
  const elements = [...(isForm ? [] : answers), ...(callback_token === undefined ? [] : [page])];
  return elements.length === 0 ? [] : [{ type: 'actions', elements }];
}

/**
 * An envelope in Slack's Block Kit. What asks a human gets buttons when the channel has a signing secret, by which presses are verified. The
 * delivery's token is not shown, since everybody in the Slack channel would read it: a button gives each approver a link of their own.
 */
function slackMessage(envelope: Envelope, { withButtons }: { withButtons: boolean }) {
  const { severity, event_type, timestamp, session_id, event, test } = envelope;
  const rule_name = `${test ? '[test] ' : ''}${envelope.rule_name}`;
  const title = typeof event.title === 'string' ? event.title : event_type;
  const fields = fieldsOf(event);
  const context = [event_type, timestamp, session_id].filter(Boolean).map((text) => escaped(text));
  return {
    text: escaped(`${rule_name}: ${title}`, 500),
    blocks: [
      { type: 'header', text: { type: 'plain_text', text: cut(rule_name, HEADER_MAX) } },
      { type: 'section', text: markdown(`${EMOJI[severity] ?? ''} *${escaped(shown(title), 500)}*`) },
      ...(fields ? [{ type: 'section', text: markdown(fields) }] : []),
      ...(withButtons && envelope.type === 'approval_required' ? buttons(envelope) : []),
      { type: 'context', elements: [markdown(context.join(' · '))] },
    ],
  };
}

/** Slack's Web API answers 200 with `ok: false` and a code. */
function apiError(answer: string): string | null {
  try {
    const { ok, error } = JSON.parse(answer) as { ok?: unknown; error?: unknown };
    if (ok === true) return null;
    return typeof error === 'string' ? `SLACK_${error.slice(0, 64).toUpperCase()}` : 'SLACK_ERROR';
  } catch {
    return 'SLACK_ERROR'; // not JSON, so not Slack
  }
}

/** The URL that a Slack channel posts to. */
export function slackUrl({ secrets }: Pick<Channel, 'secrets'>, slackApiUrl: string): string {
  return secrets.webhook_url ?? `${slackApiUrl}/chat.postMessage`;
}

/** Posts a delivery to Slack: to an incoming webhook, or as a bot. */
export async function attemptSlack(
  { outbound, slackApiUrl }: ChannelClients,
  channel: Channel,
  body: Buffer,
  signal: AbortSignal,
): Promise<Attempted> {
  const { webhook_url, bot_token, signing_secret } = channel.secrets;
  const envelope = JSON.parse(body.toString()) as Envelope;
  const message = slackMessage(envelope, { withButtons: signing_secret !== undefined });
  const url = slackUrl(channel, slackApiUrl);
  if (webhook_url !== undefined)
    return attemptRequest(outbound, { url, headers: {}, body: JSON.stringify(message) }, signal);
  const headers = { authorization: `Bearer ${bot_token}`, 'content-type': 'application/json; charset=utf-8' };
  const content = JSON.stringify({ channel: channel.config.channel_id, ...message });
  const { answer, ...made } = await attemptRequest(outbound, { url, headers, body: content }, signal);
  const error = made.result.status_code === 200 ? apiError(answer) : null;
  return error === null ? made : { result: { ...made.result, error }, outcome: 'refused' };
}
