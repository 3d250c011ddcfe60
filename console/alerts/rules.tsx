import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import type { AlertRule } from '../../contracts/api/alerts.js';
import { rulesQuery } from '../api/alerts.js';
import { useListKeys } from '../list/list-keys.js';
import { CopyCurl } from '../parts/copy.js';
import { Split } from '../parts/split.js';
import { Failed, Loading } from '../parts/states.js';
import { Heading } from './heading.js';
import { RuleDetail } from './rule-detail.js';
import { conditionText } from './rule-draft.js';
import { RuleForm } from './rule-form.js';
import type { AlertsSearch } from './search.js';

/** What a rule says of itself in the list. */
function RuleBadge({ rule: { enabled, notifications } }: { rule: AlertRule }) {
  if (!enabled) return <span className="badge">off</span>;
  if (notifications.some(({ unreadable }) => unreadable)) return <span className="badge bad">secrets lost</span>;
  if (notifications.some(({ receiver }) => receiver)) return <span className="badge bad">no answer</span>;
  return <span className="badge good">on</span>;
}

function RuleRow({ rule, isCurrent }: { rule: AlertRule; isCurrent: boolean }) {
  return (
    <Link
      to="/alerts"
      search={{ tab: 'rules', rule: rule.rule_id }}
      replace
      className={`entry${isCurrent ? ' current' : ''}`}
      aria-current={isCurrent || undefined}
    >
      <span className="line">
        <strong className="cut">{rule.name}</strong>
        <RuleBadge rule={rule} />
      </span>
      <span className="line quiet small">
        <span className="cut">{conditionText(rule.condition)}</span>
        <span className="online">{[...new Set(rule.notifications.map(({ type }) => type))].join(', ')}</span>
      </span>
    </Link>
  );
}

/** Alert rules, and one of them beside the list: read, or in a form. */
export function Rules({ search }: { search: AlertsSearch }) {
  const navigate = useNavigate({ from: '/alerts' });
  const { data: rules, error, refetch } = useQuery(rulesQuery);
  const current = rules?.find(({ rule_id }) => rule_id === search.rule);
  const show = (to: AlertsSearch) => void navigate({ search: { tab: 'rules', ...to }, replace: true });
  // A form keeps what was typed: J and K do not leave it.
  const ids = search.form === undefined ? (rules ?? []).map(({ rule_id }) => rule_id) : [];
  useListKeys({
    ids,
    current: search.rule,
    select: (rule) => show({ rule }),
    close: () => show(search.form === 'edit' && search.rule ? { rule: search.rule } : {}),
    more: { n: () => show({ form: 'new' }) },
  });

  const isNew = search.form === 'new';
  return (
    <Split
      name="Alerts"
      label={['Alert rules', 'Alert rule']}
      className="alerts"
      isOpen={search.rule !== undefined || isNew}
      close={() => show({})}
      list={
        <>
          <header className="filters">
            <Heading tab="rules" count={rules?.length} />
          </header>
          <div className="list-bar">
            <Link to="/alerts" search={{ tab: 'rules', form: 'new' }} className="button">
              New rule <kbd>N</kbd>
            </Link>
            <CopyCurl path="/policies/get_alerts" body={{ page_size: 100 }} />
          </div>
          {!rules && !error && <Loading />}
          {!rules && error && <Failed error={error} retry={() => void refetch()} />}
          {rules?.length === 0 && (
            <div className="empty">
              <h2>No alert rules yet</h2>
              <p className="quiet">
                A rule names events and the webhook, Slack channel or people that are told of them. Begin with agents
                that go offline, or messages that fail.
              </p>
            </div>
          )}
          <ul className="entries">
            {rules?.map((rule) => (
              <li key={rule.rule_id} id={rule.rule_id}>
                <RuleRow rule={rule} isCurrent={rule === current} />
              </li>
            ))}
          </ul>
        </>
      }
    >
      {isNew && <RuleForm key="new" rule={undefined} onDone={(rule) => show(rule ? { rule } : {})} />}
      {!isNew && current && search.form === 'edit' && (
        <RuleForm key={current.rule_id} rule={current} onDone={() => show({ rule: current.rule_id })} />
      )}
      {!isNew && current && search.form === undefined && (
        <RuleDetail key={current.rule_id} rule={current} onDeleted={() => show({})} />
      )}
      {!isNew && rules && !current && (
        <div className="empty">
          {search.rule === undefined ? (
            <p className="quiet">Select a rule, or make one.</p>
          ) : (
            <>
              <h2>This rule is not here</h2>
              <p className="quiet">It may be deleted. The audit says by whom.</p>
            </>
          )}
        </div>
      )}
    </Split>
  );
}
