import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import type { ListedAgent } from '../../contracts/api/agents.js';
import { call } from '../api/call.js';
import { connectionQuery } from '../api/fleet.js';
import { hasScope, sessionQuery } from '../api/session.js';
import { CopyCurl } from '../parts/copy.js';
import { Dialog } from '../parts/dialog.js';
import { Fact } from '../parts/fact.js';
import { numberText } from '../parts/texts.js';
import { Ago } from '../parts/time.js';
import { bySince, latencyText, roomOf } from './health.js';
import { instanceName } from './instance-name.js';

const TONES: Record<ListedAgent['status'], string> = {
  ...{ available: 'good', busy: 'busy', draining: 'wait' },
  ...{ unhealthy: 'bad', offline: '', unknown: '' },
};

/** Drains an instance, ends that, or takes it out. */
function Actions({ agent }: { agent: ListedAgent }) {
  const { instance_id, status, in_flight } = agent;
  const client = useQueryClient();
  const [asks, setAsks] = useState(false);
  const act = useMutation({
    mutationFn: (path: '/agents/drain' | '/agents/undrain' | '/agents/deregister') => call(path, { instance_id }),
    onSettled: () => client.invalidateQueries({ queryKey: ['fleet'] }),
  });
  const drain = status === 'draining' ? '/agents/undrain' : '/agents/drain';
  return (
    <div className="actions">
      <button type="button" disabled={act.isPending} onClick={() => act.mutate(drain)}>
        {status === 'draining' ? 'End the drain' : 'Drain'}
      </button>
      <button type="button" disabled={act.isPending} onClick={() => setAsks(true)}>
        Deregister
      </button>
      <CopyCurl path={drain} body={{ instance_id }} />
      {act.error && (
        <p className="problem" role="alert">
          {act.error.message}
        </p>
      )}
      {act.isSuccess && act.variables !== '/agents/deregister' && (
        <p className="quiet" role="status">
          {act.variables === '/agents/drain'
            ? 'It gets nothing new, and finishes what it has.'
            : 'It takes messages again, unless it reports otherwise.'}
        </p>
      )}
      {asks && (
        <Dialog label="Deregister this instance?" onClose={() => setAsks(false)}>
          <h2>Deregister {instance_id}?</h2>
          <p>
            It gets no new work, and its sessions go on with another agent of its type.{' '}
            {in_flight > 0
              ? `It may finish the ${in_flight} ${in_flight === 1 ? 'message' : 'messages'} that it has for 30 s. `
              : ''}
            It stays away until somebody starts it again. To take it out for a while, drain it.
          </p>
          <div className="buttons">
            <button
              type="button"
              className="no"
              onClick={() => {
                setAsks(false);
                act.mutate('/agents/deregister');
              }}
            >
              Deregister
            </button>
            <button type="button" onClick={() => setAsks(false)}>
              Leave it
            </button>
          </div>
        </Dialog>
      )}
    </div>
  );
}

/** What one instance has to say beyond its row. */
function InstanceDetail({ agent }: { agent: ListedAgent }) {
  const { data: session } = useQuery(sessionQuery);
  const { data: connection } = useQuery(connectionQuery(agent.instance_id));
  const { public_url, mesh_id, registered_at, sent_per_minute, in_flight, queue_length } = agent;
  const { max_concurrent_tasks, max_concurrent_sessions, current_sessions } = agent;
  const bound = (most: number) => (most === 0 ? 'no limit' : `of ${numberText(most)}`);
  return (
    <div className="instance-detail">
      {connection?.degraded_reason && <p className="notice bad">{connection.degraded_reason}</p>}
      <dl className="facts">
        <Fact name="Messages in flight">
          {numberText(in_flight)} <span className="quiet">{bound(max_concurrent_tasks)}</span>
        </Fact>
        <Fact name="Sessions">
          {numberText(current_sessions)} <span className="quiet">{bound(max_concurrent_sessions)}</span>
        </Fact>
        <Fact name="Waiting for it alone">{numberText(queue_length)}</Fact>
        <Fact name="Sent in the last minute">{numberText(sent_per_minute)}</Fact>
        <Fact name={public_url ? 'Address' : 'Connected'}>
          {public_url ?? (connection?.connected_since ? <Ago at={connection.connected_since} /> : 'not now')}
        </Fact>
        <Fact name="Registered">
          <Ago at={registered_at} />
        </Fact>
        {mesh_id && (
          <Fact name="Node">
            <code>{mesh_id}</code>
          </Fact>
        )}
        {connection && (
          <Fact name="Dispatches in all">
            {numberText(connection.dispatches_succeeded)} succeeded,{' '}
            <span className={connection.dispatches_failed > 0 ? 'problem' : undefined}>
              {numberText(connection.dispatches_failed)} failed
            </span>
          </Fact>
        )}
      </dl>
      {session && hasScope(session, 'admin') && <Actions agent={agent} />}
    </div>
  );
}

function InstanceRow({ agent, isOpen }: { agent: ListedAgent; isOpen: boolean }) {
  const { instance_id, status, last_seen, agent_version, mesh_id, latency_ms, failing_since } = agent;
  const { failed_last_hour, last_error } = agent;
  const room = roomOf(agent);
  return (
    <>
      <tr className={isOpen ? 'open' : undefined}>
        <th scope="row">
          <Link
            from="/fleet"
            to="/fleet"
            search={({ instance: shown, ...old }) => ({
              ...old,
              ...(shown === instance_id ? {} : { instance: instance_id }),
            })}
            replace
            aria-expanded={isOpen}
          >
            {instanceName(instance_id)}
          </Link>
          <span className="line small">
            {failing_since ? (
              <>
                <span className="badge bad">
                  failing for <Ago at={failing_since} short />
                </span>
                <span className="quiet">{status}</span>
              </>
            ) : (
              <>
                <span className={`badge ${TONES[status]}`}>{status}</span>
                {last_seen && (
                  <span className="quiet">
                    seen <Ago at={last_seen} />
                  </span>
                )}
              </>
            )}
          </span>
        </th>
        <td data-name="In flight">
          <span className="room">
            {numberText(room.used)} <span className="quiet">of {room.of === null ? 'any' : numberText(room.of)}</span>
            {room.of !== null && <meter aria-label="Room in use" max={room.of} value={room.used} />}
          </span>
        </td>
        <td data-name="p50">{latencyText(latency_ms.p50)}</td>
        <td data-name="p95">{latencyText(latency_ms.p95)}</td>
        <td data-name="Failed, 1 h">
          <span className={failed_last_hour > 0 ? 'problem' : undefined}>{numberText(failed_last_hour)}</span>
          {last_error && <span className="quiet small error-code">{last_error}</span>}
        </td>
        <td data-name="Version">{agent_version ?? '–'}</td>
        <td data-name="Node">
          <code title={mesh_id ?? undefined}>{mesh_id ? `…${mesh_id.slice(-6)}` : '–'}</code>
        </td>
      </tr>
      {isOpen && (
        <tr className="more">
          <td colSpan={7}>
            <InstanceDetail agent={agent} />
          </td>
        </tr>
      )}
    </>
  );
}

/** The instances of a type, those that fail first. One of them may be open. */
export function Instances({ agents, current }: { agents: readonly ListedAgent[]; current: string | undefined }) {
  const inOrder = agents.toSorted(
    (one, other) =>
      bySince(one.failing_since, other.failing_since) ||
      Number(one.status === 'offline') - Number(other.status === 'offline') ||
      one.instance_id.localeCompare(other.instance_id, undefined, { numeric: true }),
  );
  return (
    <table className="table instances">
      <thead>
        <tr>
          <th scope="col">Instance</th>
          <th scope="col">In flight</th>
          <th scope="col">p50</th>
          <th scope="col">p95</th>
          <th scope="col">Failed, 1 h</th>
          <th scope="col">Version</th>
          <th scope="col">Node</th>
        </tr>
      </thead>
      <tbody>
        {inOrder.map((agent) => (
          <InstanceRow key={agent.instance_id} agent={agent} isOpen={agent.instance_id === current} />
        ))}
      </tbody>
    </table>
  );
}
