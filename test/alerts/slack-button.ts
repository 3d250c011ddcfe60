import { createHmac } from 'node:crypto';
import type { Answer, ApiClient } from '../setup/platform/api-client.js';
import type { Arrived } from '../setup/receiver.js';

const SLACK_SECRET = 'slack-signing-secret';

/** A channel that Slack has given a webhook, and whose buttons are verified. */
export const slackChannel = (webhook_url: string) => ({
  type: 'slack',
  config: { webhook_url, signing_secret: SLACK_SECRET },
});

/** A button of a message in Slack. */
export interface SlackButton {
  text: { text: string };
  action_id: string;
  value: string;
}

export interface Press {
  /** Where the note goes. */
  url: string;
  user?: string;
  secret?: string;
  ageSeconds?: number;
  headers?: Record<string, string>;
}

interface SlackBody {
  blocks: { type: string; elements?: SlackButton[] }[];
}

/** The buttons of a message as Slack got it. */
export function buttonsOf({ body }: Pick<Arrived, 'body'>): SlackButton[] {
  const { blocks } = body as unknown as SlackBody;
  return blocks.find(({ type }) => type === 'actions')?.elements ?? [];
}

function buttonOf(arrived: Pick<Arrived, 'body'>, actionId: string): SlackButton {
  const found = buttonsOf(arrived).find(({ action_id }) => action_id === actionId);
  if (!found) throw new Error(`there is no button '${actionId}'`);
  return found;
}

/** The button that approves. */
export const approveButton = (arrived: Pick<Arrived, 'body'>) => buttonOf(arrived, 'resolve:approved');
/** The button that gives a link to the page. */
export const linkButton = (arrived: Pick<Arrived, 'body'>) => buttonOf(arrived, 'link');

/** Presses a button as Slack does, as often as it is called: the request is the same each time. */
export function press(
  client: ApiClient,
  button: Pick<SlackButton, 'action_id' | 'value'>,
  { url, user = 'U1', secret = SLACK_SECRET, ageSeconds = 0, headers = {} }: Press,
): () => Promise<Answer> {
  const payload = { type: 'block_actions', user: { id: user }, actions: [button], response_url: url };
  const body = new URLSearchParams({ payload: JSON.stringify(payload) }).toString();
  const timestamp = String(Math.floor(Date.now() / 1_000) - ageSeconds);
  const signature = `v0=${createHmac('sha256', secret).update(`v0:${timestamp}:${body}`).digest('hex')}`;
  return () =>
    client.raw('/slack/interactions', body, {
      'content-type': 'application/x-www-form-urlencoded',
      'x-slack-signature': signature,
      'x-slack-request-timestamp': timestamp,
      ...headers,
    });
}
