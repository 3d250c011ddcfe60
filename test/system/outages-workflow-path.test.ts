import { LONG_WAY } from '../setup/paths.js';
import { outages } from './outages.js';

outages(LONG_WAY);
