//! Removal of secrets from a configuration before any line or value of it is shown.

use std::ops::Range;

use serde_json::Map;
use toml::de::{DeTable, DeValue};
use toml::{Spanned, Value};

use super::HttpUrl;
use super::names::{self, EXPERIMENTS, known_settings, settings_of_an_experiment};
use super::properties::is_known_prefix;
use super::raw;

/// Words that mark a setting or a line as a possible secret, in addition to the names of settings that are `Secret`.
const SECRET_WORDS: [&str; 11] = [
    "authorization",
    "propert",
    "password",
    "passphrase",
    "secret",
    "token",
    "pem",
    "ssl.key",
    "private",
    "jaas",
    "credential",
];

const BROKERS: &str = "brokers";

/// Address whose scheme and host may be shown.
const WEBHOOK_URL: &str = "webhook.url";

/// Replacement for a secret.
const HIDDEN: &str = "***";
/// Prefix of librdkafka's properties. Any of them may be a secret.
const PROPERTIES: &str = "kafka.properties.";
/// Properties with words that reveal nothing.
const OPEN_PROPERTIES: [&str; 9] = [
    "client.id",
    "client.rack",
    "compression.codec",
    "compression.type",
    "isolation.level",
    "sasl.mechanism",
    "sasl.mechanisms",
    "security.protocol",
    "ssl.endpoint.identification.algorithm",
];

/// Returns the value of a setting, with [`HIDDEN`] for a possible secret. In a list each entry is hidden, so that it stays a
/// list.
pub(super) fn hide(key: &str, value: Value) -> Value {
    match value {
        value if !is_secret(key, &value) => value,
        Value::String(text) if key == WEBHOOK_URL => match HttpUrl::of_setting(&text) {
            Ok(url) => format!("{url}/{HIDDEN}").into(),
            Err(_) => HIDDEN.into(),
        },
        Value::Array(values) => values.iter().map(|_| HIDDEN).collect::<Vec<_>>().into(),
        _ => HIDDEN.into(),
    }
}

fn is_secret(key: &str, value: &Value) -> bool {
    if let Some(property) = key.strip_prefix(PROPERTIES) {
        let text = value.as_str().unwrap_or_default();
        // Numbers and truth values reveal nothing, unless the name of the property marks them as secret.
        let is_plain = text.parse::<i64>().is_ok() || text.parse::<bool>().is_ok();
        let is_open = is_plain || OPEN_PROPERTIES.contains(&property);
        return secret_word(property).is_some() || !is_open;
    }
    match raw::setting(key) {
        // The default seed is public.
        Some(setting) => setting.is_secret() && value.as_integer() != Some(0),
        // The path of a file with a secret is not a secret.
        None => !key.starts_with("kafka.property_files.") && secret_word(key).is_some(),
    }
}

/// Returns where the first of the secret words ends.
pub(super) fn secret_word(text: &str) -> Option<usize> {
    let text = text.to_ascii_lowercase();
    let end = |word: &str| text.find(word).map(|at| at + word.len());
    // Some operators put a user and password in front of a broker.
    let user = text.contains('@').then_some(BROKERS);
    let of_rows = raw::settings().filter(|setting| setting.is_secret());
    let words = SECRET_WORDS
        .iter()
        .copied()
        .chain(of_rows.map(|setting| setting.name()));
    words.chain(user).filter_map(end).min()
}

/// Masks the values of Kafka properties and of everything named like a secret, even in comments. Every byte keeps its place.
pub(super) fn mask(text: &str, table: &DeTable) -> String {
    let mut hidden = Vec::new();
    secret_values(table, false, &mut hidden);
    let kafka = table.get("kafka").and_then(|kafka| kafka.get_ref().as_table());
    for name in ["properties", "property_files"] {
        if let Some(properties) = kafka.and_then(|kafka| kafka.get(name)?.get_ref().as_table()) {
            strange_names(properties, "", &mut hidden);
        }
    }
    unknown_settings(table, &known_settings(), &mut hidden);
    hidden.extend(repeated_in_headers(text, &hidden));
    for line in ConfigLine::all(text) {
        if line.has_secret_word && line.text.trim_start().starts_with('#') {
            hidden.push(line.range());
        } else if let Some(word) = secret_word(line.text).filter(|_| !line.is_header) {
            // Without a `=` after the word, all of the line that follows the word is hidden.
            let value = line.text[word..].find('=').map_or(word, |at| word + at + 1);
            hidden.push(line.begin + value..line.range().end);
        }
    }
    cover(text, &hidden)
}

fn secret_values(table: &DeTable, inside: bool, hidden: &mut Vec<Range<usize>>) {
    for (name, value) in table {
        let is_of_user =
            name.get_ref() == BROKERS && value.get_ref().as_str().is_some_and(|text| text.contains('@'));
        secret_value(
            value,
            inside || is_of_user || secret_word(name.get_ref()).is_some(),
            hidden,
        );
    }
}

/// Hides names of properties that are not known: they may be secrets.
fn strange_names(table: &DeTable, begin: &str, hidden: &mut Vec<Range<usize>>) {
    for (name, value) in table {
        let whole = format!("{begin}{}", name.get_ref());
        if !is_known_prefix(&whole) {
            hidden.push(name.span());
        }
        if let DeValue::Table(inner) = value.get_ref() {
            strange_names(inner, &format!("{whole}."), hidden);
        }
    }
}

/// Hides the values of unknown settings, and their names unless they look like settings: either may be a secret.
fn unknown_settings(table: &DeTable, known: &Map<String, serde_json::Value>, hidden: &mut Vec<Range<usize>>) {
    for (name, value) in table {
        let inner = value.get_ref().as_table();
        match known.get(name.get_ref().as_ref()) {
            Some(serde_json::Value::Object(known)) if !known.is_empty() => {
                if let Some(inner) = inner {
                    unknown_settings(inner, known, hidden);
                }
            }
            Some(_) if LABELED.contains(&name.get_ref().as_ref()) => {
                let known = match name.get_ref().as_ref() {
                    EXPERIMENTS => settings_of_an_experiment(),
                    _ => names::settings_of_a_profile(),
                };
                for labeled in inner.into_iter().flat_map(|inner| inner.values()) {
                    if let Some(labeled) = labeled.get_ref().as_table() {
                        unknown_settings(labeled, &known, hidden);
                    }
                }
            }
            Some(_) => {}
            None => {
                if !names::looks_like_a_setting(name.get_ref()) {
                    hidden.push(name.span());
                }
                secret_value(value, true, hidden);
                if let Some(inner) = inner {
                    // No setting inside is known either, so all of their values are hidden.
                    unknown_settings(inner, &Map::new(), hidden);
                }
            }
        }
    }
}

/// Returns the places in headers that repeat a hidden text. A parsed table has the place of its first header only.
fn repeated_in_headers(text: &str, hidden: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut repeated = Vec::new();
    for line in ConfigLine::all(text).filter(|line| line.is_header) {
        for hidden in hidden {
            let places = line.text.match_indices(&text[hidden.clone()]);
            repeated.extend(places.map(|(at, part)| line.begin + at..line.begin + at + part.len()));
        }
    }
    repeated
}

fn secret_value(value: &Spanned<DeValue>, secret: bool, hidden: &mut Vec<Range<usize>>) {
    match value.get_ref() {
        DeValue::Table(inner) => secret_values(inner, secret, hidden),
        _ if secret => hidden.push(value.span()),
        // A list may contain tables with secrets of their own.
        DeValue::Array(items) => items.iter().for_each(|item| secret_value(item, false, hidden)),
        _ => {}
    }
}

/// Masks a file that is not valid TOML. As values cannot be separated from names there, all lines of a section are masked from
/// the first secret word on, and each line that does not start with a setting.
pub(super) fn mask_broken(text: &str) -> String {
    let mut hidden = Vec::new();
    for line in ConfigLine::all(text) {
        let shown = if line.is_header {
            line.shown_of_header()
        } else {
            line.shown_of_setting()
        };
        hidden.push(line.begin + shown..line.range().end);
    }
    cover(text, &hidden)
}

/// Sections of tables under names that the operator chose.
const LABELED: [&str; 2] = [EXPERIMENTS, "profile"];

struct ConfigLine<'a> {
    text: &'a str,
    begin: usize,
    /// True if the line is `[section]`, without anything that looks like a value.
    is_header: bool,
    /// True if a secret word is on this line, or above it in the same section.
    has_secret_word: bool,
}

impl ConfigLine<'_> {
    fn all(text: &str) -> impl Iterator<Item = ConfigLine<'_>> {
        let mut begin = 0;
        let mut has_secret_word = false;
        text.split_inclusive('\n').map(move |text| {
            let is_header = text.trim_start().starts_with('[') && !text.contains('=');
            // A secret may span several lines, so all lines after the word are suspicious, up to the next section.
            has_secret_word = secret_word(text).is_some() || (has_secret_word && !is_header);
            let line = ConfigLine {
                text,
                begin,
                is_header,
                has_secret_word,
            };
            begin += text.len();
            line
        })
    }

    /// Returns how many bytes of a header may be shown: all of it, unless a part of its name is not known.
    fn shown_of_header(&self) -> usize {
        let name = self.text.trim().trim_matches(['[', ']']);
        let mut parts = name.split('.').map(str::trim);
        let section = parts.next().unwrap_or_default();
        let is_known = names::looks_like_a_setting(section)
            && (LABELED.contains(&section) || parts.all(names::looks_like_a_setting));
        if is_known { self.text.len() } else { 0 }
    }

    /// Returns how many bytes of another line may be shown: the value only of a setting, the name only if it looks like one.
    fn shown_of_setting(&self) -> usize {
        if self.has_secret_word {
            return 0;
        }
        if self.text.trim_start().starts_with('#') {
            return self.text.len();
        }
        let (name, end) = match self.text.split_once('=') {
            Some((name, _)) => (name, name.len() + 1),
            None => (self.text, self.text.len()),
        };
        let name = name.trim().trim_matches('"');
        // A setting may be written with its section in front, such as `kafka.brokers`.
        let last = name.rsplit('.').next().unwrap_or_default();
        let looks_like_one =
            names::looks_like_a_setting(name) || name.split('.').all(names::looks_like_a_setting);
        match looks_like_one {
            false => 0,
            true if names::is_a_setting(name) || names::is_a_setting(last) => self.text.len(),
            true => end,
        }
    }

    fn range(&self) -> Range<usize> {
        self.begin..self.begin + self.text.len()
    }
}

fn cover(text: &str, hidden: &[Range<usize>]) -> String {
    let mut shown = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        if !c.is_whitespace() && hidden.iter().any(|range| range.contains(&at)) {
            // One star per byte, so that the places of errors stay valid.
            shown.extend(std::iter::repeat_n('*', c.len_utf8()));
        } else {
            shown.push(c);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masking_a_file_keeps_all_byte_positions() {
        let text = "[kafka]\nkey = \"usér\"\n[kafka.properties]\n\"sasl.password\" = \"hüntér2\"\nssl.ca.pem = '''\nAB\nCD'''\n";
        let masked = mask(text, DeTable::parse(text).expect("valid").get_ref());
        assert_eq!(masked.len(), text.len());
        assert!(masked.contains("key = \"usér\""), "{masked}");
        assert!(masked.contains("\"sasl.password\" ="), "{masked}");
        for secret in ["hüntér2", "AB", "CD"] {
            assert!(!masked.contains(secret), "{masked}");
        }
    }

    #[test]
    fn a_secret_used_as_a_name_is_hidden() {
        let text = "[kafka.properties]\nhunter2 = \"x\"\nsasl.mechanism = \"PLAIN\"\nsasl.hunter3 = 1\n[kafka.property_files]\n\"hunter4\" = \"f\"\n";
        let masked = mask(text, DeTable::parse(text).expect("valid").get_ref());
        assert!(
            !masked.contains("hunter") && masked.contains("sasl.mechanism"),
            "{masked}"
        );
    }

    #[test]
    fn a_password_among_the_brokers_is_hidden() {
        for value in ["\"user:hunter2@h:9092\"", "'''\nuser:hunter2@h:9092'''"] {
            let text =
                format!("kafka.brokers = {value}\n#brokers = \"a:hunter2@b\"\nkafka.group_id = \"g\"\n");
            let masked = mask(&text, DeTable::parse(&text).expect("valid").get_ref());
            assert!(
                !masked.contains("hunter2") && masked.contains("group_id"),
                "{masked}"
            );
        }
        assert!(!mask_broken("brokers = user:hunter2@h:9092").contains("hunter2"));
        assert!(mask_broken("brokers = h:9092").contains("h:9092"));
    }

    #[test]
    fn a_multiline_secret_is_hidden_in_a_broken_file() {
        let text = "[kafka.properties]\nssl.key.pem = \"\"\"\nAB\nCD\n[log]\nfilter = info\n";
        let masked = mask_broken(text);
        assert!(!masked.contains("AB") && !masked.contains("CD"), "{masked}");
        assert!(
            masked.contains("[kafka.properties]\n") && masked.contains("filter = info"),
            "{masked}"
        );
    }

    #[test]
    fn settings_around_a_hidden_name_stay_readable() {
        let text =
            "[kafka]\nbrokers = \"h:9092\"\nhunter2 = 1\nborkers = 5\n[experiments.hunt]\ncontrol = \"a\"\n";
        let shown =
            "[kafka]\nbrokers = \"h:9092\"\n******* = *\nborkers = *\n[experiments.hunt]\ncontrol = \"a\"\n";
        assert_eq!(mask(text, DeTable::parse(text).expect("valid").get_ref()), shown);
        let broken = text.replace("hunter2 = 1", "hunter2");
        let shown = shown.replace("******* = *", "*******");
        assert_eq!(mask_broken(&broken), shown);
    }
}
