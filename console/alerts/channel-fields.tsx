import { TextField } from '../parts/field.js';
import type { ChannelDraft } from './rule-draft.js';

type SecretName = 'secret' | 'webhook_url' | 'bot_token' | 'signing_secret';

/** One channel of a rule. Its kind stays once it is stored. */
export function ChannelFields(props: {
  channel: ChannelDraft;
  number: number;
  set: (change: Partial<ChannelDraft>) => void;
  remove: (() => void) | undefined;
}) {
  const { channel, number, set, remove } = props;
  const secret = (name: SecretName, label: string, hint?: string) => {
    const kept = channel.stored.includes(name) ? 'One is stored. Leave this empty to keep it.' : hint;
    return (
      <TextField
        label={label}
        {...(kept && { hint: kept })}
        type="password"
        autoComplete="off"
        value={channel[name]}
        onChange={(value) => set({ [name]: value })}
      />
    );
  };
  return (
    <fieldset className="channel">
      <legend>Channel {number}</legend>
      <div className="line">
        <select
          aria-label={`Kind of channel ${number}`}
          disabled={channel.channel_id !== undefined}
          value={channel.type}
          onChange={({ target }) => set({ type: target.value as ChannelDraft['type'] })}
        >
          <option value="webhook">Webhook</option>
          <option value="slack">Slack</option>
          <option value="email">Email</option>
        </select>
        <label className="tick">
          <input
            type="checkbox"
            checked={channel.enabled}
            onChange={({ target }) => set({ enabled: target.checked })}
          />
          On
        </label>
        {remove && (
          <button type="button" className="link" onClick={remove}>
            Remove
          </button>
        )}
      </div>
      {channel.type === 'webhook' && (
        <>
          <TextField label="URL" type="url" required value={channel.url} onChange={(url) => set({ url })} />
          {secret('secret', 'Secret', 'Signs what is sent, best as whsec_ and base64')}
        </>
      )}
      {channel.type === 'slack' && (
        <>
          {secret('webhook_url', 'Incoming webhook', 'Or a bot token and a channel')}
          <div className="columns-2">
            {secret('bot_token', 'Bot token')}
            <TextField
              label="Channel"
              value={channel.slack_channel}
              onChange={(slack_channel) => set({ slack_channel })}
            />
          </div>
          {secret('signing_secret', 'Signing secret', 'Adds buttons to what asks a person')}
        </>
      )}
      {channel.type === 'email' && (
        <TextField
          label="Recipients"
          hint="Addresses, with commas between"
          required
          value={channel.recipients}
          onChange={(recipients) => set({ recipients })}
        />
      )}
    </fieldset>
  );
}
