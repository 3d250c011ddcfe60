-- What routing takes and gives (routing/choose_agent.sql).

-- What routing knows of a message and its session; `session_id` NULL: the message opens one. `served_*`: the agent that the message was
-- dispatched to before. `only_mesh_id`: the fast path asks: it wants an agent on that mesh node, and nothing that needs the session's lock.
-- `has_decision`: it carries a human's answer; NULL: there is no message, a session reserves its place.
-- `any_mesh`: an agent on another node will do as well. `unsent`: the message opened the session, and no agent has got anything of it.
-- `unwritten_ids`: the instances that messages of this transaction go to whose rows are not there yet, one for each.
CREATE TYPE routing AS (
  tenant_id text, session_id text, session_explicit boolean, session_reserves boolean, session_suspended boolean, session_instance_id text,
  session_agent_type text, served_instance_id text, served_agent_type text, want_instance_id text, want_agent_type text,
  want_skill_id text, unreachable_ids text[], has_decision boolean, only_mesh_id text, any_mesh boolean, unsent boolean,
  unwritten_ids text[]
);

-- The agent, its room reserved until the transaction ends. `join_reason`: how the session is bound by it, 'routed' or 'failover'; NULL: it
-- was bound before. `unreachable`: no connection to it opened for this message, or it was not ready. `awaits`, and no agent: on the fast path the
-- instance on which another transaction reserves room, on the workflow path the queue that the message waits in (routing/queues.sql).
-- `unbounded`: it has no bound on its sessions or messages; `only_one`: and no other of its type may have room, so every message that names just the type
-- goes there.
CREATE TYPE chosen_agent AS (
  instance_id text, agent_type text, deployment_mode text, mesh_id text, connection_epoch bigint, public_url text, agent_card jsonb,
  dispatch_auth bytea, unreachable boolean, join_reason text, awaits text, unbounded boolean, only_one boolean
);
