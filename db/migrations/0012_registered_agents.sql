-- Deregistered agents stay on the record, and where agents come and go they are many: the way to those that are registered, which T1 takes,
-- leads past none of them. The predicate is what accept_message and its functions say, word for word; see there for the coalesce.
CREATE INDEX agents_registered ON agents (tenant_id, agent_type) WHERE coalesce(deregistered_at, 'infinity') = 'infinity';
