import { Connection, type ConnectionOptions, isGrpcServiceError } from '@temporalio/client';
import type { DataConverter } from '@temporalio/common';
import { AsyncContext } from '../../runtime/async-context.js';
import { errorMessage } from '../../runtime/errors.js';

const CHECK_TIMEOUT_MS = 5_000;

/** gRPC status codes after which repeating a call does not help. */
const REFUSALS = {
  invalidArgument: 3,
  notFound: 5,
  permissionDenied: 7,
  failedPrecondition: 9,
  unimplemented: 12,
  unauthenticated: 16,
};
const REFUSED = new Set(Object.values(REFUSALS));

/** Temporal is away, overloaded or starting: it may be used later. */
export class TemporalUnavailable extends Error {
  override readonly name = 'TemporalUnavailable';
}

/** Temporal's namespace and where it is. */
export interface TemporalTarget {
  options: ConnectionOptions & { address: string };
  namespace: string;
  /** Used by every client and worker. */
  dataConverter: DataConverter;
}

function statusOf(error: unknown): number | undefined {
  if (isGrpcServiceError(error)) return error.code;
  return error instanceof Error && error.cause !== undefined ? statusOf(error.cause) : undefined;
}

/** Whether a failed call to Temporal may succeed when it is repeated. The client wraps some errors. */
export function isUnavailable(error: unknown): boolean {
  if (error instanceof TemporalUnavailable) return true;
  const status = statusOf(error);
  return status !== undefined && !REFUSED.has(status);
}

function refusal({ options: { address }, namespace }: TemporalTarget, error: unknown): Error {
  const status = statusOf(error);
  const cause = { cause: error };
  if (status === REFUSALS.notFound) {
    const remedy = `create it (temporal operator namespace create -n ${namespace}), or set TEMPORAL_NAMESPACE`;
    return new Error(`Temporal at ${address} has no namespace ${namespace}: ${remedy}`, cause);
  }
  const reason = errorMessage(error);
  if (status === REFUSALS.permissionDenied || status === REFUSALS.unauthenticated) {
    const remedy = 'check TEMPORAL_API_KEY, the client certificate in TEMPORAL_TLS_… and what they permit';
    return new Error(
      `Temporal at ${address} does not permit the use of the namespace ${namespace} (${reason}): ${remedy}`,
      cause,
    );
  }
  const remedy = 'check TEMPORAL_ADDRESS and TEMPORAL_NAMESPACE';
  return new Error(`Temporal at ${address} refuses the namespace ${namespace} (${reason}): ${remedy}`, cause);
}

/** @throws Error for an address that cannot be one */
export function checkAddress(address: string): void {
  if (URL.canParse(`http://${address}`)) return;
  throw new Error(`TEMPORAL_ADDRESS is not the address of a Temporal server: ${address}. It has the form host:port.`);
}

/**
 * Asks once for the namespace, as the workers do when they start; their error has no status code.
 * @throws TemporalUnavailable when Temporal may answer later
 * @throws Error that names the remedy when it refuses
 */
export async function checkNamespace(target: TemporalTarget): Promise<void> {
  const { namespace } = target;
  // Without interceptors the client does not retry: retries would end with a deadline error that hides the reason.
  const connection = Connection.lazy({ ...target.options, interceptors: [] });
  const describe = () => connection.workflowService.describeNamespace({ namespace });
  try {
    const context = AsyncContext.of(connection.callContextStorage);
    await context.run(() => connection.withDeadline(Date.now() + CHECK_TIMEOUT_MS, describe));
  } catch (error) {
    if (isUnavailable(error)) throw new TemporalUnavailable(errorMessage(error), { cause: error });
    throw statusOf(error) === undefined ? error : refusal(target, error);
  } finally {
    await connection.close();
  }
}
