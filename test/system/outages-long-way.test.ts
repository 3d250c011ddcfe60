import { LONG_WAY } from '../setup/ways.js';
import { outages } from './outages.js';

outages(LONG_WAY);
