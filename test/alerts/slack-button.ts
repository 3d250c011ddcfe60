import { createHmac } from 'node:crypto';
import type { Answer, ApiClient } from '../setup/platform/api-client.js';
import type { Arrived } from '../setup/receiver.js';

export const SLACK_SECRET = 'slack-signing-secret';

/** A button of a message in Slack. */
export interface SlackButton {
  action_id: string;
  value: string;
}

export interface Press {
  /** Where the note goes. */
  url: string;
  user?: string;
  secret?: string;
  ageSeconds?: number;
}

interface SlackBody {
  blocks: { type: string; elements?: SlackButton[] }[];
}

/** The button that approves, of a message as Slack got it. */
export function approveButton({ body }: Pick<Arrived, 'body'>): SlackButton {
  const { blocks } = body as unknown as SlackBody;
  const [approve] = blocks.find(({ type }) => type === 'actions')?.elements ?? [];
  if (!approve) throw new Error('there is no button');
  return approve;
}

/** Presses a button as Slack does, as often as it is called: the request is the same each time. */
export function press(
  client: ApiClient,
  button: SlackButton,
  { url, user = 'U1', secret = SLACK_SECRET, ageSeconds = 0 }: Press,
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
    });
}
