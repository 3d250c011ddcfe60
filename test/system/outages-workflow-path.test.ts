import { WORKFLOW_PATH } from '../setup/paths.js';
import { outages } from './outages.js';

outages(WORKFLOW_PATH);
