import type { z } from 'zod';
import { errorMessage } from '../../runtime/errors.js';
import { FleetClient } from '../../sdk/index.js';
import { CliError } from '../fleet-store.js';
import type { Terminal } from './terminal.js';

/** What commands that call the API have. */
export interface Session {
  client: FleetClient;
  terminal: Terminal;
  /** `--json`: nothing but JSON goes to standard output. */
  json: boolean;
}

/** An operation of the API: its path and its schemas. */
interface Called<Request extends z.ZodType, Response extends z.ZodType> {
  path: string;
  request: Request;
  response: Response;
}

/** Calls an operation that only reads, with the names of the wire, which `--json` prints. Nothing of what a newer platform adds is lost. */
export function read<Request extends z.ZodType, Response extends z.ZodType>(
  { client }: Pick<Session, 'client'>,
  { path }: Called<Request, Response>,
  body: z.input<Request>,
): Promise<z.output<Response>> {
  const unchanged = { parse: (value: unknown) => value as z.output<Response> };
  return client.post(path, body, unchanged, { retry: true });
}

/**
 * A client of the platform at `url`, else `FLEET_URL`, else where the SDK finds one: `FLEET_BASE_URL`, or `dev.json` in `FLEET_DATA_DIR`.
 * @throws CliError where an address or a credential is missing
 */
export function connect(url: string | undefined): FleetClient {
  const given = url ?? process.env.FLEET_URL;
  try {
    return new FleetClient(given ? { url: given } : {});
  } catch (cause) {
    throw new CliError(errorMessage(cause), { cause });
  }
}
