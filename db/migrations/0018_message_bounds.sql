-- What bounds a message at work.

-- `hops`: how many agents it came through, so that those which send to each other in a loop come to an end, whether they count or not
-- (db/functions/messages/message_hops.sql). `repeat_until`: set with the loss of an agent whose skill is idempotent, to the deadline of the lost
-- dispatch, so that all repeats together have the time of one; a human's answer begins a new one.
ALTER TABLE running_messages ADD COLUMN hops smallint NOT NULL DEFAULT 0, ADD COLUMN repeat_until timestamptz;
