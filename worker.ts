// The Temporal worker on its own: the worker role.
import { main } from './platform/main.js';

main(['--roles', 'worker']);
