-- Knowledge bases: their sources with the chunks that are searched, and the jobs that write them.

-- Revisions of knowledge bases, and the order in which documents were taken in. Numbers are never used twice, so that a base which is deleted
-- and made again has no revision of before.
CREATE SEQUENCE knowledge_order;
GRANT USAGE ON SEQUENCE knowledge_order TO fleet_app, fleet_system;

CREATE TABLE knowledge_bases (
  tenant_id text NOT NULL REFERENCES tenants, namespace text COLLATE "C" NOT NULL,
  display_name text NOT NULL, description text NOT NULL,
  visibility text NOT NULL CHECK (visibility IN ('private', 'tenant')),
  config jsonb NOT NULL,
  created_by text NOT NULL, -- credential_id; with `private`, only it and the scope `full` reach the base
  idempotency_key text, -- of the call that created it, if it named one
  fingerprint text, -- SHA-256 of that call's request, in hex
  -- Grows with every change that a query may see: the key of what processes keep of the base in memory.
  revision bigint NOT NULL DEFAULT nextval('knowledge_order'),
  deletions bigint NOT NULL DEFAULT 0, -- of its sources: who has seen fewer of them compares all sources, else those of later revisions
  last_ingested_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT now(), updated_at timestamptz NOT NULL DEFAULT now(),
  deleted_at timestamptz, -- its rows are being deleted, in batches; it answers as if it were not there
  PRIMARY KEY (tenant_id, namespace)
);
CREATE INDEX knowledge_bases_newest ON knowledge_bases (tenant_id, created_at, namespace) WHERE deleted_at IS NULL;
CREATE INDEX knowledge_bases_deleted ON knowledge_bases (deleted_at) WHERE deleted_at IS NOT NULL;

-- One document as it was taken in last. It is written and replaced together with its chunks, in one transaction.
CREATE TABLE knowledge_sources (
  tenant_id text NOT NULL, namespace text COLLATE "C" NOT NULL, source_id text COLLATE "C" NOT NULL,
  place bigint NOT NULL, -- of the call that wrote it last: an older call never replaces a newer one. A refresh leaves it as it is
  version bigint NOT NULL, -- of its chunks: the place of the document that they were made from
  revision bigint NOT NULL DEFAULT 0, -- of the base when its chunks were written
  title text NOT NULL, filename text, url text, etag text,
  content_type text NOT NULL, -- the type that was found, by which it was parsed
  source_type text,
  declared jsonb NOT NULL DEFAULT '{}', -- title, filename and content_type as the caller named them, for when the URL is read again
  tags text[] NOT NULL DEFAULT '{}', metadata jsonb NOT NULL DEFAULT '{}',
  content_hash text NOT NULL, -- SHA-256 of the content as it came, in hex
  chunking text NOT NULL, -- what the chunks depend on besides the content: parser and chunk settings
  extracted bytea NOT NULL, -- the text with its outline, gzip of JSON: what is cut into chunks anew where the content is gone
  chunk_count integer NOT NULL, token_count bigint NOT NULL, byte_count bigint NOT NULL,
  model text, dim integer, -- of all its chunks; NULL without an embedder
  created_at timestamptz NOT NULL DEFAULT now(), updated_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, namespace, source_id),
  FOREIGN KEY (tenant_id, namespace) REFERENCES knowledge_bases
);
CREATE INDEX knowledge_sources_newest ON knowledge_sources (tenant_id, namespace, created_at, source_id);
CREATE INDEX knowledge_sources_changed ON knowledge_sources (tenant_id, namespace, revision);

CREATE TABLE knowledge_chunks (
  tenant_id text NOT NULL, namespace text COLLATE "C" NOT NULL, source_id text COLLATE "C" NOT NULL,
  ordinal integer NOT NULL, -- from 0, in the order of the text
  chunk_id text COLLATE "C" NOT NULL,
  text text NOT NULL,
  char_start integer NOT NULL, char_end integer NOT NULL, -- UTF-16 units of the extracted text
  page_start integer, page_end integer, -- from 1; NULL where the format has no pages
  heading_path text[] NOT NULL DEFAULT '{}', -- the outermost heading first
  tokens integer NOT NULL,
  embedding bytea, dim integer, model text, -- 32-bit floats, little endian, of length 1; NULL without an embedder
  PRIMARY KEY (tenant_id, namespace, source_id, ordinal),
  CHECK ((embedding IS NULL) = (model IS NULL) AND (embedding IS NULL) = (dim IS NULL)),
  FOREIGN KEY (tenant_id, namespace, source_id) REFERENCES knowledge_sources ON DELETE CASCADE
);
CREATE UNIQUE INDEX knowledge_chunks_by_id ON knowledge_chunks (tenant_id, chunk_id);

-- A call that takes in documents, or renews sources. Its workflow is `ingest:{tenant}:{job_id}`.
CREATE TABLE knowledge_jobs (
  tenant_id text NOT NULL, job_id text COLLATE "C" NOT NULL, namespace text COLLATE "C" NOT NULL,
  operation text NOT NULL CHECK (operation IN ('create', 'ingest', 'refresh')),
  status text NOT NULL CHECK (status IN ('processing', 'completed', 'failed')),
  phase text NOT NULL CHECK (phase IN ('queued', 'working', 'done')),
  created_by text NOT NULL,
  idempotency_key text, fingerprint text NOT NULL, -- SHA-256 of the request, in hex
  documents integer NOT NULL,
  wake_at timestamptz, -- when to look whether the job is at work at all; NULL once it has ended
  created_at timestamptz NOT NULL DEFAULT now(), updated_at timestamptz NOT NULL DEFAULT now(), ended_at timestamptz,
  PRIMARY KEY (tenant_id, job_id),
  UNIQUE (tenant_id, namespace, idempotency_key),
  FOREIGN KEY (tenant_id, namespace) REFERENCES knowledge_bases ON DELETE CASCADE
);
CREATE INDEX knowledge_jobs_waiting ON knowledge_jobs (wake_at) WHERE status = 'processing';
CREATE INDEX knowledge_jobs_processing ON knowledge_jobs (tenant_id) WHERE status = 'processing';
CREATE INDEX knowledge_jobs_ended ON knowledge_jobs (ended_at) WHERE ended_at IS NOT NULL;

-- The documents of a job. `content` is gone as soon as the document is done.
CREATE TABLE knowledge_documents (
  tenant_id text NOT NULL, job_id text COLLATE "C" NOT NULL, ordinal integer NOT NULL,
  namespace text COLLATE "C" NOT NULL, source_id text COLLATE "C" NOT NULL,
  place bigint NOT NULL DEFAULT nextval('knowledge_order'),
  state text NOT NULL CHECK (state IN ('pending', 'done', 'failed')),
  input jsonb NOT NULL, -- title, filename, url, types, tags, metadata
  content bytea, -- NULL: to be fetched from the URL, or to be made anew from the stored source
  content_bytes bigint NOT NULL,
  content_hash text,
  attempts integer NOT NULL DEFAULT 0, -- begun; a document that ends its process again and again is given up
  result text CHECK (result IN ('created', 'updated', 'unchanged', 'failed')),
  chunk_count integer NOT NULL DEFAULT 0,
  chunks_done integer NOT NULL DEFAULT 0, -- embedded, while it is pending
  error jsonb, -- {code, message}
  PRIMARY KEY (tenant_id, job_id, ordinal),
  CHECK (state = 'pending' OR content IS NULL),
  FOREIGN KEY (tenant_id, job_id) REFERENCES knowledge_jobs ON DELETE CASCADE
);
CREATE INDEX knowledge_documents_of_source ON knowledge_documents (tenant_id, namespace, source_id) WHERE state = 'pending';

-- Compressing these would take time and save nothing: they are files, zipped text, and numbers.
ALTER TABLE knowledge_documents ALTER COLUMN content SET STORAGE EXTERNAL;
ALTER TABLE knowledge_sources ALTER COLUMN extracted SET STORAGE EXTERNAL;
ALTER TABLE knowledge_chunks ALTER COLUMN embedding SET STORAGE EXTERNAL;

SELECT isolate_tenants('{knowledge_bases,knowledge_sources,knowledge_chunks,knowledge_jobs,knowledge_documents}');
