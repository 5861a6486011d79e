//! Variables with the prefix of settings that are not settings: `ABGAUGE_KAFKA_BROKERS` has one underscore too few.

use super::error::{ErrorReport, Location, nearest};
use super::names::{EXPERIMENTS, PREFIX};
use super::raw;
use super::row::Setting;

/// Variables read elsewhere: by the command line, and by scripts for tests and benchmarks.
const READ_ELSEWHERE: [&str; 2] = ["CONFIG", "CACHE"];
/// Commands with variables for their flags, and the suffixes of these. A test of the command line keeps the list complete.
pub(crate) const OF_COMMANDS: [(&str, &[&str]); 3] = [
    ("DEMO_", &["DURATION", "PORT", "RATE", "SEED", "SPEED"]),
    (
        "EVALUATE_",
        &[
            "ALPHA",
            "ATTRIBUTION",
            "CATALOG",
            "CLICK_SKEW",
            "CONVENTION",
            "FORMAT",
            "K",
            "MAX_STATE",
            "METRICS",
            "SAME_LIST",
        ],
    ),
    ("SIMULATE_", &["BROKERS", "CLICKS_TOPIC", "RATE", "SERVED_TOPIC"]),
];

/// Returns whether a variable is named like one for a command's flag.
pub(super) fn is_of_a_command(name: &str) -> bool {
    let rest = name.strip_prefix(PREFIX);
    let begins = |rest: &str| OF_COMMANDS.iter().any(|(command, _)| rest.starts_with(command));
    rest.is_some_and(begins)
}

/// Refuses a variable without two underscores if it must be a typo, and notes it if it only might be one.
pub(super) fn judge(name: String, value: &str, report: &mut ErrorReport) {
    let rest = &name[PREFIX.len()..];
    if READ_ELSEWHERE.contains(&rest) || is_of_an_orchestrator(rest, value) {
        return;
    }
    if let Some((command, known)) = OF_COMMANDS.iter().find(|(command, _)| rest.starts_with(command)) {
        if let Some(remedy) = not_of_command(command, known, rest) {
            report.refuse_at("", Location::Variable(name), "there is no such flag", remedy);
        }
        return;
    }
    match remedy(&rest.to_lowercase()) {
        Some(remedy) => {
            let place = Location::Variable(name);
            report.refuse_at("", place, "there is no such setting", remedy);
        }
        None => report.is_strange(name),
    }
}

/// Returns what to write instead of a command's variable, or `None` if the command has it.
fn not_of_command(command: &str, known: &[&str], rest: &str) -> Option<String> {
    let flag = rest.strip_prefix(command)?;
    if known.contains(&flag) {
        return None;
    }
    let whole = |flag: &str| format!("{PREFIX}{command}{flag}");
    Some(match nearest(flag, known.iter().copied()) {
        Some(near) => format!("did you mean {}?", whole(near)),
        None => {
            let all: Vec<String> = known.iter().map(|flag| whole(flag)).collect();
            format!("known are {}", all.join(", "))
        }
    })
}

/// Returns whether Kubernetes or Docker creates such a variable for a service or container called `abgauge`.
fn is_of_an_orchestrator(rest: &str, value: &str) -> bool {
    let is_address = ["tcp://", "udp://", "sctp://"]
        .iter()
        .any(|scheme| value.starts_with(scheme));
    let is_part_of_one = ["_TCP_", "_UDP_", "_SCTP_"].iter().any(|protocol| {
        let part = rest.rsplit_once(protocol).map(|(_, part)| part);
        part.is_some_and(|part| ["ADDR", "PORT", "PROTO"].contains(&part))
    });
    is_address
        || is_part_of_one
        || rest.ends_with("SERVICE_HOST")
        || rest.contains("SERVICE_PORT")
        || rest == "NAME"
        || rest.starts_with("ENV_")
}

/// Returns what to write instead of a name (lower case, without prefix), or `None` if it is far from every setting.
fn remedy(rest: &str) -> Option<String> {
    let settings = settings();
    // Exact completions come before guesses by similarity.
    let near = of_free_names(rest, &settings)
        .or_else(|| without_its_section(rest, &settings))
        .or_else(|| nearest_of(rest, &settings));
    if let Some(near) = near {
        let near = near.to_uppercase();
        return Some(format!(
            "did you mean {PREFIX}{near}? Two underscores follow a section"
        ));
    }
    let (section, _) = rest.split_once('_')?;
    let of_section: Vec<String> = settings
        .iter()
        .filter(|setting| setting.split("__").next() == Some(section))
        .map(|setting| format!("{PREFIX}{}", setting.to_uppercase()))
        .collect();
    (!of_section.is_empty()).then(|| format!("known are {}", of_section.join(", ")))
}

/// Completes names such as `kafka_properties_sasl_password`, whose last part is free.
fn of_free_names(rest: &str, settings: &[String]) -> Option<String> {
    settings.iter().find_map(|setting| {
        let table = setting.strip_suffix("__name")?;
        let free = rest.strip_prefix(&*table.replace("__", "_"))?.strip_prefix('_')?;
        (!free.is_empty()).then(|| format!("{table}__{free}"))
    })
}

/// Completes names such as `brokers`.
fn without_its_section(rest: &str, settings: &[String]) -> Option<String> {
    let is_it = |setting: &&String| setting.split_once("__").is_some_and(|(_, name)| name == rest);
    settings.iter().find(is_it).cloned()
}

/// Corrects names such as `kafka_brokers` and `kafka_borkers`.
fn nearest_of(rest: &str, settings: &[String]) -> Option<String> {
    let plain: Vec<String> = settings
        .iter()
        .map(|setting| setting.replace("__", "_"))
        .collect();
    let near = nearest(rest, plain.iter().map(String::as_str))?;
    let at = plain.iter().position(|plain| plain == near)?;
    settings.get(at).cloned()
}

/// Returns every setting that a variable can set, such as `kafka__brokers`, with `kafka__properties__name` for free names.
fn settings() -> Vec<String> {
    let rows = raw::settings().filter(|setting| !setting.key.starts_with(EXPERIMENTS));
    let variable = |setting: &Setting| {
        let free = if setting.has_free_names() { "__name" } else { "" };
        setting.key.replace('.', "__") + free
    };
    let mut settings: Vec<String> = rows.map(variable).collect();
    settings.sort();
    settings
}
