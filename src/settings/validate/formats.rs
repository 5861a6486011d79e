//! Encodings of both topics: `format`, `message` and `framing`, `[registry]`, `[schemas]`.

use abgauge_core::decode::framing::{Format, Framing};
use toml::Spanned;

use super::values::{choice, in_vain, path};
use crate::settings::error::ErrorReport;
use crate::settings::raw::{Raw, RawRegistry};
use crate::settings::{Formats, HttpUrl, Registry, RegistryCredentials, TlsFiles, TopicFormat};

/// Keys of a topic's settings.
struct Keys {
    format: &'static str,
    message: &'static str,
    framing: &'static str,
    schema: &'static str,
}

const SERVED: Keys = Keys {
    format: "events.served.format",
    message: "events.served.message",
    framing: "events.served.framing",
    schema: "schemas.served",
};
const CLICK: Keys = Keys {
    format: "events.click.format",
    message: "events.click.message",
    framing: "events.click.framing",
    schema: "schemas.click",
};

/// Settings of a topic's encoding, as written.
struct Written<'a> {
    format: &'a Spanned<String>,
    message: &'a Option<Spanned<String>>,
    framing: &'a Spanned<String>,
    schema: &'a Option<Spanned<String>>,
}

/// Files that can hold a schema, for remedies.
const FILES: &str =
    "name an Avro schema (.avsc) or, for Protobuf, a descriptor set (.desc, .binpb) or a .proto file";

pub(super) fn formats(raw: &Raw, report: &mut ErrorReport) -> Formats {
    raw.schemas.check("schemas", report);
    let (served, click) = (&raw.events.served, &raw.events.click);
    let registry = registry(&raw.registry, report);
    let is_one_topic = raw.kafka.served_topic.get_ref() == raw.kafka.clicks_topic.get_ref();
    let mut topic = |keys: &Keys, written: Written| {
        let Written {
            format,
            message,
            framing,
            schema,
        } = written;
        let topic = TopicFormat {
            format: format_of(keys.format, format, report),
            message: message.as_ref().map(|message| message.get_ref().clone()),
            framing: choice(keys.framing, framing, &Framing::ALL, report).unwrap_or_default(),
            schema: path(keys.schema, schema, report),
        };
        if let Some(message) = message
            .as_ref()
            .filter(|message| !is_full_name(message.get_ref()))
        {
            let remedy = "write a name such as \"shop.events.Click\"";
            report.refuse(keys.message, message, "is not the full name of a message", remedy);
        }
        // In a single topic, the schema of lists applies to clicks.
        let is_of_file = matches!(topic.framing, Framing::None | Framing::Glue)
            && !(is_one_topic && keys.schema == CLICK.schema);
        if topic.format != Format::Json && topic.schema.is_none() && is_of_file {
            if report.is_sound(keys.schema) {
                let remedy = format!("set {}: {FILES}", keys.schema);
                report.refuse(
                    keys.framing,
                    framing,
                    format!(
                        "needs {}, because no registry has the schemas of such records",
                        keys.schema
                    ),
                    remedy,
                );
            }
        } else if topic.format != Format::Json && topic.schema.is_none() && registry.is_none() {
            let sound = [keys.schema, "registry.url"]
                .iter()
                .all(|key| report.is_sound(key));
            if sound {
                let remedy = format!("set registry.url, or {}: {FILES}", keys.schema);
                report.refuse(
                    keys.format,
                    format,
                    "needs schemas, and no setting says where they are",
                    remedy,
                );
            }
        }
        topic
    };
    let topics = [
        topic(
            &SERVED,
            Written {
                format: &served.format,
                message: &served.message,
                framing: &served.framing,
                schema: &raw.schemas.served,
            },
        ),
        topic(
            &CLICK,
            Written {
                format: &click.format,
                message: &click.message,
                framing: &click.framing,
                schema: &raw.schemas.click,
            },
        ),
    ];
    of_one_topic(raw, &topics, report);
    for (keys, framing, topic) in [
        (SERVED, &served.framing, &topics[0]),
        (CLICK, &click.framing, &topics[1]),
    ] {
        if topic.framing == Framing::SingleObject && topic.format != Format::Avro {
            let message = "is an encoding of Avro, but the topic has another format";
            let remedy = format!("set {} = \"avro\", or leave it out", keys.format);
            report.refuse(keys.framing, framing, message, remedy);
        }
    }
    Formats { topics, registry }
}

fn format_of(key: &str, format: &Spanned<String>, report: &mut ErrorReport) -> Format {
    // The name of such schemas in a registry.
    let name = format.get_ref().to_lowercase();
    if ["json_schema", "json-schema", "jsonschema"].contains(&&*name) {
        let remedy =
            "write \"json\": records with a JSON Schema are JSON, and abgauge does not need the schema";
        report.refuse(key, format, "is not the name of a format", remedy);
        return Format::Json;
    }
    choice(key, format, &Format::ALL, report).unwrap_or_default()
}

/// Returns whether a text can be the name of a Protobuf message with its package.
fn is_full_name(name: &str) -> bool {
    name.split('.').all(|part| {
        let mut letters = part.chars();
        letters
            .next()
            .is_some_and(|first| first == '_' || first.is_ascii_alphabetic())
            && letters.all(|letter| letter == '_' || letter.is_ascii_alphanumeric())
    })
}

/// Checks that records of a single topic have one encoding.
fn of_one_topic(raw: &Raw, [served, click]: &[TopicFormat; 2], report: &mut ErrorReport) {
    if raw.kafka.served_topic.get_ref() != raw.kafka.clicks_topic.get_ref() {
        return;
    }
    let written = &raw.events.click;
    for (key, value, is_same) in [
        (CLICK.format, &written.format, click.format == served.format),
        (CLICK.framing, &written.framing, click.framing == served.framing),
    ] {
        if !is_same && report.is_written(key, value) && report.is_sound(key) {
            let message = "differs from the setting of served lists, and both are in one topic";
            let remedy = "leave out the settings of clicks: those of events.served and schemas.served apply to the topic";
            report.refuse(key, value, message, remedy);
        }
    }
}

fn registry(raw: &RawRegistry, report: &mut ErrorReport) -> Option<Registry> {
    raw.check("registry", report);
    let password_file = path("registry.password_file", &raw.password_file, report);
    let token_file = path("registry.token_file", &raw.token_file, report);
    let ca_file = path("registry.ca_file", &raw.ca_file, report);
    let certificate = path("registry.certificate_file", &raw.certificate_file, report);
    let key = path("registry.key_file", &raw.key_file, report);
    let Some(written) = &raw.url else {
        let remedy = "also set registry.url, or leave it out";
        in_vain(credentials(raw), "is set without a registry", remedy, report);
        return None;
    };
    let urls = urls(written, report);
    if urls.iter().all(|url| !url.is_tls()) {
        let of_tls = credentials(raw).into_iter().skip(3);
        let remedy = "write an address that starts with https://, or leave it out";
        in_vain(of_tls, "has no effect on plain HTTP", remedy, report);
    }
    if let Some(username) = raw.username.as_ref().filter(|name| name.get_ref().contains(':')) {
        let message =
            "contains a colon, which separates the name from the password in HTTP Basic authentication";
        let remedy = "write the name of a user without a colon, or set registry.token_file instead";
        report.refuse("registry.username", username, message, remedy);
    }
    let has_unused_password = password_file.is_some() && token_file.is_some();
    let credentials = match (&raw.username, password_file, token_file) {
        (_, _, Some(file)) => Some(RegistryCredentials::Token(file)),
        (Some(username), Some(password_file), None) => Some(RegistryCredentials::Password {
            username: username.get_ref().clone(),
            password_file,
        }),
        (Some(username), None, None) => {
            let remedy =
                "set registry.password_file to a file with the password, or leave registry.username out";
            report.refuse("registry.username", username, "has no password", remedy);
            None
        }
        (None, Some(_), None) => {
            if let Some(file) = &raw.password_file {
                report.refuse(
                    "registry.password_file",
                    file,
                    "has no user",
                    "set registry.username too",
                );
            }
            None
        }
        (None, None, None) => None,
    };
    if let (None, Some(key)) = (&raw.certificate_file, &raw.key_file) {
        let remedy = "set registry.certificate_file to the certificate of this key";
        report.refuse("registry.key_file", key, "has no certificate", remedy);
    }
    Some(Registry {
        urls,
        credentials,
        has_unused_password,
        ca_file,
        identity: certificate.map(|certificate| TlsFiles {
            key: key.unwrap_or_else(|| certificate.clone()),
            certificate,
        }),
        timeout: raw.timeout.get_ref().duration(),
    })
}

/// Returns the settings that need a registry. The last three need TLS.
fn credentials(raw: &RawRegistry) -> [(&'static str, &Option<Spanned<String>>); 6] {
    [
        ("registry.username", &raw.username),
        ("registry.password_file", &raw.password_file),
        ("registry.token_file", &raw.token_file),
        ("registry.ca_file", &raw.ca_file),
        ("registry.certificate_file", &raw.certificate_file),
        ("registry.key_file", &raw.key_file),
    ]
}

fn urls(written: &Spanned<String>, report: &mut ErrorReport) -> Vec<HttpUrl> {
    const REMEDY: &str = "write addresses such as \"https://registry:8081\", separated by commas, and credentials into registry.username and registry.password_file";
    let mut urls = Vec::new();
    for text in written.get_ref().split(',') {
        match HttpUrl::of_setting(text.trim().trim_end_matches('/')) {
            Ok(url) if url.uri().query().is_some() => {
                report.refuse("registry.url", written, "has a query", REMEDY);
            }
            Ok(url) => urls.push(url),
            Err((fault, _)) => report.refuse("registry.url", written, fault, REMEDY),
        }
    }
    urls
}
