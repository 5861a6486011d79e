//! Merges the environment over the file, setting by setting, into [`Raw`].
//!
//! Settings are parsed one by one, so that a faulty one is reported without hiding others.

use serde::Deserialize;
use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue, Deserializer};

use super::error::{ErrorReport, Location, SettingOrigin, nearest};
use super::names::{self, EXPERIMENTS, PREFIX, known_settings, settings_of_an_experiment};
use super::paths::PATHS;
use super::raw::{self, Raw};
use super::units::{BYTE_SIZE, TIME_SPAN};
use super::unknown_variables;

/// Variable, and its value in brackets for parsing as a TOML array.
pub(super) struct Variable {
    name: String,
    value: String,
    bracketed: String,
}

/// Returns the variables that set something: `ABGAUGE_`, with two underscores after the section. A variable with single
/// underscores is refused if it is close to a setting, and otherwise noted as strange.
pub(super) fn variables(
    env: impl Iterator<Item = (String, String)>,
    report: &mut ErrorReport,
) -> Vec<Variable> {
    let ours = env.filter(|(name, _)| name.starts_with(PREFIX));
    let (mut variables, mut others) = (Vec::new(), Vec::new());
    for (name, value) in ours {
        match name[PREFIX.len()..].contains("__") {
            true => variables.push(Variable {
                name,
                bracketed: format!("[{value}]"),
                value,
            }),
            false => others.push((name, value)),
        }
    }
    // The environment has no fixed order, but errors should have one.
    variables.sort_by(|a, b| a.name.cmp(&b.name));
    others.sort();
    for (name, value) in others {
        unknown_variables::judge(name, &value, report);
    }
    variables
}

/// Merges the variables over the settings of the file. A faulty setting is reported and keeps its default.
pub(super) fn lay<'i>(file: DeTable<'i>, variables: &'i [Variable], report: &mut ErrorReport) -> Raw {
    let known = known_settings();
    let mut layers = Layers {
        known: &known,
        settings: DeTable::new(),
        report,
    };
    layers.section("", &known, file);
    for variable in variables {
        layers.variable(variable);
    }
    read(layers.settings).unwrap_or_else(|error| {
        // Each setting was read separately before, so only their combination can be at fault.
        report.refuse_at("", Location::Nowhere, error.message(), "");
        Raw::default()
    })
}

fn read(settings: DeTable) -> Result<Raw, toml::de::Error> {
    Raw::deserialize(Deserializer::from(Spanned::new(0..0, settings)))
}

struct Layers<'i, 'r> {
    known: &'r Map<String, Value>,
    settings: DeTable<'i>,
    report: &'r mut ErrorReport,
}

impl<'i> Layers<'i, '_> {
    fn section(&mut self, section: &str, known: &Map<String, Value>, table: DeTable<'i>) {
        for (name, value) in table {
            let key = join(section, name.get_ref());
            match (known.get(name.get_ref().as_ref()), value.get_ref()) {
                (None, _) => {
                    let remedy = self.suggest(section, name.get_ref(), known);
                    // An unknown name may be a secret in the wrong place.
                    let key = join(section, names::shown(name.get_ref()));
                    self.report
                        .refuse(&key, &name, "there is no such setting", remedy);
                }
                (Some(Value::Object(inner)), DeValue::Table(_)) => {
                    let DeValue::Table(table) = value.into_inner() else {
                        continue;
                    };
                    match inner.is_empty() {
                        true if key == EXPERIMENTS => self.experiments(table),
                        true => self.free_names(&key, table),
                        false => self.section(&key, inner, table),
                    }
                }
                (Some(Value::Object(_)), _) => {
                    let remedy = format!("write [{key}], and its settings on the lines below");
                    self.report.refuse(&key, &name, "is a table, not a value", remedy);
                }
                (Some(_), _) => self.setting(&key, value),
            }
        }
    }

    /// Adds the settings of each experiment, by a name that the operator chose.
    fn experiments(&mut self, table: DeTable<'i>) {
        let known = settings_of_an_experiment();
        for (name, value) in table {
            let key = join(EXPERIMENTS, name.get_ref());
            let (value, span) = (value.get_ref().clone(), value.span());
            let DeValue::Table(table) = value else {
                let remedy = "write [experiments.NAME], and its settings on the lines below";
                let place = Spanned::new(span, ());
                self.report
                    .refuse(&key, &place, "is a table, not a value", remedy);
                continue;
            };
            // Keep an empty table: naming an experiment is enough for intervals.
            if table.is_empty() {
                let path = [EXPERIMENTS, name.get_ref()].map(str::to_owned);
                let empty = Spanned::new(span, DeValue::Table(table));
                insert_at(&mut self.settings, path.into(), empty);
                continue;
            }
            self.section(&key, &known, table);
        }
    }

    /// Adds a table with names that the operator chose: profiles, or Kafka properties. A property such as `sasl.username` may
    /// be written with or without quotes.
    fn free_names(&mut self, section: &str, table: DeTable<'i>) {
        for (name, value) in table {
            let key = join(section, name.get_ref());
            match value.get_ref() {
                DeValue::Table(_) if section.starts_with("kafka.") => {
                    if let DeValue::Table(inner) = value.into_inner() {
                        self.free_names(&key, inner);
                    }
                }
                _ => self.setting(&key, value),
            }
        }
    }

    fn setting(&mut self, key: &str, value: Spanned<DeValue<'i>>) {
        match read(nested(key, value.clone())) {
            Ok(_) => {
                self.report.located_at(key, value.span());
                insert(&mut self.settings, key, value);
            }
            Err(error) => {
                let (mut message, remedy) = in_plain_words(key, error.message());
                // The value is parsed in a table made for it, so an error may point elsewhere.
                let inside = |span: &std::ops::Range<usize>| {
                    !span.is_empty() && value.span().start <= span.start && span.end <= value.span().end
                };
                let span = error.span().filter(inside).unwrap_or(value.span());
                // serde quotes a plain value. Lists of hashes never quote theirs.
                if raw::setting(key).is_some_and(|row| row.is_secret() && !row.is_list()) {
                    "this value does not fit".clone_into(&mut message);
                }
                let remedy = match self.report.origin(key) {
                    SettingOrigin::Variable(_) => in_a_variable(&remedy, &value),
                    _ => remedy,
                };
                self.report.refuse(key, &Spanned::new(span, ()), message, remedy);
            }
        }
    }

    fn variable(&mut self, variable: &'i Variable) {
        let name = &variable.name;
        let Some(key) = self.key_of(name) else {
            let place = Location::Variable(name.clone());
            let (message, remedy) = if name.starts_with("ABGAUGE_EXPERIMENTS__") {
                let remedy = "write [experiments.NAME] into the file";
                (
                    "experiments cannot be set by environment variables",
                    remedy.to_owned(),
                )
            } else {
                ("there is no such setting", self.suggest_variable(name))
            };
            self.report.refuse_at("", place, message, remedy);
            return;
        };
        self.report.came_from(&key, name);
        // Take the first spelling that fits the setting's type, or else the one with the most useful error.
        let fits = |value: &Spanned<DeValue<'i>>| read(nested(&key, value.clone())).is_ok();
        let value = variable.spellings().find(fits).unwrap_or_else(|| {
            let plain = text(&variable.value);
            let fault = read(nested(&key, plain.clone())).err();
            let is_list = fault.is_some_and(|error| error.message().ends_with("expected a sequence"));
            if is_list { variable.entries() } else { plain }
        });
        self.setting(&key, value);
    }

    /// Converts a variable to a setting: `ABGAUGE_JOIN__MAX_ITEMS` → `join.max_items`, `ABGAUGE_EVENTS__CLICK__TS` →
    /// `events.click.ts`. In names of Kafka properties each underscore becomes a dot.
    fn key_of(&self, name: &str) -> Option<String> {
        let rest = name.strip_prefix(PREFIX)?;
        // Names are compared in lower case below, so a second spelling of the same setting must not pass.
        if rest.bytes().any(|b| b.is_ascii_lowercase()) {
            return None;
        }
        let lower = rest.to_lowercase();
        let (section, name) = lower.split_once("__")?;
        let known = self.known.get(section)?.as_object()?;
        match name.split_once("__") {
            Some((table, name)) if !name.is_empty() => {
                let known = known.get(table)?.as_object()?;
                let name = match known.is_empty() {
                    true => name.replace('_', "."),
                    false => known.get_key_value(name)?.0.clone(),
                };
                Some(format!("{section}.{table}.{name}"))
            }
            // A variable sets one value, never a whole table.
            _ => (!known.get(name)?.is_object()).then(|| join(section, name)),
        }
    }

    fn suggest(&self, section: &str, name: &str, known: &Map<String, Value>) -> String {
        if let Some(near) = nearest(name, known.keys().map(String::as_str)) {
            return format!("did you mean `{near}`?");
        }
        // A section may have a word before its name, such as `schema_registry`.
        if let Some((_, end)) = name.rsplit_once('_').filter(|_| section.is_empty())
            && known.contains_key(end)
        {
            return format!("did you mean `{end}`?");
        }
        // The name may be one of a table in this section.
        let tables: Vec<String> = known
            .iter()
            .filter(|(_, settings)| settings.get(name).is_some())
            .map(|(table, _)| format!("`{name}` under [{}]", join(section, table)))
            .collect();
        if !tables.is_empty() {
            return format!("did you mean {}?", tables.join(" or "));
        }
        // The name may be right, but in the wrong section.
        let elsewhere = |(home, settings): (&String, &Value)| {
            let names = settings.as_object()?.keys().map(String::as_str);
            nearest(name, names).map(|near| format!("did you mean `{near}` under [{home}]?"))
        };
        if let Some(suggestion) = self.known.iter().find_map(elsewhere) {
            return suggestion;
        }
        let names = known
            .keys()
            .map(|name| format!("`{name}`"))
            .collect::<Vec<_>>()
            .join(", ");
        match section {
            "kafka" => {
                format!("a property of librdkafka goes under [kafka.properties]; known here are {names}")
            }
            _ => format!("known here are {names}"),
        }
    }

    fn suggest_variable(&self, name: &str) -> String {
        let rest = name.strip_prefix(PREFIX).unwrap_or(name).to_lowercase();
        let (section, setting) = rest.split_once("__").unwrap_or((&rest, ""));
        let setting = setting.split_once("__").map_or(setting, |(table, _)| table);
        let near = nearest(section, self.known.keys().map(String::as_str)).and_then(|section| {
            let settings = self.known[section].as_object()?;
            let near = nearest(setting, settings.keys().map(String::as_str))?;
            let end = if settings[near].is_object() { "__NAME" } else { "" };
            Some(format!(
                "{}__{}{end}",
                section.to_uppercase(),
                near.to_uppercase()
            ))
        });
        match near {
            Some(near) => format!("did you mean {PREFIX}{near}?"),
            None if section == "kafka" => {
                format!("a property of librdkafka is {PREFIX}KAFKA__PROPERTIES__NAME")
            }
            None => format!("write {PREFIX}SECTION__SETTING, such as {PREFIX}KAFKA__BROKERS"),
        }
    }
}

impl Variable {
    /// Parses the parts between commas one by one, so that an error can name the faulty one.
    fn entries(&self) -> Spanned<DeValue<'_>> {
        let mut entries = DeArray::new();
        for part in self.value.split(',') {
            entries.push(entry(part.trim()));
        }
        Spanned::new(0..0, DeValue::Array(entries))
    }

    /// Returns the possible readings of the value: text, TOML, the inside of a TOML array, and texts between commas. A TOML
    /// table comes first, because any text could be a path.
    fn spellings(&self) -> impl Iterator<Item = Spanned<DeValue<'_>>> {
        let is_table = |value: &Spanned<DeValue>| matches!(value.get_ref(), DeValue::Table(_));
        let mut texts = DeArray::new();
        for part in self.value.split(',') {
            texts.push(text(part.trim()));
        }
        [
            DeValue::parse(&self.value).ok().filter(is_table),
            Some(text(&self.value)),
            DeValue::parse(&self.value).ok(),
            DeValue::parse(&self.bracketed).ok(),
            Some(Spanned::new(0..0, DeValue::Array(texts))),
        ]
        .into_iter()
        .flatten()
    }
}

/// Parses a number as a number, and anything that is not TOML as text.
fn entry(value: &str) -> Spanned<DeValue<'_>> {
    DeValue::parse(value).unwrap_or_else(|_| text(value))
}

fn text(value: &str) -> Spanned<DeValue<'_>> {
    Spanned::new(0..0, DeValue::String(value.into()))
}

fn join(section: &str, name: &str) -> String {
    match section {
        "" => name.to_owned(),
        _ => format!("{section}.{name}"),
    }
}

/// Splits a key into section, table of free names (if any) and name.
fn path(key: &str) -> Vec<String> {
    // An experiment's name may contain dots, but a setting does not.
    let of_experiment = key.split_once('.').filter(|(section, _)| *section == EXPERIMENTS);
    if let Some((name, setting)) = of_experiment.and_then(|(_, rest)| rest.rsplit_once('.')) {
        return [EXPERIMENTS, name, setting].map(str::to_owned).into();
    }
    // Names of Kafka properties contain dots, so everything after their table is one name.
    let n_parts = match key {
        _ if ["kafka.propert", "events.served.", "events.click."]
            .iter()
            .any(|table| key.starts_with(table)) =>
        {
            3
        }
        _ => 2,
    };
    key.splitn(n_parts, '.').map(str::to_owned).collect()
}

fn nested<'i>(key: &str, value: Spanned<DeValue<'i>>) -> DeTable<'i> {
    let mut table = DeTable::new();
    insert(&mut table, key, value);
    table
}

fn insert<'i>(table: &mut DeTable<'i>, key: &str, value: Spanned<DeValue<'i>>) {
    insert_at(table, path(key), value);
}

fn insert_at<'i>(table: &mut DeTable<'i>, mut path: Vec<String>, value: Spanned<DeValue<'i>>) {
    let Some(name) = path.pop() else {
        return;
    };
    let mut table = table;
    for part in path {
        let inner = table
            .entry(Spanned::new(0..0, part.into()))
            .or_insert_with(|| Spanned::new(0..0, DeValue::Table(DeTable::new())));
        match inner.get_mut() {
            DeValue::Table(inner) => table = inner,
            _ => return,
        }
    }
    table.insert(Spanned::new(0..0, name.into()), value);
}

/// Splits serde's "what is wrong, expected what is right". The second half becomes the remedy.
fn in_plain_words(key: &str, message: &str) -> (String, String) {
    let Some((wrong, expected)) = message.split_once(", expected ") else {
        return (message.to_owned(), String::new());
    };
    if let Some(name) = wrong.strip_prefix("unknown field `") {
        let name = names::shown(name.trim_end_matches('`'));
        return (format!("unknown field `{name}`"), format!("write {expected}"));
    }
    let (noun, remedy) = match expected {
        "i64" => ("a whole number", "a whole number, without quotes"),
        "f64" => ("a number", "a number such as 0.5, without quotes"),
        "a boolean" => ("true or false", "true or false, without quotes"),
        "a string" => ("a text", "text in quotes"),
        "a sequence" => ("a list", "a list in brackets"),
        "struct RawEpoch" => (
            "a table",
            "{ start = \"2026-01-31T09:00:00Z\", shares = { control = 0.5, ARM = 0.5 } }",
        ),
        // This case is first, because guardrails are below an experiment too.
        "a map" if key.ends_with(".guardrails") => ("a table", "margins by metric: { \"ctr@10\" = 0.02 }"),
        "a map" if key.starts_with(EXPERIMENTS) => ("a table", "shares by arm: { control = 0.5, ARM = 0.5 }"),
        "a map" => ("a table", "[profile.NAME], and its choices on the lines below"),
        TIME_SPAN => ("a span of time", TIME_SPAN),
        BYTE_SIZE => ("a size", BYTE_SIZE),
        PATHS => ("a path", PATHS),
        other => ("", other),
    };
    let typed = ["invalid type: ", "invalid value: "];
    let wrong = match typed.iter().find_map(|begin| wrong.strip_prefix(begin)) {
        Some(value) if !noun.is_empty() => format!("{} is not {noun}", without_type(value)),
        Some(value) => format!("{} does not fit", without_type(value)),
        None => wrong.to_owned(),
    };
    (wrong, format!("write {remedy}"))
}

/// Adapts a remedy to a variable, which needs no quotes and separates list entries by commas.
fn in_a_variable(remedy: &str, value: &Spanned<DeValue>) -> String {
    let remedy = remedy
        .replace(", without quotes", "")
        .replace("text in quotes", "text");
    match value.get_ref() {
        DeValue::Array(_) => format!("{remedy}; separate several by commas"),
        _ => remedy,
    }
}

/// Removes the type from serde's description: ``integer `5` `` becomes 5, and `string "x"` becomes "x".
fn without_type(value: &str) -> &str {
    let quoted = ["integer ", "floating point ", "boolean "];
    match quoted.iter().find_map(|kind| value.strip_prefix(kind)) {
        // serde adds a type to numbers that do not fit into 64 bits, too.
        Some(value) => value.split('`').nth(1).unwrap_or(value),
        None => match value {
            "map" => "a table",
            "sequence" => "a list",
            value => value.strip_prefix("string ").unwrap_or(value),
        },
    }
}
