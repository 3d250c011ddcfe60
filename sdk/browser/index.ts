export { ApiError, ClientClosedError, isTransient, UnreachableError } from '../client/api/errors.js';
export type * from '../client/exported-types.js';
export { hasEnded, isWaiting } from '../client/send/sent-task.js';
export { TaskFailedError, TaskNotEndedError } from '../client/send/task-error.js';
export { dataOf, textOf, textStream } from '../client/send/text.js';
export { FleetClient, type FleetClientOptions } from './fleet-client.js';
