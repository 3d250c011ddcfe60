import fc from 'fast-check';
import { SEED } from './seed.js';

// Every property without a seed of its own draws the same values in each run of the gate.
fc.configureGlobal({ seed: SEED });
