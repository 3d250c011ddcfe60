import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { AgentTypeActivity } from '../../contracts/api/agents.js';
import { failuresQuery, instancesBody, instancesQuery } from '../api/fleet.js';
import { CopyCurl } from '../parts/copy.js';
import { Fact } from '../parts/fact.js';
import { Icon } from '../parts/icon.js';
import { Failed, Loading } from '../parts/states.js';
import { numberText } from '../parts/texts.js';
import { Ago } from '../parts/time.js';
import { healthOf } from './health.js';
import { HealthBadge } from './health-badge.js';
import { instanceName } from './instance-name.js';
import { Instances } from './instances.js';

/** What has failed last, each with a link to the message. */
function Failures({ agentType }: { agentType: string }) {
  const { data = [] } = useQuery(failuresQuery(agentType));
  if (data.length === 0) return null;
  return (
    <section>
      <h3>Newest failures</h3>
      <ul className="failed-messages">
        {data.map(({ message_id, error, completed_at, updated_at, instance_id, user_input }) => (
          <li key={message_id}>
            <Link to="/messages/$messageId" params={{ messageId: message_id }} search={{}}>
              <span className="line">
                <strong>{error?.code ?? 'failed'}</strong>
                <span className="quiet small">
                  <Ago at={completed_at ?? updated_at} />
                </span>
              </span>
              <span className="cut">{error?.message || user_input}</span>
              <span className="quiet small cut">
                {instance_id ? instanceName(instance_id) : 'no instance'} · “{user_input.slice(0, 120)}”
              </span>
            </Link>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** One agent type: how it fares, its instances, and what it failed last. */
export function TypeDetail({ type, instance }: { type: AgentTypeActivity; instance: string | undefined }) {
  const { agent_type, instances, online, in_flight, max_concurrent_sessions, queue_length, queued_since } = type;
  const list = useQuery(instancesQuery(agent_type));
  const { failed_last_hour, last_error } = type;
  return (
    <article className="detail">
      <header>
        <div className="line title">
          <h2>{agent_type}</h2>
          <HealthBadge health={healthOf(type)} />
          <Link to="/talk" search={{ agent: agent_type }} className="button">
            <Icon name="talk" /> Talk
          </Link>
        </div>
      </header>
      <dl className="facts tiles">
        <Fact name="Online">
          {online} <span className="quiet">of {instances}</span>
        </Fact>
        <Fact name="In flight">
          {numberText(in_flight)}{' '}
          {max_concurrent_sessions !== 0 && (
            <span className="quiet">
              {max_concurrent_sessions === null ? 'no limit' : `of ${numberText(max_concurrent_sessions)} sessions`}
            </span>
          )}
        </Fact>
        <Fact name="Queue">
          {numberText(queue_length)}{' '}
          {queued_since && (
            <span className="quiet">
              first waits <Ago at={queued_since} short />
            </span>
          )}
        </Fact>
        <Fact name="Failed, last hour">
          <span className={failed_last_hour > 0 ? 'problem' : undefined}>{numberText(failed_last_hour)}</span>{' '}
          {last_error && failed_last_hour > 0 && <span className="quiet">{last_error}</span>}
        </Fact>
      </dl>
      <section>
        <h3>Instances</h3>
        {list.error && !list.data && <Failed error={list.error} retry={() => void list.refetch()} />}
        {!list.data && !list.error && <Loading rows={Math.min(4, Math.max(1, instances))} />}
        {list.data && list.data.agents.length === 0 && (
          <p className="notice">
            None is registered. Start an agent of this type: what waits goes to it at once, until each message’s time is
            up.
          </p>
        )}
        {list.data && list.data.agents.length > 0 && <Instances agents={list.data.agents} current={instance} />}
        {list.data && list.data.count > list.data.agents.length && (
          <p className="quiet">
            The newest {list.data.agents.length} of {numberText(list.data.count)}. Read the others over the API.
          </p>
        )}
      </section>
      <Failures agentType={agent_type} />
      <footer className="quiet">
        <CopyCurl path="/agents/get" body={instancesBody(agent_type)} />
      </footer>
    </article>
  );
}
