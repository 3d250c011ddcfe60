import { FAST_PATH } from '../setup/paths.js';
import { outages } from './outages.js';

outages(FAST_PATH);
