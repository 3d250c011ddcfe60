import { FAST_PATH } from '../../../setup/platform/paths.js';
import { outages } from './outages.js';

outages(FAST_PATH);
