//! The reader of framed records.

use std::ffi::CStr;
use std::sync::mpsc;
use std::thread;

use abgauge_core::decode::framing::{Framing, Headers, NoHeaders};
use abgauge_core::decode::schema::RawRecord;
use abgauge_core::engine::event::Reason;

use super::*;

/// A busy registry would hold up all shards.
#[test]
fn records_of_an_unusable_schema_take_no_lock() {
    let schemas = Arc::new(Schemas::open(&config("registry.url = \"http://a\"")).expect("no files"));
    let denied = Some(Instant::now() + DENIED_AFTER);
    for (id, until) in [(7, denied), (8, None)] {
        schemas.arrived(
            SchemaId::Id(id),
            Known::Unusable {
                until,
                fault: String::new(),
            },
            0,
        );
    }
    let mut reader = schemas.reader(Side::Served);
    let mut locate = || [7, 8].map(|id| json(reader.locate(&framed(id), &NoHeaders)));
    assert_eq!(locate(), ["Invalid(UnknownSchema)"; 2]);
    let (done, is_done) = mpsc::channel();
    thread::scope(|scope| {
        let locked = schemas.state();
        scope.spawn(move || done.send(locate()));
        let located = is_done.recv_timeout(Duration::from_secs(10));
        drop(locked);
        assert_eq!(
            located.expect("no wait for the lock"),
            ["Invalid(UnknownSchema)"; 2]
        );
    });
}

#[tokio::test]
async fn a_denied_schema_is_used_once_it_is_registered() {
    let schemas = Arc::new(Schemas::open(&config("registry.url = \"http://a\"")).expect("no files"));
    let until_ = Some(Instant::now() + DENIED_AFTER);
    schemas.arrived(
        SchemaId::Id(7),
        Known::Unusable {
            until: until_,
            fault: String::new(),
        },
        0,
    );
    let mut reader = schemas.reader(Side::Served);
    assert_eq!(
        json(reader.locate(&framed(7), &NoHeaders)),
        "Invalid(UnknownSchema)"
    );
    let file = SchemaFile::parse(Format::Avro, LIST, &[]).expect("a schema");
    schemas.arrived(SchemaId::Id(7), Known::Usable(Arc::new(file)), 0);
    until(|| json(reader.locate(&framed(7), &NoHeaders)) == r#"{"id":"r7"}"#).await;
}

#[test]
fn few_schemas_are_wanted_ahead_of_their_records() {
    let schemas = Arc::new(Schemas::open(&config("registry.url = \"http://a\"")).expect("no files"));
    let mut reader = schemas.reader(Side::Served);
    for id in 0..2_000 {
        reader.ask_ahead(&framed(id), &NoHeaders);
    }
    assert_eq!(schemas.take_new().len(), MAX_WANTED_AHEAD);
    // A record that is held is not one of them.
    let held = framed(3_000);
    let located = reader.locate(&held, &NoHeaders);
    assert!(matches!(located, Located::Awaits(SchemaId::Id(3_000))));
    assert_eq!(schemas.take_new(), [(SchemaId::Id(3_000), Format::Avro)]);
}

#[test]
fn a_file_reads_records_with_and_without_framing() {
    let file = tempfile::NamedTempFile::with_suffix(".avsc").expect("a file");
    std::fs::write(file.path(), LIST).expect("it is written");
    let config = config(&format!("schemas.served = {:?}", file.path()));
    let schemas = Arc::new(Schemas::open(&config).expect("a file"));
    let mut reader = schemas.reader(Side::Served);
    let mut deflated = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut deflated, b"\x04r7").expect("it is compressed");
    let deflated = deflated.finish().expect("it is compressed");
    let glue = [&[3, 5][..], &[9; 16], &deflated].concat();
    for record in [b"\x04r7".to_vec(), framed(7), glue] {
        assert_eq!(json(reader.locate(&record, &NoHeaders)), r#"{"id":"r7"}"#);
    }
    // An empty id starts like a prefix.
    assert_eq!(json(reader.locate(&[0], &NoHeaders)), r#"{"id":""}"#);
    let other = [&[0xc3, 1][..], &[7; 8], &[4], b"r7"].concat();
    assert!(matches!(
        reader.locate(&other, &NoHeaders),
        Located::Invalid(Reason::UnknownSchema)
    ));
}

/// A record that starts with a zero may be framed, or a bare record of the file. The registry decides.
#[test]
fn a_record_without_framing_is_read_with_the_file_once_the_registry_denies_its_id() {
    let file = tempfile::NamedTempFile::with_suffix(".avsc").expect("a file");
    let fields = r#"[{"name":"user","type":"string"},{"name":"id","type":"string"}]"#;
    let schema = format!(r#"{{"type":"record","name":"List","fields":{fields}}}"#);
    std::fs::write(file.path(), schema).expect("it is written");
    let schemas = |more: &str| {
        let text = format!(
            "registry.url = \"http://a\"\nschemas.served = {:?}\n{more}",
            file.path()
        );
        Arc::new(Schemas::open(&config(&text)).expect("a file"))
    };
    let (record, id) = (b"\0\x08r-12", SchemaId::Id(u32::from_be_bytes(*b"\x08r-1")));
    let (whole, cut) = (&record[..], &record[..record.len() - 1]);
    let as_read = r#"{"user":"","id":"r-12"}"#;

    let detecting = schemas("");
    let mut reader = detecting.reader(Side::Served);
    assert!(matches!(reader.locate(whole, &NoHeaders), Located::Awaits(awaited) if awaited == id));
    let until = Some(Instant::now() + DENIED_AFTER);
    detecting.arrived(
        id,
        Known::Unusable {
            until,
            fault: String::new(),
        },
        0,
    );
    assert_eq!(json(reader.locate(whole, &NoHeaders)), as_read);
    assert_eq!(json(reader.locate(cut, &NoHeaders)), "Invalid(UnknownSchema)");
    // A schema that the registry has is another one, even if it cannot be used.
    detecting.arrived(
        id,
        Known::Unusable {
            until: None,
            fault: String::new(),
        },
        0,
    );
    let mut reader = detecting.reader(Side::Served);
    assert_eq!(json(reader.locate(whole, &NoHeaders)), "Invalid(UnknownSchema)");

    let unframed = schemas("events.served.framing = \"none\"");
    assert_eq!(
        json(unframed.reader(Side::Served).locate(whole, &NoHeaders)),
        as_read
    );
}

#[test]
fn json_is_read_behind_any_prefix() {
    let schemas = |more: &str| {
        let config = config(&format!("registry.url = \"http://a\"\n{more}"));
        Arc::new(Schemas::open(&config).expect("no files"))
    };
    let by = |framing: Framing, record: &[u8]| {
        let (word, _) = Framing::ALL
            .iter()
            .find(|(_, of)| *of == framing)
            .expect("a word");
        let schemas = schemas(&format!("events.click.framing = \"{word}\""));
        let mut reader = schemas.reader(Side::Clicks);
        match reader.locate(record, &NoHeaders) {
            Located::Record(RawRecord { bytes, schema: None }) => bytes.to_vec(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(by(Framing::Detect, b"{}"), b"{}");
    assert_eq!(by(Framing::Detect, b"\0\0\0\0\x07{}"), b"{}");
    assert_eq!(by(Framing::Apicurio2, b"\0\0\0\0\0\0\0\0\x07{}"), b"{}");
    assert_eq!(by(Framing::Detect, b"\0"), b"\0");
    assert_eq!(by(Framing::None, b"\0\0\0\0\x07{}"), b"\0\0\0\0\x07{}");
}

/// The decoder refuses such records as `not_json`, which does not name the setting.
#[test]
fn binary_records_of_a_json_topic_are_reported_with_the_setting_of_the_format() {
    #[derive(Debug)]
    struct OfApicurio;

    impl Headers for OfApicurio {
        fn last(&self, name: &CStr) -> Option<&[u8]> {
            (name == c"apicurio.value.globalId").then_some(&[0, 0, 0, 0, 0, 0, 0, 9])
        }
    }

    let of_registry = "records that name schemas of a registry and are not JSON are invalid (not_json): set events.click.format = \"avro\" (or \"protobuf\") and registry.url";
    let bare = "records that are binary, not JSON, are invalid (not_json): if they are Avro or Protobuf, set events.click.format";
    let glue = [&[3, 0][..], &[9; 16], b"\x04r7"].concat();
    let cases: [(&[u8], &dyn Headers, Option<&str>); 7] = [
        (&framed(7), &NoHeaders, Some(of_registry)),
        (&glue, &NoHeaders, Some(of_registry)),
        (b"\x04r7", &OfApicurio, Some(of_registry)),
        (b"\x04r7", &NoHeaders, Some(bare)),
        (b"{", &OfApicurio, None),
        (b"\0\0\0\0\x07{", &NoHeaders, None),
        (b"\xef\xbb\xbf{}", &NoHeaders, None),
    ];
    for (record, headers, message) in cases {
        let schemas = Arc::new(Schemas::open(&config("registry.url = \"http://a\"")).expect("no files"));
        let mut reader = schemas.reader(Side::Clicks);
        let located = reader.locate(record, headers);
        assert!(matches!(located, Located::Record(_)), "{located:?}");
        let messages = schemas.record_faults(Side::Clicks);
        assert_eq!(
            messages.len(),
            usize::from(message.is_some()),
            "{record:?}: {messages:?}"
        );
        assert!(
            messages
                .iter()
                .all(|it| it.starts_with(message.unwrap_or_default())),
            "{messages:?}"
        );
    }
}

#[test]
fn json_without_the_required_framing_is_invalid() {
    for framing in ["confluent", "apicurio2", "header", "glue"] {
        let text = format!("events.click.framing = \"{framing}\"\nregistry.url = \"http://a\"");
        let schemas = Arc::new(Schemas::open(&config(&text)).expect("no files"));
        let mut reader = schemas.reader(Side::Clicks);
        assert_eq!(
            json(reader.locate(b"{}", &NoHeaders)),
            "Invalid(Malformed)",
            "{framing}"
        );
    }
}

/// Bare Avro, with the id of its schema in the content type.
#[test]
fn records_of_azure_are_read_with_a_file() {
    #[derive(Debug)]
    struct OfAzure;

    impl Headers for OfAzure {
        fn last(&self, name: &CStr) -> Option<&[u8]> {
            (name == c"content-type").then_some(b"avro/binary+0102030405060708090a0b0c0d0e0f10")
        }
    }

    let file = tempfile::NamedTempFile::with_suffix(".avsc").expect("a file");
    std::fs::write(file.path(), LIST).expect("it is written");
    let with_file = format!("schemas.served = {:?}\n", file.path());
    let registry = "registry.url = \"http://a\"\n";
    for (settings, read) in [
        (with_file.clone(), r#"{"id":"r7"}"#),
        (format!("{with_file}{registry}"), r#"{"id":"r7"}"#),
        (
            format!("{with_file}events.served.framing = \"header\""),
            r#"{"id":"r7"}"#,
        ),
        // A registry does not have such an id, so no record waits for it.
        (registry.to_owned(), "Invalid(UnknownSchema)"),
    ] {
        let schemas = Arc::new(Schemas::open(&config(&settings)).expect("a file"));
        let mut reader = schemas.reader(Side::Served);
        assert_eq!(json(reader.locate(b"\x04r7", &OfAzure)), read, "{settings}");
    }
}

#[test]
fn a_file_that_is_no_schema_is_refused_with_its_setting() {
    let file = tempfile::NamedTempFile::with_suffix(".avsc").expect("a file");
    std::fs::write(file.path(), "{\"type\":\"recrod\"}").expect("it is written");
    let config = config(&format!("schemas.served = {:?}", file.path()));
    let Err(error) = Schemas::open(&config) else {
        panic!("it is accepted");
    };
    assert_eq!(error.setting, "schemas.served");
    assert!(
        error.message.contains("the schema uses the type `recrod`"),
        "{error}"
    );
}

const PROTO: &str = r#"syntax = "proto3"; package shop;

message List { string id = 1; message Inner { string id = 1; } }
message Click { string id = 1; }"#;

#[test]
fn a_protobuf_record_is_read_by_the_message_that_it_names() {
    let file = SchemaFile::parse(Format::Protobuf, PROTO, &[]).expect("a schema");
    let schemas = |more: &str| {
        let config = config(&format!(
            "registry.url = \"http://a\"\nevents.click.format = \"protobuf\"\n{more}"
        ));
        Arc::new(Schemas::open(&config).expect("no files"))
    };
    let read = |schemas: &Arc<Schemas>, indexes: &[u8]| {
        let record = [&[0, 0, 0, 0, 7], indexes, &[0x0a, 2], b"r7"].concat();
        json(schemas.reader(Side::Clicks).locate(&record, &NoHeaders))
    };
    let any = schemas("");
    let wanted = schemas("events.click.message = \"shop.Click\"");
    let known = Known::Usable(Arc::new(file));
    for schemas in [&any, &wanted] {
        schemas.arrived(SchemaId::Id(7), known.clone(), 0);
    }
    for indexes in [&[0][..], &[2, 0], &[2, 2], &[4, 0, 0]] {
        assert_eq!(read(&any, indexes), r#"{"id":"r7"}"#, "{indexes:?}");
    }
    assert_eq!(read(&any, &[2, 4]), "Invalid(UnknownSchema)");
    assert_eq!(read(&wanted, &[2, 2]), r#"{"id":"r7"}"#);
    assert_eq!(read(&wanted, &[0]), "Ignored");
    // The form of Apicurio.
    let click = b"\x07\x0a\x05Click";
    assert_eq!(read(&any, click), r#"{"id":"r7"}"#);
    assert_eq!(read(&wanted, click), r#"{"id":"r7"}"#);
    assert_eq!(read(&wanted, b"\x06\x0a\x04List"), "Ignored");
    // No message is named, so the setting decides, or the record is not read.
    assert_eq!(read(&wanted, &[]), r#"{"id":"r7"}"#);
    assert_eq!(read(&any, &[]), "Invalid(UnknownSchema)");
}

#[test]
fn a_record_that_the_settings_exclude_is_reported_once_with_the_fix() {
    let list = SchemaFile::parse(Format::Avro, LIST, &[]).expect("a schema");
    let proto = SchemaFile::parse(Format::Protobuf, PROTO, &[]).expect("a schema");
    let known = [Known::Usable(Arc::new(list)), Known::Usable(Arc::new(proto))];
    let single_object = [&[0xc3, 1][..], &[7; 8]].concat();
    let cases: [(&str, &[u8], &str); 9] = [
        (
            "events.click.format = \"avro\"",
            b"{\"id\":\"r7\"}\n",
            "are JSON, although their topic has another format, are invalid (malformed): set events.click.format = \"json\"",
        ),
        (
            "events.click.format = \"protobuf\"\nevents.click.framing = \"header\"",
            b"{}",
            "are JSON, although their topic has another format, are invalid (malformed): set events.click.format = \"json\"",
        ),
        (
            "events.click.format = \"avro\"",
            b"\x04r7",
            "name no schema are invalid (unknown_schema): set schemas.click to the file",
        ),
        (
            "events.click.format = \"avro\"",
            &[&[3, 0][..], &[9; 16]].concat(),
            "name a schema of AWS Glue are invalid (unknown_schema): set schemas.click to the file",
        ),
        (
            "events.click.format = \"avro\"",
            &single_object,
            "does not match schemas.click are invalid (unknown_schema): set schemas.click to the file",
        ),
        (
            "events.click.format = \"avro\"\nevents.click.framing = \"header\"",
            b"\x04r7",
            "lack the framing that events.click.framing requires are invalid (malformed): set it to",
        ),
        (
            "events.click.format = \"avro\"",
            b"\0\0\0\0\x01\0",
            "not in the format of events.click.format are invalid (unknown_schema)",
        ),
        (
            "events.click.format = \"protobuf\"",
            b"\0\0\0\0\x01\x0a\x02r7",
            "name none of the messages of their schema are invalid (unknown_schema): set events.click.message to one of shop.List, shop.Click",
        ),
        (
            "events.click.format = \"protobuf\"",
            b"\0\0\0\0\x01\x05\x0a\x03Tap\x0a\x02r7",
            "name a message other than those of their schema, shop.List, shop.Click, are invalid",
        ),
    ];
    for (settings, record, message) in cases {
        let config = config(&format!("registry.url = \"http://a\"\n{settings}"));
        let schemas = Arc::new(Schemas::open(&config).expect("no files"));
        for (id, known) in (0..).zip(&known) {
            schemas.arrived(SchemaId::Id(id), known.clone(), 0);
        }
        let log = logged(|| {
            // Two shards, each with several records.
            for _ in 0..2 {
                let mut reader = schemas.reader(Side::Clicks);
                for _ in 0..3 {
                    let located = reader.locate(record, &NoHeaders);
                    assert!(matches!(located, Located::Invalid(_)), "{message}: {located:?}");
                }
            }
        });
        assert_eq!(log.lines().count(), 1, "{log}");
        assert!(
            log.contains(message) && log.contains("topic=\"clicks\""),
            "{message}: {log}"
        );
    }
}

#[test]
fn a_file_with_several_messages_needs_the_name_of_one() {
    let file = tempfile::NamedTempFile::with_suffix(".proto").expect("a file");
    std::fs::write(file.path(), PROTO).expect("it is written");
    let open = |message: &str| {
        let text = format!(
            "events.click.format = \"protobuf\"\n{message}\nregistry.url = \"http://a\"\nschemas.click = {:?}",
            file.path()
        );
        Schemas::open(&config(&text)).map(Arc::new)
    };
    for (message, fault) in [
        ("", "has several messages"),
        (
            "events.click.message = \"shop.Clik\"",
            "has no message `shop.Clik`",
        ),
    ] {
        let Err(error) = open(message) else {
            panic!("{message}");
        };
        assert_eq!(error.setting, "events.click.message");
        assert!(error.message.contains(fault), "{error}");
        assert!(
            error.remedy.ends_with("shop.List, shop.Click"),
            "{}",
            error.remedy
        );
    }
    let schemas = open("events.click.message = \"shop.Click\"").expect("it is there");
    let located = json(schemas.reader(Side::Clicks).locate(b"\x0a\x02r7", &NoHeaders));
    assert_eq!(located, r#"{"id":"r7"}"#);
}

/// Names the paths that a schema lacks, and not those that another kind in the same topic has.
#[test]
fn a_schema_without_the_needed_fields_is_told_apart() {
    let list = SchemaFile::parse(Format::Avro, LIST, &[]).expect("a schema");
    let SchemaFile::Avro { schema, .. } = list else {
        panic!("another format")
    };
    let lacks = |more: &str| {
        let text = format!(
            "kafka.brokers = \"b:1\"\nevents.served.format = \"avro\"\nregistry.url = \"http://a\"\n{more}"
        );
        let config = settings::load_text("abgauge.toml", &text, std::iter::empty());
        let schemas = Schemas::open(&config.expect("valid")).expect("no files");
        schemas.lacks(Side::Served, &schema)
    };
    let needed = [
        "events.served.request_id = \"request_id\"",
        "events.served.ts = \"ts\"",
        "events.served.items = \"items\"",
    ];
    assert_eq!(lacks(""), needed);
    let mapped = "events.served.request_id = \"id\"\nevents.served.ts = \"id\"\nevents.served.items = \"id\"";
    assert_eq!(lacks(mapped), Vec::<String>::new());
    let click = "kafka.clicks_topic = \"served\"\nevents.click.request_id = \"id\"\nevents.click.ts = \"id\"\nevents.click.item = \"id\"";
    assert_eq!(lacks(click), Vec::<String>::new());
}
