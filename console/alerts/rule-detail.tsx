import { useMutation, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { AlertRule, Notification } from '../../contracts/api/alerts.js';
import { rulesQuery } from '../api/alerts.js';
import { call } from '../api/call.js';
import { Confirm } from '../parts/confirm.js';
import { CopyCurl, Id } from '../parts/copy.js';
import { Fact } from '../parts/fact.js';
import { Badge, Problem } from '../parts/states.js';
import { Ago, Until } from '../parts/time.js';
import { Json } from '../parts/value.js';
import { addressOf, frequencyText } from './rule-draft.js';

function ChannelRow({ channel }: { channel: Notification }) {
  const { type, enabled, secrets_set, unreadable, receiver, config } = channel;
  return (
    <tr>
      <th scope="row">{type}</th>
      <td data-name="To" className="wrap">
        {addressOf(channel)}
      </td>
      <td data-name="Secrets">{secrets_set.join(', ') || 'none'}</td>
      <td data-name="Attempts">{config.max_attempts ?? 3}</td>
      <td data-name="State" className="wrap">
        {!enabled && <span className="badge">off</span>}
        {enabled && unreadable && <span className="badge bad">set its secrets anew</span>}
        {enabled && !unreadable && receiver && (
          <>
            <span className="badge bad">
              no answer for <Ago at={receiver.since} short />
            </span>{' '}
            <span className="quiet small">
              probed <Until at={receiver.next_probe_at} />
            </span>
          </>
        )}
        {enabled && !unreadable && !receiver && <span className="badge good">on</span>}
      </td>
    </tr>
  );
}

/** Sends a test to each channel, and says what came of it. */
function useTest(rule_id: string) {
  return useMutation({ mutationFn: async () => (await call('/policies/test_alert', { rule_id })).results });
}

function Actions({ rule, onDeleted }: { rule: AlertRule; onDeleted: () => void }) {
  const { rule_id, name, enabled } = rule;
  const client = useQueryClient();
  const test = useTest(rule_id);
  const change = useMutation({
    mutationFn: () => call('/policies/update_alert', { rule_id, enabled: !enabled }),
    onSettled: () => client.invalidateQueries(rulesQuery),
  });
  const remove = useMutation({
    mutationFn: () => call('/policies/delete_alert', { rule_id }),
    onSuccess: onDeleted,
    onSettled: () => client.invalidateQueries(rulesQuery),
  });
  const isBusy = test.isPending || change.isPending || remove.isPending;
  return (
    <>
      <div className="actions">
        <Link to="/alerts" search={{ tab: 'rules', rule: rule_id, form: 'edit' }} className="button">
          Edit
        </Link>
        <button type="button" disabled={isBusy} onClick={() => test.mutate()}>
          {test.isPending ? 'Sending…' : 'Send a test'}
        </button>
        {enabled ? (
          <Confirm
            label="Switch off"
            question={`Switch off ${name}?`}
            disabled={isBusy}
            curl={{ path: '/policies/update_alert', body: { rule_id, enabled: false } }}
            onConfirm={() => change.mutate()}
          >
            <p>It sends nothing until it is on again, and drops what waits to be sent.</p>
          </Confirm>
        ) : (
          <button type="button" disabled={isBusy} onClick={() => change.mutate()}>
            Switch on
          </button>
        )}
        <Confirm
          label="Delete"
          danger
          question={`Delete ${name}?`}
          disabled={isBusy}
          curl={{ path: '/policies/delete_alert', body: { rule_id } }}
          onConfirm={() => remove.mutate()}
        >
          <p>It sends nothing more, and its channels and their secrets are gone. This cannot be undone.</p>
        </Confirm>
        <CopyCurl path="/policies/test_alert" body={{ rule_id }} />
      </div>
      <Problem error={test.error ?? change.error ?? remove.error} />
      {test.data && (
        <ul className="results" aria-label="The test">
          {test.data.map(({ type, ok, message }, at) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: the channels in their order
            <li key={at}>
              <Badge state={ok ? 'succeeded' : 'failed'} label={ok ? 'arrived' : 'failed'} /> {type}: {message}
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

/** One alert rule: when it fires, and where it leads. */
export function RuleDetail({ rule, onDeleted }: { rule: AlertRule; onDeleted: () => void }) {
  const { rule_id, name, description, condition, severity, enabled, approvers, updated_at, notifications } = rule;
  const filters = condition.filters ?? {};
  return (
    <article className="detail">
      <header>
        <div className="line title">
          <h2>{name}</h2>
          <Badge state={severity} />
          {!enabled && <span className="badge">off</span>}
        </div>
        {description && <p className="prose quiet">{description}</p>}
      </header>
      <Actions rule={rule} onDeleted={onDeleted} />
      <dl className="facts">
        <Fact name="Event">
          <code>{condition.event}</code>
        </Fact>
        <Fact name="Fires at">{frequencyText(rule)}</Fact>
        {approvers.length > 0 && <Fact name="Slack users who may decide">{approvers.join(', ')}</Fact>}
        <Fact name="Changed">
          <Ago at={updated_at} />
        </Fact>
        <Fact name="Rule">
          <Id id={rule_id} />
        </Fact>
      </dl>
      {Object.keys(filters).length > 0 && (
        <section>
          <h3>Only where</h3>
          <Json value={filters} />
        </section>
      )}
      <section>
        <h3>Channels</h3>
        <table className="table">
          <thead>
            <tr>
              <th scope="col">Kind</th>
              <th scope="col">To</th>
              <th scope="col">Secrets</th>
              <th scope="col">Attempts</th>
              <th scope="col">State</th>
            </tr>
          </thead>
          <tbody>
            {notifications.map((channel) => (
              <ChannelRow key={channel.channel_id} channel={channel} />
            ))}
          </tbody>
        </table>
      </section>
      <footer className="quiet">
        <Link to="/alerts" search={{ rule: rule_id, status: 'all' }}>
          Its deliveries
        </Link>
        <CopyCurl path="/policies/get_alert_by_id" body={{ rule_id }} />
      </footer>
    </article>
  );
}
