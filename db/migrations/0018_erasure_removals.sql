-- What an erasure removes outside of the database at this moment, workflows and keys in Redis: noted before, so that a crash leaves none of it
-- out of the report (erasure/external-removal.ts).
ALTER TABLE erasures ADD COLUMN removing_workflows text[] NOT NULL DEFAULT '{}', ADD COLUMN removing_keys text[] NOT NULL DEFAULT '{}';
