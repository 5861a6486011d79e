//! The program and its documents, without services.

mod catalogue;
mod command_line;
mod demo;
mod deployment;
mod documents;
mod lifecycle;
mod readme;
mod rollouts;
mod security;
#[path = "../support/mod.rs"]
mod support;
