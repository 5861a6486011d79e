//! The statistics match other packages, block by block of tests/data/statistics.json, and keep their laws.

mod buckets;
mod checks;
mod decisions;
mod laws;
mod looks;
mod pictures;
mod sequences;
mod vectors;
mod world;
