import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { AlertRule } from '../../contracts/api/alerts.js';
import type { EventType } from '../../contracts/events.js';
import { rulesQuery } from '../api/alerts.js';
import { call } from '../api/call.js';
import { TextField } from '../parts/field.js';
import { Problem } from '../parts/states.js';
import { ChannelFields } from './channel-fields.js';
import { bodyOf, changedMembers, draftOf, emptyChannel, type RuleDraft } from './rule-draft.js';

/** Events that rules are about most often. The API takes all types, and globs of them. */
const SUGGESTED = [
  ...['agent.health_changed', 'agent.deregistered', 'message.error', 'message.input_required', 'dispatch.failed'],
  ...['policy.approval_required', 'policy.denied', 'plan.approval_required', 'plan.failed', 'system.alert_triggered'],
] as EventType[];

/** Makes a rule, or changes one. @param props.onDone with the id of the rule that was saved, or without */
export function RuleForm({ rule, onDone }: { rule: AlertRule | undefined; onDone: (ruleId?: string) => void }) {
  const client = useQueryClient();
  const [draft, setDraft] = useState(() => draftOf(rule));
  const set = (change: Partial<RuleDraft>) => setDraft((old) => ({ ...old, ...change }));
  const save = useMutation({
    mutationFn: () =>
      rule
        ? call('/policies/update_alert', { rule_id: rule.rule_id, ...changedMembers(rule, draft) })
        : call('/policies/new_alert', bodyOf(draft)),
    onSuccess: async ({ rule_id }) => {
      await client.invalidateQueries(rulesQuery);
      onDone(rule_id);
    },
  });
  const text = (name: 'name' | 'description' | 'approvers' | 'threshold' | 'window_seconds' | 'cooldown_seconds') => ({
    value: draft[name],
    onChange: (value: string) => set({ [name]: value }),
  });
  return (
    <form
      className="detail form"
      onSubmit={(event) => {
        event.preventDefault();
        save.mutate();
      }}
    >
      <h2>{rule ? `Edit ${rule.name}` : 'New alert rule'}</h2>
      <TextField label="Name" required maxLength={128} {...text('name')} />
      <TextField label="Description" maxLength={1024} {...text('description')} />
      <div className="columns-2">
        <TextField
          label="Event"
          hint="A type, or a pattern such as agent.* or *.failed"
          required
          list="event-types"
          value={draft.event}
          onChange={(event) => set({ event })}
        />
        <datalist id="event-types">
          {SUGGESTED.map((type) => (
            <option key={type} value={type} />
          ))}
        </datalist>
        <div className="field">
          <label htmlFor="rule-severity">Severity</label>
          <select
            id="rule-severity"
            value={draft.severity}
            onChange={({ target }) => set({ severity: target.value as RuleDraft['severity'] })}
          >
            <option>info</option>
            <option>warning</option>
            <option>critical</option>
          </select>
        </div>
      </div>
      <div className="field">
        <label htmlFor="rule-filters">Only where (JSON)</label>
        <textarea
          id="rule-filters"
          className="mono"
          rows={2}
          placeholder={'{"status": ["unhealthy", "offline"]}'}
          value={draft.filters}
          onChange={({ target }) => set({ filters: target.value })}
        />
      </div>
      <div className="columns-3">
        <TextField label="Events" hint="Fires at so many" type="number" min={1} {...text('threshold')} />
        <TextField label="Within, in seconds" type="number" min={1} {...text('window_seconds')} />
        <TextField label="Then silent, in seconds" type="number" min={0} {...text('cooldown_seconds')} />
      </div>
      <TextField label="Slack users who may decide" hint="Ids, with commas between" {...text('approvers')} />
      {draft.channels.map((channel, at) => (
        <ChannelFields
          key={channel.key}
          channel={channel}
          number={at + 1}
          set={(change) =>
            set({ channels: draft.channels.map((one) => (one === channel ? { ...one, ...change } : one)) })
          }
          remove={
            draft.channels.length > 1
              ? () => set({ channels: draft.channels.filter((one) => one !== channel) })
              : undefined
          }
        />
      ))}
      <div>
        <button type="button" className="link" onClick={() => set({ channels: [...draft.channels, emptyChannel()] })}>
          Add a channel
        </button>
      </div>
      <Problem error={save.error} />
      <div className="buttons">
        <button type="submit" className="yes" disabled={save.isPending}>
          {rule ? 'Save' : 'Create'}
        </button>
        <button type="button" onClick={() => onDone(rule?.rule_id)}>
          Cancel
        </button>
      </div>
    </form>
  );
}
