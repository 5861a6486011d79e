//! Tests of the encodings of topics, `[registry]` and `[schemas]`.

use super::*;

const ONE_TOPIC: &str = "kafka.clicks_topic = \"served\"\nregistry.url = \"http://a\"\n";

#[test]
fn a_single_topic_has_the_encoding_of_its_lists() {
    for (settings, fragments) in [
        (
            "events.served.format = \"avro\"\nevents.click.format = \"json\"",
            [
                "events.click.format: differs from the setting of served lists, and both are in one topic",
                "leave out the settings of clicks",
            ],
        ),
        (
            "events.click.framing = \"confluent\"",
            [
                "events.click.framing: differs",
                "leave out the settings of clicks",
            ],
        ),
    ] {
        check_refused(&format!("{ONE_TOPIC}{settings}"), &[], &fragments);
    }
    let of_both = "events.served.format = \"avro\"\nevents.click.format = \"avro\"";
    assert_eq!(config(&format!("{ONE_TOPIC}{of_both}"), &[]).warnings(), [""; 0]);
    check_refused(
        &format!("{ONE_TOPIC}events.served.format = \"avro\""),
        &[("ABGAUGE_EVENTS__CLICK__FORMAT", "json")],
        &["events.click.format (from ABGAUGE_EVENTS__CLICK__FORMAT): differs"],
    );
}

#[test]
fn settings_of_clicks_without_effect_in_a_single_topic_are_named() {
    let warnings = |settings: &str| {
        let text = format!("{ONE_TOPIC}events.served.format = \"protobuf\"\n{settings}");
        config(&text, &[]).warnings()
    };
    for (click, served, setting, decides) in [
        (
            "events.click.message = \"shop.Click\"",
            "events.served.message = \"shop.Click\"",
            "events.click.message",
            "events.served.message",
        ),
        (
            "schemas.click = \"a.proto\"",
            "schemas.served = \"a.proto\"",
            "schemas.click",
            "schemas.served",
        ),
    ] {
        let warning = format!(
            "{setting} has no effect: lists and clicks are in one topic, and {decides} applies to both; remove it"
        );
        assert_eq!(warnings(click), [warning]);
        assert_eq!(warnings(&format!("{click}\n{served}")), [""; 0]);
    }
}

#[test]
fn only_avro_is_written_as_a_single_object() {
    check_refused(
        "events.click.framing = \"single_object\"",
        &[],
        &[
            "events.click.framing: is an encoding of Avro",
            "set events.click.format = \"avro\"",
        ],
    );
}

#[test]
fn a_user_of_the_registry_has_no_colon() {
    check_refused(
        "registry.url = \"http://a\"\nregistry.username = \"a:b\"\nregistry.password_file = \"p\"",
        &[],
        &["registry.username: contains a colon", "registry.token_file"],
    );
}

/// No registry can name the schema of such records, so all of them would be invalid.
#[test]
fn records_that_name_no_schema_of_a_registry_need_a_file() {
    let registry = "registry.url = \"http://a\"";
    for framing in ["none", "glue"] {
        for (topic, format) in [("served", "avro"), ("click", "protobuf")] {
            let settings = format!(
                "events.{topic}.format = \"{format}\"\nevents.{topic}.framing = \"{framing}\"\n{registry}"
            );
            let fault = format!("events.{topic}.framing: needs schemas.{topic}");
            check_refused(&settings, &[], &[&fault, &format!("set schemas.{topic}: name")]);
            let with_file = format!("{settings}\nschemas.{topic} = \"a.proto\"");
            assert_eq!(config(&with_file, &[]).warnings(), [""; 0]);
        }
        // JSON needs no schema.
        config(&format!("events.served.framing = \"{framing}\""), &[]);
    }
}

#[test]
fn a_registry_without_effect_is_named() {
    let warnings =
        |settings: &str| config(&format!("registry.url = \"http://a\"\n{settings}"), &[]).warnings();
    let warning = "[registry] has no effect, because both topics have JSON";
    let of_json = warnings("");
    assert!(
        of_json.len() == 1 && of_json[0].starts_with(warning),
        "{of_json:?}"
    );
    assert_eq!(warnings("events.click.format = \"protobuf\""), [""; 0]);
}

#[test]
fn likely_mistakes_about_formats_are_answered_with_the_setting() {
    for (settings, fragments) in [
        (
            "events.format = \"avro\"",
            ["`format` under [events.served]", "`format` under [events.click]"],
        ),
        (
            "events.served.format = \"json_schema\"",
            [
                "events.served.format: is not the name of a format",
                "write \"json\": records with a JSON Schema are JSON",
            ],
        ),
        (
            "schema_registry.url = \"http://a\"",
            ["there is no such setting", "did you mean `registry`?"],
        ),
    ] {
        check_refused(settings, &[], &fragments);
    }
}
