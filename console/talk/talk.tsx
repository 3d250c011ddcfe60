import { useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { useEffect, useLayoutEffect, useRef, useState } from 'react';
import type { Part } from '../../contracts/a2a/parts.js';
import type { MessageRecord } from '../../contracts/api/messages.js';
import { isUnderWay } from '../../contracts/message-states.js';
import { agentTypesQuery } from '../api/fleet.js';
import { follow, MESSAGE_TYPES } from '../api/live.js';
import { sendBody } from '../api/send.js';
import { CopyCurl, Id } from '../parts/copy.js';
import { Icon } from '../parts/icon.js';
import { WIDE } from '../parts/media.js';
import { Failed, Loading } from '../parts/states.js';
import { numberText } from '../parts/texts.js';
import { conversationQuery } from '../sessions/queries.js';
import { Composer } from './composer.js';
import { type Turn, talks, useTalks } from './talks.js';
import { type Shown, TurnView } from './turn-view.js';

const route = getRouteApi('/talk');
/** Nearer to the end than that, what is new stays in view. */
const NEAR_END_PX = 120;

/** The record's messages in their order, and then those that only this tab knows. */
function shownOf(
  session: string | undefined,
  records: readonly MessageRecord[],
  turns: ReadonlyMap<string, Turn>,
): Shown[] {
  const known = new Set(records.map(({ client_message_id }) => client_message_id));
  const own = [...turns].filter(([key, turn]) => turn.sessionId === session && !known.has(key));
  return [
    ...records.map((record) => {
      const turn = turns.get(record.client_message_id);
      return { key: record.client_message_id, record, ...(turn && { turn }) };
    }),
    ...own.map(([key, turn]) => ({ key, turn })),
  ];
}

/** The messages of a session, followed as they change. */
function useRecords(session: string | undefined) {
  const client = useQueryClient();
  const list = useQuery({ ...conversationQuery(session ?? ''), enabled: session !== undefined });
  useEffect(() => {
    if (session === undefined) return;
    return follow({ session_id: session, types: MESSAGE_TYPES }, () => {
      void client.invalidateQueries({ queryKey: ['talk', session] });
      void client.invalidateQueries({ queryKey: ['request'] });
    });
  }, [client, session]);
  const records = list.data?.records;
  useEffect(() => {
    for (const { state, client_message_id, message_id, parts, created_at } of records ?? [])
      if (isUnderWay(state)) talks.follow(client_message_id, message_id, parts, created_at);
  }, [records]);
  return list;
}

function AgentChoice({ agent, choose }: { agent: string | undefined; choose: (agent: string) => void }) {
  const { data: types = [] } = useQuery(agentTypesQuery);
  const inOrder = types.toSorted(
    (one, other) => Number(other.online > 0) - Number(one.online > 0) || one.agent_type.localeCompare(other.agent_type),
  );
  const isKnown = agent === undefined || types.some(({ agent_type }) => agent_type === agent);
  return (
    <label className="choice">
      <span className="hidden">Agent</span>
      <select value={agent ?? ''} onChange={({ target }) => choose(target.value)}>
        <option value="">The default agent</option>
        {!isKnown && <option value={agent}>{agent}</option>}
        {inOrder.map(({ agent_type, online, failing }) => (
          <option key={agent_type} value={agent_type}>
            {agent_type}
            {online === 0 ? ' (offline)' : failing > 0 ? ' (failing)' : ''}
          </option>
        ))}
      </select>
    </label>
  );
}

/** What a new conversation begins with. */
function Welcome({ agent }: { agent: string | undefined }) {
  const { data: types } = useQuery(agentTypesQuery);
  if (types?.length === 0)
    return (
      <div className="empty">
        <h2>Nobody to talk to yet</h2>
        <p className="quiet">No agent has joined this tenant.</p>
        <Link to="/fleet" search={{}}>
          Connect your first agent
        </Link>
      </div>
    );
  const online = (types ?? []).filter((type) => type.online > 0).slice(0, 6);
  return (
    <div className="empty">
      <h2>{agent ? `Talk to ${agent}` : 'Talk to an agent'}</h2>
      <p className="quiet">
        Write a message below. The answer appears as the agent writes it, and what it asks appears as a form. The
        address of this page keeps the conversation.
      </p>
      {!agent && (
        <ul className="suggested">
          {online.map(({ agent_type }) => (
            <li key={agent_type}>
              <Link to="/talk" search={{ agent: agent_type }}>
                {agent_type}
              </Link>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

/** A conversation with an agent: a session, whose id is in the address. */
export function Talk() {
  const { session, agent: chosen } = route.useSearch();
  const navigate = useNavigate({ from: '/talk' });
  const client = useQueryClient();
  const list = useRecords(session);
  const turns = useTalks();
  const [text, setText] = useState('');
  const field = useRef<HTMLTextAreaElement>(null);
  const thread = useRef<HTMLDivElement>(null);
  const isNearEnd = useRef(true);
  const isHere = useRef(true);
  useEffect(() => {
    isHere.current = true;
    if (matchMedia(WIDE).matches) field.current?.focus();
    return () => {
      isHere.current = false;
    };
  }, []);

  const records = list.data?.records ?? [];
  const shown = shownOf(session, records, turns);
  const agent = chosen ?? records.at(-1)?.agent_type ?? undefined;
  const last = shown.at(-1);
  const ended = last?.turn?.live?.final === true && last.record?.state !== last.turn.live.state;
  // The record has the rest of what a stream has said: the error, the usage, the request.
  useEffect(() => {
    if (ended) void client.invalidateQueries({ queryKey: ['talk', session] });
  }, [ended, client, session]);
  // What is written at the end stays in view, until somebody scrolls up.
  useLayoutEffect(() => {
    const view = thread.current;
    const content = view?.firstElementChild;
    if (!view || !content) return;
    const observer = new ResizeObserver(() => {
      if (isNearEnd.current) view.scrollTop = view.scrollHeight;
    });
    observer.observe(content);
    return () => observer.disconnect();
  }, []);

  const send = async (parts: Part[]) => {
    setText('');
    isNearEnd.current = true;
    const contextId = session === undefined ? {} : { contextId: session };
    const agentType = agent === undefined ? {} : { agentType: agent };
    const opened = await talks.send({ messageId: crypto.randomUUID(), parts, ...contextId, ...agentType });
    if (opened !== undefined && session === undefined && isHere.current)
      void navigate({ search: (old) => ({ ...old, session: opened }), replace: true });
    void client.invalidateQueries({ queryKey: ['talk', opened] });
  };
  const edit = (key: string) => {
    const turn = talks.forget(key);
    const said = (turn?.parts ?? []).flatMap((part) => (part.kind === 'text' ? [part.text] : [])).join('\n');
    setText((typed) => [said, typed].filter(Boolean).join('\n'));
    field.current?.focus();
  };
  const sample = { messageId: 'a-new-id', parts: [{ kind: 'text' as const, text: text || 'hello' }] };
  return (
    <div className="talk">
      <header>
        <h1>Talk</h1>
        <AgentChoice
          agent={agent}
          choose={(name) => void navigate({ search: (old) => ({ ...old, agent: name || undefined }), replace: true })}
        />
        {session && (
          <span className="quiet session">
            <Id id={session} />
          </span>
        )}
        <span className="curl">
          <CopyCurl
            path="/send"
            body={sendBody({ ...sample, ...(session && { contextId: session }), ...(agent && { agentType: agent }) })}
          />
        </span>
        {session && (
          <Link to="/talk" search={agent ? { agent } : {}} className="button" onClick={() => field.current?.focus()}>
            <Icon name="talk" /> New conversation
          </Link>
        )}
      </header>
      <div
        className="thread"
        ref={thread}
        onScroll={({ currentTarget: { scrollHeight, scrollTop, clientHeight } }) => {
          isNearEnd.current = scrollHeight - scrollTop - clientHeight < NEAR_END_PX;
        }}
      >
        <div>
          {session !== undefined && list.isPending && shown.length === 0 && <Loading rows={3} />}
          {list.error && !list.data && <Failed error={list.error} retry={() => void list.refetch()} />}
          {shown.length === 0 && (session === undefined || list.data) && <Welcome agent={agent} />}
          {list.data && list.data.older > 0 && (
            <p className="quiet older">{numberText(list.data.older)} older messages are left out.</p>
          )}
          <ol aria-label="Conversation">
            {shown.map((one) => (
              <TurnView key={one.key} shown={one} edit={edit} />
            ))}
          </ol>
        </div>
      </div>
      <Composer
        text={text}
        setText={setText}
        field={field}
        placeholder={agent ? `Message ${agent}` : 'Message the default agent'}
        send={(parts) => void send(parts)}
      />
    </div>
  );
}
