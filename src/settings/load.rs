//! Loading of a configuration from the file and the environment.

use std::env;
use std::path::Path;

use toml::Table;
use toml::de::{DeTable, Error};

use super::error::{ConfigErrors, ErrorReport, Location};
use super::raw::Raw;
use super::validate::{counting, http, validate};
use super::{Config, Counting, CurrentSettings, Http, Loaded, files, layers, redact, unknown_variables};

/// Conversion of raw settings to checked values, which reports all errors.
type Check<T> = fn(Raw, &mut ErrorReport) -> T;

/// Loads the file at `path`, or the defaults without one, overridden by `env`.
///
/// `ABGAUGE_SECTION__SETTING` overrides a setting. Other variables with the prefix `ABGAUGE_` are refused if they are close to
/// a setting, so that a typo does not go unnoticed.
///
/// # Errors
/// All errors at once.
pub fn load(
    path: Option<&Path>,
    env: impl Iterator<Item = (String, String)>,
) -> Result<Config, ConfigErrors> {
    load_as(path, env, validate)
}

/// Loads the text of a file called `name`, overridden by `env`.
///
/// # Errors
/// All errors at once.
pub fn load_text(
    name: &str,
    text: &str,
    env: impl Iterator<Item = (String, String)>,
) -> Result<Config, ConfigErrors> {
    parse(name, text, env, validate)
}

/// Loads only the settings that decide how events count, and when experiments start and end. Everything else may be wrong or
/// missing.
///
/// # Errors
/// All errors in those settings, and all unknown settings, at once.
pub fn load_counting(
    path: Option<&Path>,
    env: impl Iterator<Item = (String, String)>,
) -> Result<Counting, ConfigErrors> {
    load_as(path, env, |raw, report| counting(&raw, report))
}

/// Loads the configuration with the origin of every setting, so that it can be compared with a reloaded one.
///
/// # Errors
/// All errors at once.
pub fn load_with_origins(
    path: Option<&Path>,
    env: impl Iterator<Item = (String, String)>,
) -> Result<Loaded, ConfigErrors> {
    load_as(path, env, loaded)
}

/// Loads only the settings of the HTTP server. Everything else may be wrong or missing.
///
/// # Errors
/// All errors in that section at once.
pub fn load_http(
    path: Option<&Path>,
    env: impl Iterator<Item = (String, String)>,
) -> Result<Http, ConfigErrors> {
    load_as(path, env, |raw, report| {
        let http = http(&raw.http, report);
        report.forgive_others("http.");
        http
    })
}

/// Loads the current settings in order to show them. `brokers` may be missing.
///
/// # Errors
/// All other errors at once.
pub fn current(
    path: Option<&Path>,
    env: impl Iterator<Item = (String, String)>,
) -> Result<CurrentSettings, ConfigErrors> {
    load_as(path, env, shown)
}

pub(super) fn shown(raw: Raw, report: &mut ErrorReport) -> CurrentSettings {
    let loaded = loaded(raw, report);
    report.forgive_missing("kafka.brokers");
    loaded.current
}

pub(super) fn loaded(raw: Raw, report: &mut ErrorReport) -> Loaded {
    let written = Table::try_from(&raw).expect("what was read as TOML can be written as TOML");
    let config = validate(raw, report);
    let current = CurrentSettings::of(&written, &config, report);
    Loaded { config, current }
}

fn load_as<T>(
    path: Option<&Path>,
    env: impl Iterator<Item = (String, String)>,
    check: Check<T>,
) -> Result<T, ConfigErrors> {
    let Some(path) = path else {
        return parse_with(ErrorReport::default(), "environment", "", env, check);
    };
    let name = path.display().to_string();
    match files::read_text(path) {
        Ok(text) => parse(&name, &text, env, check),
        Err(error) => {
            let mut report = ErrorReport::default();
            let message = format!("cannot read the file {name}: {error}");
            let remedy =
                "name an existing TOML file in UTF-8, or no file to run on defaults and the environment";
            report.refuse_at("", Location::Nowhere, message, remedy);
            Err(ConfigErrors::new(&name, String::new(), report.into_errors()))
        }
    }
}

/// Refuses typos in variables for flags of commands, such as `ABGAUGE_DEMO_RAET`. For commands that read no configuration, which
/// would find them.
///
/// # Errors
/// All errors at once.
pub fn check_flags(env: impl Iterator<Item = (String, String)>) -> Result<(), ConfigErrors> {
    let mut report = ErrorReport::default();
    layers::variables(
        env.filter(|(name, _)| unknown_variables::is_of_a_command(name)),
        &mut report,
    );
    match report.into_errors() {
        errors if errors.is_empty() => Ok(()),
        errors => Err(ConfigErrors::new("environment", String::new(), errors)),
    }
}

/// Returns the environment of this process, with invalid UTF-8 in values replaced.
pub fn environment() -> impl Iterator<Item = (String, String)> {
    env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.to_string_lossy().into_owned())))
}

/// Parses and checks the text of a file called `name`, overridden by `env`.
pub(super) fn parse<T>(
    name: &str,
    text: &str,
    env: impl Iterator<Item = (String, String)>,
    check: Check<T>,
) -> Result<T, ConfigErrors> {
    parse_with(ErrorReport::of_file(name, text), name, text, env, check)
}

fn parse_with<T>(
    mut report: ErrorReport,
    name: &str,
    text: &str,
    env: impl Iterator<Item = (String, String)>,
    check: Check<T>,
) -> Result<T, ConfigErrors> {
    // The parser continues after an error, so that all of them are reported at once.
    let (table, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        return Err(not_toml(name, text, &errors));
    }
    // Masked before `lay` takes the table, because the places of the values are needed.
    let masked = redact::mask(text, table.get_ref());
    let variables = layers::variables(env, &mut report);
    let raw = layers::lay(table.into_inner(), &variables, &mut report);
    let checked = check(raw, &mut report);
    match report.into_errors() {
        errors if errors.is_empty() => Ok(checked),
        errors => Err(ConfigErrors::new(name, masked, errors)),
    }
}

fn not_toml(name: &str, text: &str, errors: &[Error]) -> ConfigErrors {
    let mut report = ErrorReport::default();
    for error in errors {
        let place = error.span().map_or(Location::Nowhere, Location::File);
        let remedy = "write TOML: setting = value, text in quotes, sections in brackets";
        report.refuse_at("", place, error.message(), remedy);
    }
    ConfigErrors::new(name, redact::mask_broken(text), report.into_errors())
}
