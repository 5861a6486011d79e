//! Reads the file and the environment.

use std::env;
use std::path::Path;

use toml::de::{DeTable, Error};

use super::error::{ConfigErrors, Place, Report};
use super::raw::Raw;
use super::validate::{counting, validate};
use super::{Config, Counting, layers, redact, show};

/// What turns settings into what the program believes, and reports what is wrong with them.
type Check<T> = fn(Raw, &mut Report) -> T;

/// The configuration of the file at `path`, or the defaults without one, with the settings of `env` above it.
///
/// `ABGAUGE_SECTION__SETTING` overrides a setting. Other variables that begin with `ABGAUGE_` are refused where they are close
/// to one, so that a slip does not pass in silence.
///
/// # Errors
/// Everything that is wrong, at once.
pub fn load(
    path: Option<&Path>,
    env: impl Iterator<Item = (String, String)>,
) -> Result<Config, ConfigErrors> {
    load_as(path, env, validate)
}

/// The same for the text of a file called `name`.
///
/// # Errors
/// Everything that is wrong, at once.
pub fn load_text(
    name: &str,
    text: &str,
    env: impl Iterator<Item = (String, String)>,
) -> Result<Config, ConfigErrors> {
    parse(name, text, env, validate)
}

/// Of the same configuration only what decides how events count; what else it says may be wrong or absent.
///
/// # Errors
/// Everything that is wrong with that part, or is no setting, at once.
pub fn load_counting(
    path: Option<&Path>,
    env: impl Iterator<Item = (String, String)>,
) -> Result<Counting, ConfigErrors> {
    load_as(path, env, |raw, report| counting(&raw, report))
}

/// The settings in effect, as a file would have them, secrets hidden.
///
/// # Errors
/// Everything that is wrong, at once.
pub fn effective(
    path: Option<&Path>,
    env: impl Iterator<Item = (String, String)>,
) -> Result<String, ConfigErrors> {
    load_as(path, env, |raw, report| {
        let shown = show::show(&raw);
        validate(raw, report);
        shown.expect("what was read as TOML can be written as TOML")
    })
}

fn load_as<T>(
    path: Option<&Path>,
    env: impl Iterator<Item = (String, String)>,
    check: Check<T>,
) -> Result<T, ConfigErrors> {
    let Some(path) = path else {
        return parse("environment", "", env, check);
    };
    let name = path.display().to_string();
    match std::fs::read_to_string(path) {
        Ok(text) => parse(&name, &text, env, check),
        Err(error) => {
            let mut report = Report::default();
            let message = format!("cannot read the file {name}: {error}");
            let remedy =
                "name a TOML file in UTF-8 that exists, or no file to run on defaults and the environment";
            report.refuse_at("", Place::Nowhere, message, remedy);
            Err(ConfigErrors::new(&name, String::new(), report.into_errors()))
        }
    }
}

/// The environment of this process. What is not UTF-8 in a value is replaced.
pub fn environment() -> impl Iterator<Item = (String, String)> {
    env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.to_string_lossy().into_owned())))
}

/// The same for the text of a file called `name`.
pub(super) fn parse<T>(
    name: &str,
    text: &str,
    env: impl Iterator<Item = (String, String)>,
    check: Check<T>,
) -> Result<T, ConfigErrors> {
    let (table, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        return Err(not_toml(name, text, &errors));
    }
    let masked = redact::mask(text, table.get_ref());
    let mut report = Report::default();
    let variables = layers::variables(env, &mut report);
    let raw = layers::lay(table.into_inner(), &variables, &mut report);
    let checked = check(raw, &mut report);
    match report.into_errors() {
        errors if errors.is_empty() => Ok(checked),
        errors => Err(ConfigErrors::new(name, masked, errors)),
    }
}

fn not_toml(name: &str, text: &str, errors: &[Error]) -> ConfigErrors {
    let mut report = Report::default();
    for error in errors {
        let place = error.span().map_or(Place::Nowhere, Place::File);
        let remedy = "write TOML: setting = value, text in quotes, sections in brackets";
        report.refuse_at("", place, error.message(), remedy);
    }
    ConfigErrors::new(name, redact::mask_broken(text), report.into_errors())
}
