-- Who may do what: the credential that an instance was registered with does not answer that instance's questions, and a context that an agent
-- named is its own from the moment that it is opened.
ALTER TABLE agents ADD COLUMN credential_id text;
ALTER TABLE sessions ADD COLUMN sender_agent_type text;
