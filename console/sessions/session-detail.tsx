import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import type { SessionDetails } from '../../contracts/api/sessions.js';
import { call } from '../api/call.js';
import { instanceName } from '../fleet/instance-name.js';
import { ConfirmDialog } from '../parts/confirm.js';
import { CopyCurl, Id } from '../parts/copy.js';
import { Fact } from '../parts/fact.js';
import { Icon } from '../parts/icon.js';
import { Badge, Failed, Loading, Problem } from '../parts/states.js';
import { numberText } from '../parts/texts.js';
import { Ago } from '../parts/time.js';
import { Json } from '../parts/value.js';
import { TurnView } from '../talk/turn-view.js';
import { nameOf } from './name.js';
import { conversationQuery, sessionDetailsQuery } from './queries.js';

const ACTS = {
  '/sessions/interrupt': {
    name: 'Stop its work',
    title: 'Stop the work of this session?',
    text: 'What is in flight is canceled, and its agents are told to stop. The session stays usable.',
  },
  '/sessions/close': {
    name: 'Close',
    title: 'Close this session?',
    text: 'What is in flight is canceled, and it takes no further message. This cannot be taken back.',
  },
};
type Act = keyof typeof ACTS;

/** Cancels what is in flight, or ends the session; each after a question. */
function Actions({ session }: { session: SessionDetails }) {
  const { session_id } = session;
  const client = useQueryClient();
  const [asks, setAsks] = useState<Act | null>(null);
  const act = useMutation({
    mutationFn: async (path: Act) => {
      await call(path, { session_id });
    },
    onSettled: () => {
      for (const name of ['sessions', 'session-details', 'talk']) void client.invalidateQueries({ queryKey: [name] });
    },
  });
  return (
    <div className="actions">
      {(Object.keys(ACTS) as Act[]).map((path) => (
        <button key={path} type="button" disabled={act.isPending} onClick={() => setAsks(path)}>
          {ACTS[path].name}
        </button>
      ))}
      <CopyCurl path="/sessions/close" body={{ session_id }} />
      <Problem error={act.error} />
      {asks && (
        <ConfirmDialog
          question={ACTS[asks].title}
          label={ACTS[asks].name}
          danger
          onConfirm={() => act.mutate(asks)}
          close={() => setAsks(null)}
        >
          <p>
            It is the session {nameOf(session)}. {ACTS[asks].text}
          </p>
        </ConfirmDialog>
      )}
    </div>
  );
}

function Facts({ session }: { session: SessionDetails }) {
  const { user_id, sent_by, agents, total_turns, total_tokens, created_at, ended_at, ordered, metadata } = session;
  return (
    <>
      <dl className="facts">
        {user_id !== null && <Fact name="User">{user_id}</Fact>}
        <Fact name="Opened">
          <Ago at={created_at} /> by {sent_by.type} {sent_by.type === 'agent' ? sent_by.id : <Id id={sent_by.id} />}
        </Fact>
        {ended_at && (
          <Fact name="Ended">
            <Ago at={ended_at} />
          </Fact>
        )}
        <Fact name="Agents">
          {agents.length === 0 && 'none yet'}
          {agents.map(({ agent_type, instance_id, join_reason, joined_at }) => (
            <span key={instance_id} className="agent-of">
              <Link to="/fleet" search={{ type: agent_type, instance: instance_id }}>
                {instanceName(instance_id)}
              </Link>{' '}
              <span className="quiet small">
                {join_reason}, <Ago at={joined_at} />
              </span>
            </span>
          ))}
        </Fact>
        <Fact name="Messages">
          {numberText(total_turns)}{' '}
          {total_tokens > 0 && <span className="quiet">{numberText(total_tokens)} tokens</span>}
        </Fact>
        {ordered && <Fact name="Order">one message after the other</Fact>}
      </dl>
      {Object.keys(metadata).length > 0 && (
        <section>
          <h3>Metadata</h3>
          <Json value={metadata} />
        </section>
      )}
    </>
  );
}

/** Its messages in their order, with what was answered. */
function Conversation({ sessionId }: { sessionId: string }) {
  const { data, error, refetch } = useQuery(conversationQuery(sessionId));
  if (error && !data) return <Failed error={error} retry={() => void refetch()} />;
  if (!data) return <Loading rows={3} />;
  if (data.records.length === 0) return <p className="quiet">No message yet.</p>;
  return (
    <>
      {data.older > 0 && (
        <p className="quiet">
          {numberText(data.older)} older messages are left out.{' '}
          <Link to="/messages" search={{ session_id: sessionId }}>
            See all of them
          </Link>
        </p>
      )}
      <ol aria-label="Conversation">
        {data.records.map((record) => (
          <TurnView key={record.message_id} shown={{ key: record.client_message_id, record }} />
        ))}
      </ol>
    </>
  );
}

/** One session: who is in it, and what was said. */
export function SessionDetail({ sessionId }: { sessionId: string }) {
  const { data: session, error, refetch } = useQuery(sessionDetailsQuery(sessionId));
  if (error && !session) return <Failed error={error} retry={() => void refetch()} />;
  if (!session) return <Loading />;
  const isOpen = session.status === 'active' || session.status === 'paused';
  return (
    <article className="detail">
      <header>
        <div className="line title">
          <h2>Session {nameOf(session)}</h2>
          <Badge state={session.status} />
          {isOpen && (
            <Link to="/talk" search={{ session: sessionId }} className="button">
              <Icon name="talk" /> Talk on <kbd>T</kbd>
            </Link>
          )}
        </div>
        <div className="line plan-head">
          <Id id={sessionId} />
          <Link to="/messages" search={{ session_id: sessionId }}>
            Messages
          </Link>
          <Link to="/plans" search={{ session: sessionId }}>
            Plans
          </Link>
          {isOpen && <Actions session={session} />}
        </div>
      </header>
      <Facts session={session} />
      <section>
        <h3>Conversation</h3>
        <Conversation sessionId={sessionId} />
      </section>
      <footer className="quiet">
        <CopyCurl path="/sessions/get_by_id" body={{ session_id: sessionId }} />
      </footer>
    </article>
  );
}
