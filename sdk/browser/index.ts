export { ApiError, isTransient, UnreachableError } from '../client/api/errors.js';
export type * from '../client/exported-types.js';
export { TaskFailedError, textOf, textStream } from '../client/send/text.js';
export { FleetClient, type FleetClientOptions } from './fleet-client.js';
