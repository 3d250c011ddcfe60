-- The input and the result of routing (routing/choose_agent.sql).

-- What routing knows of a message and its session, or of a session that is to get an agent.
CREATE TYPE routing AS (
  for_message boolean, -- false: of a session, which takes no place among an agent's messages (`max_concurrent_tasks`)
  tenant_id text,
  session_id text, -- NULL: the message opens one
  reserves_on text, -- the instance on which the session reserves its place (the function of that name)
  session_instance_id text, session_agent_type text,
  served_instance_id text, served_agent_type text, -- the agent that the message was dispatched to before
  want_instance_id text, want_agent_type text, want_skill_id text,
  unreachable_ids text[],
  -- The node that asks, which sends to agents that are connected to it, and to hosted ones; NULL: a process that sends
  -- to none.
  mesh_id text,
  reaches_nodes boolean, -- the process can notify other nodes of a message for their agents
  unwritten_ids text[] -- an instance for each message that this transaction has given to an agent and not yet written
);

-- Makes a `routing` from named members. Postgres inlines it, so it costs nothing.
CREATE FUNCTION new_routing(
  for_message boolean DEFAULT true, tenant_id text DEFAULT NULL, session_id text DEFAULT NULL,
  reserves_on text DEFAULT NULL, session_instance_id text DEFAULT NULL, session_agent_type text DEFAULT NULL,
  served_instance_id text DEFAULT NULL, served_agent_type text DEFAULT NULL, want_instance_id text DEFAULT NULL,
  want_agent_type text DEFAULT NULL, want_skill_id text DEFAULT NULL, unreachable_ids text[] DEFAULT NULL,
  mesh_id text DEFAULT NULL, reaches_nodes boolean DEFAULT NULL, unwritten_ids text[] DEFAULT NULL
) RETURNS routing LANGUAGE sql IMMUTABLE AS $$
  SELECT (for_message, tenant_id, session_id, reserves_on, session_instance_id, session_agent_type, served_instance_id,
    served_agent_type, want_instance_id, want_agent_type, want_skill_id, unreachable_ids, mesh_id, reaches_nodes,
    unwritten_ids)::routing
$$;

-- The agent, its room reserved until the transaction ends.
CREATE TYPE chosen_agent AS (
  instance_id text, agent_type text, deployment_mode text,
  mesh_id text, -- the node that sends to it
  connection_epoch bigint, public_url text, agent_card jsonb, dispatch_auth bytea,
  unbounded boolean, -- it has no bound on its sessions or messages
  -- It is `unbounded`, and no other agent of its type may have room, so every message that names only the type goes to
  -- it.
  only_one boolean
);
