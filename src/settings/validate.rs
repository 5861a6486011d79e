//! Converts the operator's raw settings into the validated configuration.

mod events;
mod experiments;
mod export;
mod formats;
mod gather;
mod http;
mod ingest;
mod kafka;
mod measures;
mod state;
mod values;
mod webhook;
mod windows;

use abgauge_core::decode::{NoUser, UserKey};
pub use kafka::{parse_brokers, parse_topic};
use toml::Spanned;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;
use values::{choice, either, path, whole};

pub(super) use self::http::http;
use super::error::{ErrorReport, nearest};
use super::raw::{Raw, RawJoin, RawLimits, RawLog};
use super::rules;
use super::units::display_ms;
use super::{Config, Counting, Join, Limits, LogConfig, LogFormat};

/// Returns the configuration, valid only if nothing was reported.
pub(super) fn validate(raw: Raw, report: &mut ErrorReport) -> Config {
    let counting = counting(&raw, report);
    let windows = windows::windows(&raw.metrics, &raw.join.slot, report);
    let export = export::export(&raw.export, &counting.measures, &windows, report);
    let (experiments, without_primary) =
        experiments::experiments(&raw.experiments, &counting.measures, report);
    // Checked before `kafka` consumes its settings.
    events::of_one_topic(&raw.events, counting.events.as_ref(), &raw.kafka, report);
    let formats = formats::formats(&raw, report);
    let kafka = kafka::kafka(raw.kafka, report);
    Config {
        formats,
        ingest: ingest::ingest(&raw.ingest, &kafka, report),
        state: state::state(&raw.state, &kafka, report),
        global: state::global(&raw.global, &raw.state, !experiments.is_empty(), report),
        kafka,
        events: counting.events,
        join: counting.join,
        measures: counting.measures,
        catalog: counting.catalog,
        windows,
        limits: counting.limits,
        export,
        http: http(&raw.http, report),
        webhook: webhook::webhook(&raw.webhook, report),
        log: log(&raw.log, report),
        about_experiments: experiments::about(&raw.experiments, report),
        is_demo: false,
        experiments,
        without_primary,
        strange_variables: report.strange_variables().to_vec(),
    }
}

/// Returns the rules for counting, valid only if nothing was reported.
pub(super) fn counting(raw: &Raw, report: &mut ErrorReport) -> Counting {
    let mut join = join(&raw.join, report);
    let events = events::events(&raw.events, report);
    join.gather_ms = events
        .as_ref()
        .and_then(|shape| shape.served.gather_ms)
        .unwrap_or_default();
    gather::gather(raw, events.as_ref(), &join, report);
    let known_profiles = measures::known_profiles(&raw.profile, report);
    let (measures, chosen_metrics) = measures::measures(&raw.metrics, &known_profiles, &raw.export, report);
    Counting {
        events,
        join,
        limits: limits(&raw.limits, report),
        measures,
        chosen_metrics,
        catalog: path("metrics.catalog", &raw.metrics.catalog, report),
        known_profiles,
        schedules: experiments::schedules(&raw.experiments, report),
    }
}

fn user_key(secret: Option<&Spanned<String>>, hash_seed: u64, report: &mut ErrorReport) -> UserKey {
    let text = secret.map_or("", |secret| secret.get_ref().as_str());
    if let Some(secret) = secret.filter(|secret| secret.get_ref().chars().count() < rules::MIN_SECRET) {
        let message = "is too short to be a secret";
        let remedy = format!(
            "write {} random characters or more, such as `openssl rand -hex 16` prints, best in \
             ABGAUGE_JOIN__USER_KEY",
            rules::MIN_SECRET
        );
        report.refuse("join.user_key", secret, message, remedy);
    }
    UserKey::of(text, hash_seed)
}

fn no_user(list: &Spanned<Vec<Spanned<String>>>, report: &mut ErrorReport) -> NoUser {
    let mut texts = Vec::new();
    for text in list.get_ref() {
        if texts.contains(text.get_ref()) {
            report.refuse_twice("join.no_user", text, format_args!("{:?}", text.get_ref()));
        }
        texts.push(text.get_ref().clone());
    }
    NoUser::new(texts)
}

fn join(raw: &RawJoin, report: &mut ErrorReport) -> Join {
    raw.check("join", report);
    let hash_seed = whole(&raw.hash_seed);
    let join = Join {
        attribution_ms: raw.attribution.get_ref().ms,
        click_skew_ms: raw.click_skew.get_ref().ms,
        // Set by the caller, because it is a setting of `[events]`.
        gather_ms: 0,
        same_list_ms: raw.same_list.as_ref().unwrap_or(&raw.attribution).get_ref().ms,
        lateness_ms: raw.lateness.get_ref().ms,
        max_future_ms: raw.max_future.get_ref().ms,
        idle_after_ms: raw.idle_after.get_ref().ms,
        slot_ms: raw.slot.get_ref().ms,
        max_items: whole(&raw.max_items),
        max_experiments: whole(&raw.max_experiments),
        max_lists_per_click: whole(&raw.max_lists_per_click),
        max_off_list: whole(&raw.max_off_list),
        hash_seed,
        user_key: user_key(raw.user_key.as_ref(), hash_seed, report),
        no_user: no_user(&raw.no_user, report),
    };
    if join.lateness_ms < 2 * join.max_future_ms
        && let Some((key, value)) = either(
            [
                ("join.lateness", &raw.lateness),
                ("join.max_future", &raw.max_future),
            ],
            report,
        )
    {
        let (lateness, max_future) = (&raw.lateness.get_ref().text, &raw.max_future.get_ref().text);
        let message = format!(
            "lateness ({lateness}) is less than twice max_future ({max_future}): one fast clock would make correct events late"
        );
        let remedy = format!(
            "write lateness = \"{}\" or more, or a max_future of at most \"{}\"",
            display_ms(2 * join.max_future_ms),
            display_ms(join.lateness_ms / 2)
        );
        report.refuse(key, value, message, remedy);
    }
    if join.attribution_ms < join.slot_ms
        && let Some((key, value)) = either(
            [("join.attribution", &raw.attribution), ("join.slot", &raw.slot)],
            report,
        )
    {
        let slot = &raw.slot.get_ref().text;
        let message = format!(
            "attribution ({}) is shorter than a slot ({slot})",
            raw.attribution.get_ref().text
        );
        let remedy = format!("write attribution = \"{slot}\" or more, or a shorter slot");
        report.refuse(key, value, message, remedy);
    }
    join
}

fn limits(raw: &RawLimits, report: &mut ErrorReport) -> Limits {
    const MIN_STATE: u64 = 1 << 20;
    raw.check("limits", report);
    let max_state_bytes = raw.max_state.get_ref().bytes;
    if max_state_bytes < MIN_STATE {
        let remedy = "write \"1MiB\" or more; a million open lists of ten items need about 200 MB";
        report.refuse(
            "limits.max_state",
            &raw.max_state,
            "is too small to join anything",
            remedy,
        );
    }
    Limits {
        max_arms: whole(&raw.max_arms),
        max_state_bytes,
        max_coverage_bytes: raw.max_coverage.get_ref().bytes,
        max_statistics_bytes: raw.max_statistics.get_ref().bytes,
        max_invalid_share: *raw.max_invalid_share.get_ref(),
        max_late_share: *raw.max_late_share.get_ref(),
        max_future_share: *raw.max_future_share.get_ref(),
        max_duplicate_share: *raw.max_duplicate_share.get_ref(),
        max_unmatched_share: *raw.max_unmatched_share.get_ref(),
        max_user_share: *raw.max_user_share.get_ref(),
    }
}

fn log(raw: &RawLog, report: &mut ErrorReport) -> LogConfig {
    raw.check("log", report);
    if let Err((fault, remedy)) = log_filter(raw.filter.get_ref()) {
        report.refuse("log.filter", &raw.filter, fault, remedy);
    }
    LogConfig {
        filter: raw.filter.get_ref().clone(),
        format: choice("log.format", &raw.format, &LogFormat::ALL, report).unwrap_or(LogFormat::Auto),
    }
}

/// Checks a filter; the error has the problem and the remedy. A word that is not a level would be taken for a target, and then
/// only that target would be logged, which is hardly ever meant.
fn log_filter(filter: &str) -> Result<(), (String, String)> {
    const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
    const REMEDY: &str =
        "write off, error, warn, info, debug or trace, or targets with levels such as \"info,abgauge=debug\"";
    EnvFilter::try_new(filter).map_err(|error| (error.to_string(), REMEDY.to_owned()))?;
    if filter.trim().is_empty() {
        return Err(("is empty".to_owned(), REMEDY.to_owned()));
    }
    // Between the brackets of a span commas are its own.
    let words = filter.split(',').filter(|_| !filter.contains('['));
    let is_no_level = |word: &&str| !word.contains('=') && word.parse::<LevelFilter>().is_err();
    match words.map(str::trim).find(is_no_level) {
        None => Ok(()),
        Some(word) => Err((
            format!("`{word}` is not a level"),
            match nearest(word, LEVELS) {
                Some(near) => format!("did you mean {near}?"),
                None => format!("a target needs its level, such as \"info,{word}=debug\"; {REMEDY}"),
            },
        )),
    }
}
