-- The input and the result of routing (routing/choose_agent.sql).

-- What routing knows of a message and its session; `session_id` NULL: the message opens one. `reserves_on`: the
-- instance on which the session reserves its place (the function of that name). `served_*`: the agent that the message
-- was dispatched to before. `mesh_id`: the node that asks, which sends to agents that are connected to it, and to
-- hosted ones; NULL: a process that sends to none. `any_mesh`: the process can notify other nodes of a message for
-- their agents. `unwritten_ids`: an instance for each message that this transaction has given to an agent and not yet
-- written; NULL: a session reserves a place, without a message.
CREATE TYPE routing AS (
  tenant_id text, session_id text, reserves_on text, session_instance_id text, session_agent_type text,
  served_instance_id text, served_agent_type text, want_instance_id text, want_agent_type text, want_skill_id text,
  unreachable_ids text[], mesh_id text, any_mesh boolean, unwritten_ids text[]
);

-- Makes a `routing` from named members. Postgres inlines it, so it costs nothing.
CREATE FUNCTION new_routing(
  tenant_id text DEFAULT NULL, session_id text DEFAULT NULL, reserves_on text DEFAULT NULL,
  session_instance_id text DEFAULT NULL, session_agent_type text DEFAULT NULL, served_instance_id text DEFAULT NULL,
  served_agent_type text DEFAULT NULL, want_instance_id text DEFAULT NULL, want_agent_type text DEFAULT NULL,
  want_skill_id text DEFAULT NULL, unreachable_ids text[] DEFAULT NULL, mesh_id text DEFAULT NULL,
  any_mesh boolean DEFAULT NULL, unwritten_ids text[] DEFAULT NULL
) RETURNS routing LANGUAGE sql IMMUTABLE AS $$
  SELECT (tenant_id, session_id, reserves_on, session_instance_id, session_agent_type, served_instance_id,
    served_agent_type, want_instance_id, want_agent_type, want_skill_id, unreachable_ids, mesh_id, any_mesh,
    unwritten_ids)::routing
$$;

-- The agent, its room reserved until the transaction ends, and the node that sends to it. `unbounded`: it has no bound
-- on its sessions or messages; `only_one`: `unbounded`, and no other agent of its type may have room, so every message
-- that names only the type goes to it.
CREATE TYPE chosen_agent AS (
  instance_id text, agent_type text, deployment_mode text, mesh_id text, connection_epoch bigint, public_url text,
  agent_card jsonb, dispatch_auth bytea, unbounded boolean, only_one boolean
);
