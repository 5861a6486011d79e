//! The settings in effect as a file: what the operator wrote, the environment above it, and defaults for the rest.

use toml::{Table, Value};

use super::raw::Raw;
use super::redact::{HASH_SEED, telling_word};

/// What stands in the place of a secret.
const HIDDEN: &str = "***";
/// Where librdkafka's properties are: any of them may be a secret.
const PROPERTIES: &str = "kafka.properties.";
/// Properties that are words, and tell nothing that must not be told.
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

/// As TOML, with [`HIDDEN`] for whatever may be a secret.
pub(super) fn show(raw: &Raw) -> Result<String, toml::ser::Error> {
    let mut settings = Table::try_from(raw)?;
    hide("", &mut settings);
    toml::to_string_pretty(&settings)
}

fn hide(section: &str, settings: &mut Table) {
    for (name, value) in settings {
        let key = format!("{section}{name}");
        match value {
            Value::Table(inner) => hide(&format!("{key}."), inner),
            value if is_secret(&key, value) => hide_value(value),
            _ => {}
        }
    }
}

/// Of a list each value, so that it stays a list.
fn hide_value(value: &mut Value) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(hide_value),
        value => *value = Value::String(HIDDEN.into()),
    }
}

fn is_secret(key: &str, value: &Value) -> bool {
    if let Some(property) = key.strip_prefix(PROPERTIES) {
        let text = value.as_str().unwrap_or_default();
        let is_plain = text.parse::<i64>().is_ok() || text.parse::<bool>().is_ok();
        let is_open = is_plain || OPEN_PROPERTIES.contains(&property);
        return telling_word(property).is_some() || !is_open;
    }
    if key == HASH_SEED {
        // The default is known to all.
        return value.as_integer() != Some(0);
    }
    // Where a secret is kept is none.
    let is_path = key.starts_with("kafka.property_files.") || key.ends_with("_file");
    !is_path && telling_word(key).is_some()
}

#[cfg(test)]
mod tests {
    use super::super::error::Report;
    use super::super::layers;
    use super::*;

    fn shown(text: &str) -> Table {
        let (table, errors) = toml::de::DeTable::parse_recoverable(text);
        assert!(errors.is_empty(), "{errors:?}");
        let raw = layers::lay(table.into_inner(), &[], &mut Report::default());
        show(&raw).unwrap().parse().unwrap()
    }

    #[test]
    fn settings_stand_beside_the_defaults_of_the_others() {
        let shown = shown("[join]\nattribution = \"10m\"\n[kafka]\nbrokers = \"b:1\"");
        assert_eq!(shown["join"]["attribution"].as_str(), Some("10m"));
        assert_eq!(shown["join"]["lateness"].as_str(), Some("2m"));
        assert_eq!(shown["join"]["hash_seed"].as_integer(), Some(0));
        assert_eq!(shown["kafka"]["brokers"].as_str(), Some("b:1"));
    }

    #[test]
    fn what_may_be_a_secret_is_hidden() {
        let text = r#"
            join.hash_seed = 81726354
            [kafka.properties]
            "sasl.password" = "hunter2"
            "sasl.username" = "hunter"
            "sasl.oauthbearer.config" = "secret=hunter2"
            "ssl.key.password" = 12345678
            "security.protocol" = "SASL_SSL"
            "fetch.max.bytes" = 1000000
            [kafka.property_files]
            "ssl.key.pem" = "/run/secrets/key"
        "#;
        let shown = shown(text);
        let properties = &shown["kafka"]["properties"];
        for name in [
            "sasl.password",
            "sasl.username",
            "sasl.oauthbearer.config",
            "ssl.key.password",
        ] {
            assert_eq!(properties[name].as_str(), Some(HIDDEN), "{name}");
        }
        assert_eq!(properties["security.protocol"].as_str(), Some("SASL_SSL"));
        assert_eq!(properties["fetch.max.bytes"].as_str(), Some("1000000"));
        assert_eq!(shown["join"]["hash_seed"].as_str(), Some(HIDDEN));
        let files = &shown["kafka"]["property_files"];
        assert_eq!(files["ssl.key.pem"].as_str(), Some("/run/secrets/key"));
    }
}
