//! The command line, and every command other than `run` and `demo`.

pub mod catalogue_count;
pub mod check;
pub mod cli;
pub mod commands;
pub mod convert;
pub mod health;
pub mod simulate;
