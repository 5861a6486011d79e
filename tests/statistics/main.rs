//! Experiments from look to look, and laws that hold for any sums.

mod laws;
mod looks;
mod world;
