import { WORKFLOW_PATH } from '../../../setup/platform/paths.js';
import { outages } from './outages.js';

outages(WORKFLOW_PATH);
