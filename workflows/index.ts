export { agentWatch } from './agent-watch.js';
export { delivery } from './delivery.js';
export { message } from './message.js';
export { session } from './session.js';
