import { SHORT_WAY } from '../setup/ways.js';
import { outages } from './outages.js';

outages(SHORT_WAY);
