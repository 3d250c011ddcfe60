-- How many agents a message at work came through, so that those which send to each other in a loop come to an end, whether they count or not
-- (db/functions/messages/message_hops.sql).
ALTER TABLE running_messages ADD COLUMN hops smallint NOT NULL DEFAULT 0;
