/** The database of a platform, with the views and functions of the release that runs. */
import pg from 'pg';

/** @returns a connected client; its owner ends it */
export async function connectDatabase(databaseUrl) {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  const { rows } = await client.query('SELECT name FROM function_schemas ORDER BY applied_at DESC LIMIT 1');
  await client.query(`SET search_path = ${rows[0].name}, public`);
  return client;
}

/** A connection for the time of `work`. */
export async function withDatabase(databaseUrl, work) {
  const client = await connectDatabase(databaseUrl);
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
