import type { Outbound } from '../../http/outbound.js';

/** The operator's mail server. */
export interface EmailSettings {
  /** `smtp://` or `smtps://`, with user and password if the server needs them; undefined: no email can be sent. */
  smtpUrl: string | undefined;
  /** For the whole attempt; `ATTEMPT_TIMEOUT_MS` by default. */
  timeoutMs?: number;
  from: string;
}

/** What the channels send with. */
export interface ChannelClients {
  outbound: Pick<Outbound, 'request'>;
  /** Address of Slack's Web API, without a slash at the end. */
  slackApiUrl: string;
  email: EmailSettings;
}
