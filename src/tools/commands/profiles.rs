//! `abgauge profiles`: prints the conventions, choice by choice.

mod json;
mod text;

use std::process::ExitCode;

use abgauge_core::metrics::Profile;

use super::{misuse, print, unknown, with_counting};
use crate::tools::cli::{ProfilesArgs, TableOrJson};

/// Prints all profiles or one.
///
/// # Errors
/// If they cannot be written.
pub fn profiles(args: &ProfilesArgs) -> anyhow::Result<ExitCode> {
    with_counting(args.config.as_deref(), |counting| {
        let known = &counting.known_profiles;
        let renamed = known.iter().filter(|profile| !profile.has_old_name());
        let listed: Vec<Profile> = renamed.cloned().collect();
        let text = match (&args.name, args.format) {
            (None, TableOrJson::Table) => text::all(&listed),
            (None, TableOrJson::Json) => json::document(&listed)?,
            (Some(name), format) => {
                let Some(profile) = known.iter().find(|profile| profile.name == *name) else {
                    let names: Vec<&str> = listed.iter().map(|profile| profile.name.as_str()).collect();
                    return Ok(misuse("profiles", &unknown(name, "[NAME]", &names)));
                };
                match format {
                    TableOrJson::Table => text::one(profile),
                    TableOrJson::Json => json::document(std::slice::from_ref(profile))?,
                }
            }
        };
        print(&text)?;
        Ok(ExitCode::SUCCESS)
    })
}

/// Returns true if the profile reports this metric.
fn reports(profile: &Profile, id: &str) -> bool {
    profile.metrics.contains(&id)
}
