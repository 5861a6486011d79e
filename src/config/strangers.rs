//! Variables that begin as settings do and are none: `ABGAUGE_KAFKA_BROKERS` has one underscore too few.

use serde_json::{Map, Value};

use super::error::{ErrorReport, Location, nearest};
use super::layers::{PREFIX, known_settings};

/// What is read elsewhere: by the command line, and by the scripts that test and measure.
const READ_ELSEWHERE: [&str; 2] = ["CONFIG", "CACHE"];
/// Commands whose flags have variables, and the ends of these; the command line keeps to them.
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
        ],
    ),
    ("SIMULATE_", &["BROKERS", "CLICKS_TOPIC", "RATE", "SERVED_TOPIC"]),
];

/// Whether a variable is named as that of a flag of a command.
pub(super) fn is_of_a_command(name: &str) -> bool {
    let rest = name.strip_prefix(PREFIX);
    let begins = |rest: &str| OF_COMMANDS.iter().any(|(command, _)| rest.starts_with(command));
    rest.is_some_and(begins)
}

/// Refuses a variable without two underscores where it is a slip, and notes it where it only might be one.
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

/// What to write instead of a variable of a command; none where the command has it.
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

/// What Kubernetes and Docker make up for a service or a container of our name.
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

/// What to write instead of a name, which is without its prefix and in lower case; none where it is far from every setting.
fn remedy(rest: &str) -> Option<String> {
    let settings = settings();
    let near = of_free_names(rest, &settings)
        .or_else(|| without_its_section(rest, &settings))
        .or_else(|| nearest_of(rest, &settings));
    if let Some(near) = near {
        let near = near.to_uppercase();
        return Some(format!(
            "did you mean {PREFIX}{near}? Two underscores stand behind a section"
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

/// `kafka_properties_sasl_password`: what is behind the table is the operator's own.
fn of_free_names(rest: &str, settings: &[String]) -> Option<String> {
    settings.iter().find_map(|setting| {
        let table = setting.strip_suffix("__name")?;
        let free = rest.strip_prefix(&*table.replace("__", "_"))?.strip_prefix('_')?;
        (!free.is_empty()).then(|| format!("{table}__{free}"))
    })
}

/// `brokers`
fn without_its_section(rest: &str, settings: &[String]) -> Option<String> {
    let is_it = |setting: &&String| setting.split_once("__").is_some_and(|(_, name)| name == rest);
    settings.iter().find(is_it).cloned()
}

/// `kafka_brokers`, `kafka_borkers`
fn nearest_of(rest: &str, settings: &[String]) -> Option<String> {
    let plain: Vec<String> = settings
        .iter()
        .map(|setting| setting.replace("__", "_"))
        .collect();
    let near = nearest(rest, plain.iter().map(String::as_str))?;
    let at = plain.iter().position(|plain| plain == near)?;
    settings.get(at).cloned()
}

/// Every setting that a variable can set, such as `kafka__brokers`; `kafka__properties__name` for a table of free names.
fn settings() -> Vec<String> {
    fn add(section: &str, known: &Map<String, Value>, settings: &mut Vec<String>) {
        for (name, default) in known {
            let name = match section {
                "" => name.clone(),
                _ => format!("{section}__{name}"),
            };
            match default.as_object() {
                Some(inner) if !inner.is_empty() => add(&name, inner, settings),
                Some(_) if section == "kafka" => settings.push(format!("{name}__name")),
                // Profiles and experiments are no matter of the environment.
                Some(_) => {}
                None => settings.push(name),
            }
        }
    }
    let mut settings = Vec::new();
    add("", &known_settings(), &mut settings);
    settings
}
