import { expect, test } from 'vitest';
import { SEALED } from '../../runtime/sealed-columns.js';
import { freshDatabase } from '../setup/database.js';

/** Bytes that no key of the platform has sealed, and why. */
const UNSEALED = {
  'callback_tokens.token_hash': 'SHA-256 of 256 random bits',
  'credentials.secret_hash': 'a MAC, made anew at the next use',
  'credentials.previous_secret_hash': 'the same',
  'dispatch_transfers.resume_token_hashes': 'SHA-256 of 256 random bits',
  'input_requests.salt': 'goes to whoever may read the request',
  'knowledge_chunks.embedding': 'numbers',
  'knowledge_documents.content': 'a document',
  'knowledge_sources.extracted': 'the text of a document',
  'sign_in_links.link_digest': 'SHA-256 of 256 random bits',
};

test('every column of bytes is sealed anew by a rotation or listed as not sealed', async () => {
  const database = await freshDatabase();
  const columns = await database.column<string>(
    `SELECT c.relname || '.' || a.attname AS name FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND NOT a.attisdropped
      WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
        AND a.atttypid IN ('bytea'::regtype, 'bytea[]'::regtype) ORDER BY 1`,
  );
  const sealed = Object.values(SEALED).map(({ table, column }) => `${table}.${column}`);
  expect(columns).toEqual([...sealed, ...Object.keys(UNSEALED)].sort());
});
