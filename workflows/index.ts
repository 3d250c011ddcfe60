import { watch } from './stubs.js';

export { delivery } from './delivery.js';
export { ingest } from './ingest.js';
export { message } from './message.js';
export { plan } from './plan.js';
export { session } from './session.js';

/** One round of the agent watch; see `createWatchActivities`. */
export const agentWatch = () => watch.watchAgents();
