//! Claims about the way from a file and an environment to a configuration, or to its errors.

mod events;
mod in_force;

use std::io::Write;

use miette::{GraphicalReportHandler, GraphicalTheme};
use serde_json::Value;

use super::layers::known_settings;
use super::load::parse;
use super::*;
use crate::engine::ranking::{ApDenominator, Profile};

const BROKERS: (&str, &str) = ("ABGAUGE_KAFKA__BROKERS", "localhost:9092");

fn owned(env: &[(&str, &str)]) -> Vec<(String, String)> {
    env.iter()
        .map(|(name, value)| (name.to_string(), value.to_string()))
        .collect()
}

fn config(text: &str, env: &[(&str, &str)]) -> Config {
    let env = [&[BROKERS], env].concat();
    match parse("abgauge.toml", text, owned(&env).into_iter(), validate::validate) {
        Ok(config) => config,
        Err(errors) => panic!("{}", render(&errors)),
    }
}

fn refused(text: &str, env: &[(&str, &str)]) -> ConfigErrors {
    let env = [&[BROKERS], env].concat();
    parse("abgauge.toml", text, owned(&env).into_iter(), validate::validate).expect_err("to be refused")
}

/// As an operator sees it, without colours.
fn render(errors: &ConfigErrors) -> String {
    let mut text = errors.to_string() + "\n";
    let handler = GraphicalReportHandler::new_themed(GraphicalTheme::none()).with_width(400);
    for told in errors.each() {
        handler.render_report(&mut text, &told).expect("renders");
    }
    text
}

#[test]
fn an_address_that_is_none_is_told_what_it_may_be() {
    for (text, fault, remedy) in [
        ("", "", "write \"0.0.0.0:9464\""),
        ("9465", "", "write \"0.0.0.0:9465\""),
        ("10.0.0.1", "has no port", "write \"10.0.0.1:9464\""),
        (":99999", "no port that there can be", "write \"0.0.0.0:9464\""),
        (
            "localhost:99999",
            "no port that there can be",
            "write \"127.0.0.1:9464\"",
        ),
        (
            "127.0.0.1:-1",
            "no port that there can be",
            "write \"127.0.0.1:9464\"",
        ),
        ("::1:9464", "is not an address", "\"[::1]:9464\""),
        (
            "gauges:9464",
            "is not an address",
            "\"127.0.0.1:9464\" for this machine alone",
        ),
    ] {
        let variable = ("ABGAUGE_HTTP__LISTEN", text);
        check_refused("", &[variable], &["http.listen", fault, remedy]);
    }
}

fn check_refused(text: &str, env: &[(&str, &str)], fragments: &[&str]) {
    let errors = refused(text, env);
    let rendered = render(&errors);
    assert_eq!(
        errors.errors().len(),
        1,
        "only this is wrong with {text:?} {env:?}:\n{rendered}"
    );
    for fragment in fragments {
        assert!(
            rendered.contains(fragment),
            "{fragment:?} is missing for {text:?} {env:?}:\n{rendered}"
        );
    }
}

/// The sample with its commented settings switched on.
fn full_sample() -> String {
    let is_setting = |line: &str| line.starts_with(|c: char| c.is_ascii_lowercase() || c == '[');
    let line = |line: &str| match line.strip_prefix('#') {
        Some(setting) if is_setting(setting) => setting.to_owned() + "\n",
        _ => line.to_owned() + "\n",
    };
    Config::default_toml().lines().map(line).collect()
}

#[test]
fn the_sample_says_the_defaults() {
    assert_eq!(config(Config::default_toml(), &[]), config("", &[]));
    assert_eq!(config("", &[]).warnings(), [""; 0]);
}

#[test]
fn the_sample_names_every_setting_and_no_other() {
    let sample = full_sample();
    let secret = "sasl.password = \"/run/secrets/kafka-password\"\n";
    assert!(sample.contains(secret));
    config(&sample.replace(secret, ""), &[]);
    let table: toml::Table = sample.parse().expect("TOML");
    for (section, settings) in known_settings() {
        let settings = settings.as_object().expect("a section");
        for (name, default) in settings {
            let written = table[&section].get(name);
            assert!(written.is_some(), "{section}.{name}");
            for inner in default.as_object().into_iter().flat_map(|table| table.keys()) {
                let written = written.and_then(|table| table.get(inner));
                assert!(written.is_some(), "{section}.{name}.{inner}");
            }
        }
    }
    assert!(table.contains_key("experiments"));
}

#[test]
fn commented_lists_of_the_sample_say_what_is_exported_by_default() {
    let secret = "sasl.password = \"/run/secrets/kafka-password\"\n";
    let full = config(&full_sample().replace(secret, ""), &[]);
    let bare = config("", &[]);
    assert_eq!(full.export.k, Some(bare.measures.ks));
    assert_eq!(
        Export {
            k: None,
            ..full.export
        },
        bare.export,
    );
}

#[test]
fn the_defaults_are_those_that_the_manual_promises() {
    let config = config("", &[]);
    assert_eq!(config.join.attribution_ms, 30 * 60_000);
    assert_eq!(config.join.lateness_ms, 120_000);
    assert_eq!(
        config.measures.ks.iter().map(|k| k.get()).collect::<Vec<_>>(),
        [1, 5, 10]
    );
    assert_eq!(config.export.windows, ["5m", "1h", "24h", "total"]);
    assert_eq!(
        config.export.metrics,
        ["hit_rate", "ctr", "mrr", "ndcg", "precision", "recall", "map"]
    );
    assert_eq!(config.export.numerators, config.export.metrics);
    assert_eq!(config.limits.max_state_bytes, 4 << 30);
    assert_eq!(config.http.listen.to_string(), "127.0.0.1:9464");
}

#[test]
fn evaluate_has_the_defaults_of_the_daemon() {
    let daemon = config("", &[]);
    let evaluate = crate::evaluate::Options::default();
    assert_eq!(evaluate.measures, daemon.measures);
    assert_eq!(evaluate.attribution_ms, daemon.join.attribution_ms);
    assert_eq!(evaluate.click_skew_ms, daemon.join.click_skew_ms);
    assert_eq!(evaluate.slot_ms, daemon.join.slot_ms);
    assert_eq!(evaluate.max_items, daemon.join.max_items);
    assert_eq!(evaluate.max_off_list, daemon.join.max_off_list);
    assert_eq!(evaluate.hash_seed, daemon.join.hash_seed);
}

#[test]
fn each_fault_of_a_file_names_its_setting_its_line_and_its_remedy() {
    let table: &[(&str, &[&str])] = &[
        // Names.
        (
            "[kafka]\nborkers = \"a:1\"",
            &["kafka.borkers", "abgauge.toml:2:1", "did you mean `brokers`?"],
        ),
        (
            "[kafak]\nx = 1",
            &["kafak", "abgauge.toml:1:2", "did you mean `kafka`?"],
        ),
        (
            "[kafka]\nlateness = \"2m\"",
            &["kafka.lateness", "did you mean `lateness` under [join]?"],
        ),
        (
            "[kafka]\nsocket.timeout.ms = 5",
            &["kafka.socket", ":2:1", "under [kafka.properties]"],
        ),
        (
            "join = 5",
            &["join: is a table", "abgauge.toml:1:1", "write [join]"],
        ),
        (
            "[[kafka]]\nkey = \"user\"",
            &["kafka: is a table", "write [kafka]"],
        ),
        // Spans and sizes.
        (
            "[join]\nlateness = 120",
            &[
                "join.lateness",
                "abgauge.toml:2:12",
                "120 has no unit",
                "\"120s\"",
            ],
        ),
        (
            "[join]\nlateness = \"120\"",
            &["join.lateness", "120 has no unit", "\"120s\""],
        ),
        (
            "[join]\nlateness = \"2 min\"",
            &["join.lateness", ":2:12", "\"2 min\"", "write \"2m\""],
        ),
        (
            "[join]\nlateness = true",
            &[
                "join.lateness",
                "true is not a span of time",
                "write a span of time",
            ],
        ),
        ("[join]\nslot = \"0s\"", &["join.slot", "longer than nothing"]),
        (
            "[join]\nidle_after = \"0s\"",
            &["join.idle_after", "longer than nothing"],
        ),
        (
            "[http]\ntimeout = \"0s\"",
            &["http.timeout", "longer than nothing"],
        ),
        (
            "[limits]\nmax_state = 4",
            &["limits.max_state", ":2:13", "4 has no unit", "\"4GiB\""],
        ),
        (
            "[limits]\nmax_state = \"4Gi\"",
            &["limits.max_state", "\"4Gi\"", "write \"4GiB\""],
        ),
        (
            "[limits]\nmax_state = \"1kB\"",
            &["limits.max_state", "too small", "\"1MiB\""],
        ),
        // Settings that contradict each other.
        (
            "[join]\nlateness = \"59s\"",
            &[
                "join.lateness",
                ":2:12",
                "less than twice max_future (30s)",
                "\"1m\"",
                "at most \"29500ms\"",
            ],
        ),
        (
            "[join]\nmax_future = \"5m\"",
            &[
                "join.max_future",
                "less than twice max_future (5m)",
                "\"10m\"",
                "\"1m\"",
            ],
        ),
        (
            "[join]\nattribution = \"4s\"",
            &["join.attribution", "shorter than a slot (5s)", "\"5s\""],
        ),
        (
            "[metrics]\nwindows = [\"1h\", \"7m\"]",
            &[
                "metrics.windows",
                ":2:18",
                "\"7m\"",
                "whole slots of 5s",
                "\"5m\" or \"10m\"",
            ],
        ),
        (
            "[metrics]\nwindows = [\"1m\"]",
            &["metrics.windows", ":2:12", "write \"5m\", or a shorter slot"],
        ),
        (
            "[metrics]\nwindows = [\"90ms\"]\n[join]\nslot = \"1ms\"",
            &["metrics.windows", "\"60ms\" or \"120ms\""],
        ),
        // Lists.
        (
            "[metrics]\nk = [5, 1, 5]",
            &["metrics.k", ":2:5", "not ascending", "write k = [1, 5]"],
        ),
        (
            "[metrics]\nk = [0, 1]",
            &["metrics.k", ":2:6", "0 is out of range"],
        ),
        (
            "[metrics]\nk = [1, 100001]",
            &["metrics.k", ":2:9", "from 1 to 100000"],
        ),
        (
            "[metrics]\nk = 5",
            &["metrics.k", "5 is not a list", "write a list in brackets"],
        ),
        (
            "[metrics]\nk = [1, \"5\"]",
            &["metrics.k", ":2:9", "write a whole number"],
        ),
        ("[metrics]\nwindows = []", &["metrics.windows", "is empty"]),
        (
            "[metrics]\nwindows = [\"0s\"]",
            &["metrics.windows", "\"0s\" is empty"],
        ),
        (
            "[metrics]\nwindows = [\"total\"]",
            &[
                "metrics.windows",
                "\"total\" does not fit",
                "write a span of time",
            ],
        ),
        (
            "[metrics]\nwindows = [\"1h\", \"60m\"]",
            &["metrics.windows", ":2:18", "the same window as \"1h\""],
        ),
        (
            "[export]\nmetrics = [\"ctr\", \"pecision\"]",
            &[
                "export.metrics",
                ":2:19",
                "\"pecision\"",
                "did you mean \"precision\"?",
            ],
        ),
        (
            "[export]\nmetrics = [\"auc\"]",
            &[
                "export.metrics",
                "\"hit_rate\", \"ctr\"",
                "\"surprisal\" or \"hit_ratio\"",
            ],
        ),
        (
            "[metrics]\nmetrics = [\"ctr\"]\n[export]\nmetrics = [\"mrr\"]",
            &["export.metrics", ":4:12", "is not measured", "under [metrics]"],
        ),
        (
            "[metrics]\nmetrics = [\"coverage\"]",
            &[
                "metrics.metrics",
                ":2:12",
                "needs the catalogue",
                "catalog = \"FILE\"",
            ],
        ),
        (
            "[metrics]\nprofile = \"seed-0\"\nmetrics = [\"ndcg\"]",
            &["metrics.metrics", ":3:12", "seed-0 does not define \"ndcg\""],
        ),
        (
            "[metrics]\nprofile = \"ranks\"",
            &["metrics.profile", ":2:11", "did you mean \"ranx\"?"],
        ),
        (
            "[metrics]\nprofile = [\"ranx\", \"ranx\"]",
            &["metrics.profile", "is there twice"],
        ),
        (
            "[metrics]\nprofile = 5",
            &["metrics.profile", "profile = [\"default\", \"ranx\"]"],
        ),
        ("[metrics]\nprofile = []", &["metrics.profile", "neither a name"]),
        (
            "[metrics]\nalpha = 1.5",
            &["metrics.alpha", ":2:9", "1.5 is out of range", "0 to 1"],
        ),
        (
            "[profile.mine]\nap_denominator = \"k\"",
            &["profile.mine", "has no base", "base = \"default\""],
        ),
        (
            "[profile.mine]\nbase = \"ranx\"\nap_denominatr = \"k\"",
            &[
                "profile.mine.ap_denominatr",
                ":3:17",
                "did you mean `ap_denominator`?",
            ],
        ),
        (
            "[profile.mine]\nbase = \"ranx\"\nap_denominator = \"L\"",
            &["profile.mine.ap_denominator", ":3:18", "\"min(k,L)\""],
        ),
        (
            "[profile.mine]\nbase = \"ranx\"\nmetrics = \"mrr\"",
            &["profile.mine.metrics", "is not a list of names"],
        ),
        (
            "[metrics]\nmetrics = []",
            &["metrics.metrics", ":2:11", "is empty", "[\"hit_rate\"]"],
        ),
        (
            "[profile.\"a,b\"]\nbase = \"ranx\"",
            &["profile.a,b", "no profile can have this name", "without a comma"],
        ),
        (
            "[profile.ranx]\nbase = \"default\"",
            &["profile.ranx", "comes with abgauge", "another name"],
        ),
        (
            "[export]\nmetrics = [\"hit_rate\", \"hit_ratio\"]",
            &["export.metrics", "\"hit_ratio\" is there twice"],
        ),
        (
            "[export]\nmetrics = [\"ctr\"]\nnumerators = [\"mrr\"]",
            &["export.numerators", ":3:15", "\"ctr\""],
        ),
        (
            "[export]\nmetrics = []\nnumerators = [\"mrr\"]",
            &["export.numerators", "leave it out"],
        ),
        (
            "[export]\nk = [1, 7]",
            &["export.k", ":2:9", "7 is not computed", "[1, 5, 10]"],
        ),
        (
            "[export]\nwindows = [\"2h\"]",
            &["export.windows", ":2:12", "\"2h\"", "\"total\""],
        ),
        (
            "[export]\nviews = []",
            &["export.views", "nothing would be exported"],
        ),
        (
            "[export]\nviews = [\"setled\"]",
            &["export.views", "did you mean \"settled\"?", "\"setled\""],
        ),
        // Numbers.
        (
            "[join]\nmax_items = 0",
            &["join.max_items", ":2:13", "from 1 to 100000"],
        ),
        (
            "[join]\nmax_items = 100001",
            &["join.max_items", "from 1 to 100000"],
        ),
        (
            "[join]\nmax_items = \"many\"",
            &[
                "join.max_items",
                "\"many\" is not a whole number",
                "write a whole number",
            ],
        ),
        (
            "[join]\nmax_off_list = -1",
            &["join.max_off_list", "from 0 to 1000"],
        ),
        (
            "[join]\nhash_seed = -1",
            &["join.hash_seed", "from 0 to 9223372036854775807"],
        ),
        (
            "[join]\nmax_items = 99999999999999999999",
            &["join.max_items: 99999999999999999999 is not a whole number"],
        ),
        (
            "[join]\nslot = -5",
            &["join.slot: -5 is negative", "write a span of time"],
        ),
        (
            "[profile]\nx = 5",
            &["profile.x: 5 is not a table", "[profile.NAME]"],
        ),
        (
            "[metrics]\ncatalog = \"\"",
            &["metrics.catalog: is empty", "the path of a file"],
        ),
        ("[limits]\nmax_arms = 0", &["limits.max_arms", "from 1 to"]),
        ("[export]\nmax_series = 0", &["export.max_series", "from 1 to"]),
        (
            "[http]\nmax_connections = 0",
            &["http.max_connections", "from 1 to"],
        ),
        // Names of the outside world.
        (
            "[kafka]\nserved_topic = \"\"",
            &["kafka.served_topic", ":2:16", "is empty"],
        ),
        (
            "[kafka]\nclicks_topic = \"^clicks.*\"",
            &["kafka.clicks_topic", "is not the name of a topic"],
        ),
        (
            "[kafka]\ndead_letter_topic = \"served\"",
            &["kafka.dead_letter_topic", "another topic"],
        ),
        ("[kafka]\ngroup_id = \" \"", &["kafka.group_id", "is empty"]),
        (
            "[kafka]\nkey = \"requests\"",
            &["kafka.key", ":2:7", "did you mean \"request\"?"],
        ),
        (
            "[kafka]\nstart = \"now\"",
            &["kafka.start", "\"rebuild\" or \"earliest\""],
        ),
        (
            "[http]\nlisten = \"localhost:9464\"",
            &["http.listen", ":2:10", "write \"127.0.0.1:9464\""],
        ),
        (
            "[http]\nlisten = \":9464\"",
            &["http.listen", "write \"0.0.0.0:9464\""],
        ),
        (
            "[http]\nlisten = \"127.0.0.1:94640\"",
            &[
                "http.listen",
                "has no port that there can be",
                "\"127.0.0.1:9464\"",
                "1 to 65535",
            ],
        ),
        (
            "[log]\nformat = \"xml\"",
            &["log.format", "\"auto\", \"text\" or \"json\""],
        ),
        (
            "[log]\nfilter = \"abgauge=loud\"",
            &["log.filter", ":2:10", "info,abgauge=debug"],
        ),
        (
            "[log]\nfilter = \"inof\"",
            &["log.filter", "`inof` is not a level", "did you mean info?"],
        ),
        (
            "[log]\nfilter = \"info,librdkafka\"",
            &["`librdkafka` is not a level", "info,librdkafka=debug"],
        ),
        ("[log]\nfilter = \"\"", &["log.filter", "is empty"]),
        // Experiments.
        (
            "[experiments.a]\nstart = \"2026-01-31\"",
            &["experiments.a.start", ":2:9", "2026-01-31T09:00:00Z"],
        ),
        (
            "[experiments.a]\nstart = 2026-01-31T09:00:00",
            &["experiments.a.start", ":2:9", "offset"],
        ),
        (
            "[experiments.a]\nstrat = 5",
            &["experiments.a", "unknown field `strat`", "`start`"],
        ),
        (
            "[experiments]\na = 5",
            &["experiments.a", ":2:5", "[experiments.NAME]"],
        ),
        (
            "[experiments.a]\ncontrol = \"__other__\"",
            &["experiments.a.control", ":2:11", "no arm can have this name"],
        ),
        (
            "[experiments.__other__]\ncontrol = \"a\"",
            &["experiments.__other__", "this name"],
        ),
        (
            "[experiments.__other__]\nstart = \"2026-01-31T09:00:00Z\"",
            &["experiments.__other__", "this name"],
        ),
        // Properties.
        (
            "[kafka.properties]\n\"group.id\" = \"x\"",
            &["kafka.properties.group.id", ":2:14", "`group_id` under [kafka]"],
        ),
        (
            "[kafka.properties]\nauto.offset.reset = \"x\"",
            &["auto.offset.reset", ":2:21", "`start` under [kafka]"],
        ),
        (
            "[kafka.properties]\nenable.auto.commit = true",
            &["enable.auto.commit", "leave it out"],
        ),
        (
            "[kafka.properties]\n\"a..b\" = 1",
            &["kafka.properties.a..b", "not the name of a property"],
        ),
        (
            "[kafka.properties]\nlinger.ms = 0.5",
            &[
                "kafka.properties.linger.ms",
                ":2:13",
                "a number with a fraction is not the value of a property",
                "text in quotes",
            ],
        ),
        // Who may ask.
        (
            "[http]\ntls_key = \"key.pem\"",
            &["http.tls_key", ":2:11", "no certificate", "http.tls_certificate"],
        ),
        (
            "[http]\nbearer_tokens = [\"00\"]",
            &["http.bearer_tokens", ":2:17", "entry 1", "abgauge hash token"],
        ),
        (
            "[http]\nbasic_passwords = 5",
            &[
                "http.basic_passwords",
                "a number is not a list of hashes",
                "a list of hashes in quotes",
            ],
        ),
        (
            "[http]\nbasic_passwords = [\"scraper:$2y$05$abcdefghijklmnopqrstuuu7NtNcXHnHdcVlnhAqfbVRe3oTRNvjq\"]",
            &[
                "http.basic_passwords",
                "cost outside 10 to 14",
                "abgauge hash password",
            ],
        ),
        (
            "[kafka.property_files]\nsasl.password = \"no/such/file\"",
            &[
                "kafka.property_files.sasl.password",
                ":2:17",
                "No such file",
                "write the path",
            ],
        ),
    ];
    for (text, fragments) in table {
        check_refused(text, &[], fragments);
    }
}

#[test]
fn a_fault_of_a_variable_names_the_variable() {
    let table: &[(&str, &str, &[&str])] = &[
        (
            "ABGAUGE_JOIN__LATENESS",
            "120",
            &["join.lateness (from ABGAUGE_JOIN__LATENESS)", "\"120s\""],
        ),
        (
            "ABGAUGE_JOIN__MAX_ITEMS",
            "many",
            &["ABGAUGE_JOIN__MAX_ITEMS", "a whole number"],
        ),
        (
            "ABGAUGE_METRICS__K",
            "1,x",
            &[
                "metrics.k (from ABGAUGE_METRICS__K)",
                "\"x\" is not a whole number",
                "commas between",
            ],
        ),
        ("ABGAUGE_METRICS__K", "1,,2", &["\"\" is not a whole number"]),
        ("ABGAUGE_METRICS__K", "[1,2", &["\"[1\" is not a whole number"]),
        (
            "ABGAUGE_METRICS__WINDOWS",
            "5m,99999d",
            &["\"99999d\" is too long", "at most ten years"],
        ),
        (
            "ABGAUGE_METRICS__WINDOWS",
            "5m,1",
            &["1 has no unit", "commas between"],
        ),
        ("ABGAUGE_METRICS__METRICS", ",", &["\"\" is not known here"]),
        (
            "ABGAUGE_LIMITS__MAX_INVALID_SHARE",
            "5%",
            &["is not a number", "such as 0.5"],
        ),
        (
            "ABGAUGE_HTTP__OPEN_PROBES",
            "yes",
            &["\"yes\" is not true or false", "write true or false"],
        ),
        (
            "ABGAUGE_JOIN__SLOT",
            "7s",
            &[
                "join.slot (from",
                "5m, 1h, 24h (metrics.windows)",
                "write slot = \"5s\"",
            ],
        ),
        (
            "ABGAUGE_EVALUATE_KK",
            "5",
            &["there is no such flag", "ABGAUGE_EVALUATE_K,"],
        ),
        ("ABGAUGE_DEMO_RAET", "5", &["did you mean ABGAUGE_DEMO_RATE?"]),
        ("ABGAUGE_JOIN__MAX_ITEMS", "", &["\"\" is not a whole number"]),
        (
            "ABGAUGE_METRICS__K",
            "5,1",
            &["metrics.k (from ABGAUGE_METRICS__K)", "[1, 5]"],
        ),
        (
            "ABGAUGE_KAFKA__BROKRES",
            "a:1",
            &["ABGAUGE_KAFKA__BROKRES", "did you mean ABGAUGE_KAFKA__BROKERS?"],
        ),
        (
            "ABGAUGE_Kafka__Brokers",
            "a:1",
            &["ABGAUGE_Kafka__Brokers", "did you mean ABGAUGE_KAFKA__BROKERS?"],
        ),
        (
            "ABGAUGE_KAFKA__SASL_PASSWORD",
            "x",
            &["ABGAUGE_KAFKA__SASL_PASSWORD", "ABGAUGE_KAFKA__PROPERTIES__NAME"],
        ),
        (
            "ABGAUGE_KAFKA__PROPERTIES",
            "x",
            &["did you mean ABGAUGE_KAFKA__PROPERTIES__NAME?"],
        ),
        (
            "ABGAUGE_EXPERIMENTS__A__START",
            "x",
            &["ABGAUGE_EXPERIMENTS__A__START", "[experiments.NAME]"],
        ),
        (
            "ABGAUGE_KAFKA__PROPERTIES__GROUP_ID",
            "x",
            &["ABGAUGE_KAFKA__PROPERTIES__GROUP_ID", "`group_id`"],
        ),
        (
            "ABGAUGE_KAFKA__PROPERTY_FILES__SASL_PASSWORD",
            "no",
            &["PROPERTY_FILES__SASL_PASSWORD", "No such file"],
        ),
    ];
    for (name, value, fragments) in table {
        check_refused("", &[(name, value)], fragments);
    }
    for brokers in ["", ":9092", "a:1,,b:2", "a:0", "a:port", "a:99999", "a b:1"] {
        check_refused(
            "",
            &[("ABGAUGE_KAFKA__BROKERS", brokers)],
            &["kafka.brokers", "HOST:PORT"],
        );
    }
}

#[test]
fn all_faults_are_told_at_once_in_the_order_of_the_file() {
    let text = "[log]\nformat = \"xml\"\n[join]\nslot = 5\nlatenes = \"1m\"\n[metrics]\nk = [2, 1]\nwindows = [\"7m\"]\n";
    let errors = refused(text, &[("ABGAUGE_HTTP__LISTEN", "here")]);
    let keys: Vec<&str> = errors.errors().iter().map(|error| error.key.as_str()).collect();
    // The window is not held against a slot that nobody meant.
    assert_eq!(
        keys,
        [
            "log.format",
            "join.slot",
            "join.latenes",
            "metrics.k",
            "http.listen"
        ]
    );
    assert_eq!(
        errors.to_string(),
        "the configuration (abgauge.toml) has 5 errors"
    );
}

#[test]
fn every_fault_of_the_grammar_is_told_with_its_line() {
    let errors = refused("[kafka]\nkey = \n[join]\nslot = = 5\n", &[]);
    let rendered = render(&errors);
    assert!(
        rendered.contains("abgauge.toml:2:") && rendered.contains("abgauge.toml:4:"),
        "{rendered}"
    );
}

#[test]
fn brokers_must_be_given() {
    let errors = load(None, std::iter::empty()).expect_err("no brokers");
    let rendered = render(&errors);
    assert!(rendered.contains("kafka.brokers: is missing"), "{rendered}");
    assert!(rendered.contains("ABGAUGE_KAFKA__BROKERS"), "{rendered}");
}

#[test]
fn a_named_file_must_exist() {
    let errors = load(Some("no/such.toml".as_ref()), owned(&[BROKERS]).into_iter()).expect_err("no file");
    assert!(
        render(&errors).contains("cannot read the file no/such.toml"),
        "{}",
        render(&errors)
    );
}

#[test]
fn a_file_is_read_and_a_variable_goes_above_it() {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    write!(
        file,
        "[kafka]\nbrokers = \"a:1\"\ngroup_id = \"of-file\"\n[join]\nmax_items = 7"
    )
    .expect("written");
    let env = owned(&[
        ("ABGAUGE_KAFKA__GROUP_ID", "007"),
        ("ABGAUGE_PORT", "tcp://10.0.0.1:80"),
    ]);
    let config = load(Some(file.path()), env.into_iter()).expect("valid");
    assert_eq!(config.kafka.brokers, "a:1");
    assert_eq!(config.kafka.group_id, "007", "text stays text");
    assert_eq!(config.join.max_items, 7);
}

#[test]
fn a_variable_with_an_underscore_too_few_is_refused_with_the_right_one() {
    for (name, meant) in [
        ("ABGAUGE_KAFKA_BROKERS", "ABGAUGE_KAFKA__BROKERS?"),
        ("ABGAUGE_KAFKA_BROKRES", "ABGAUGE_KAFKA__BROKERS?"),
        ("ABGAUGE_BROKERS", "ABGAUGE_KAFKA__BROKERS?"),
        ("ABGAUGE_HTTP_LISTEN", "ABGAUGE_HTTP__LISTEN?"),
        (
            "ABGAUGE_KAFKA_PROPERTIES_SASL_PASSWORD",
            "ABGAUGE_KAFKA__PROPERTIES__SASL_PASSWORD?",
        ),
        (
            "ABGAUGE_EVENTS_SERVED_REQUEST_ID",
            "ABGAUGE_EVENTS__SERVED__REQUEST_ID?",
        ),
        (
            "ABGAUGE_LOG_LEVEL",
            "known are ABGAUGE_LOG__FILTER, ABGAUGE_LOG__FORMAT",
        ),
    ] {
        check_refused(
            "",
            &[(name, "hunter2")],
            &[name, "there is no such setting", meant],
        );
    }
    let rendered = render(&refused(
        "",
        &[("ABGAUGE_SASL_PASSWORD", "hunter2"), ("ABGAUGE_K", "1")],
    ));
    assert!(!rendered.contains("hunter2"), "{rendered}");
}

#[test]
fn variables_that_are_nothing_of_a_setting_are_warned_of_unless_they_are_made_up_for_us() {
    let strange = config("", &[("ABGAUGE_VERSION", "0.1.0")]);
    let [warning] = strange.warnings().try_into().expect("one");
    assert!(
        warning.starts_with("ABGAUGE_VERSION is no setting and has no effect"),
        "{warning}"
    );
    for (name, value) in [
        ("ABGAUGE_CONFIG", "abgauge.toml"),
        ("ABGAUGE_DEMO_RATE", "7"),
        ("ABGAUGE_SERVICE_HOST", "10.0.0.1"),
        ("ABGAUGE_SERVICE_PORT_HTTP", "9464"),
        ("ABGAUGE_PORT", "tcp://10.0.0.1:9464"),
        ("ABGAUGE_HTTP_PORT", "tcp://10.0.0.1:9464"),
        ("ABGAUGE_PORT_9464_TCP_ADDR", "10.0.0.1"),
    ] {
        assert_eq!(config("", &[(name, value)]).warnings(), [""; 0], "{name}");
    }
}

#[test]
fn a_variable_spells_a_list_with_commas_or_as_toml() {
    for value in ["2,3", "2, 3", "[2, 3]"] {
        let config = config("", &[("ABGAUGE_METRICS__K", value)]);
        assert_eq!(
            config.measures.ks.iter().map(|k| k.get()).collect::<Vec<_>>(),
            [2, 3],
            "{value}"
        );
    }
    for value in ["10m,1h", "[\"10m\", '1h']", "1h, 10m"] {
        let config = config("", &[("ABGAUGE_METRICS__WINDOWS", value)]);
        assert_eq!(config.export.windows, ["10m", "1h", "total"], "{value}");
    }
    let one = config(
        "",
        &[
            ("ABGAUGE_EXPORT__VIEWS", "settled"),
            ("ABGAUGE_EXPORT__NUMERATORS", ""),
        ],
    );
    assert!(one.export.settled && !one.export.live && one.export.numerators.is_empty());
}

#[test]
fn every_setting_has_its_variable() {
    let sample: toml::Table = full_sample().parse().expect("TOML");
    for (section, settings) in known_settings()
        .iter()
        .filter(|(section, _)| *section != "experiments")
    {
        for (name, default) in settings
            .as_object()
            .expect("a section")
            .iter()
            .filter(|(name, _)| !name.starts_with("propert"))
        {
            let variable = format!("ABGAUGE_{}__{}", section.to_uppercase(), name.to_uppercase());
            let written = &sample[section][name];
            // All settings of a table at once: some need each other.
            let variables = match default.as_object() {
                None => vec![(variable, plain(written))],
                Some(table) => table
                    .keys()
                    .map(|name| {
                        (
                            format!("{variable}__{}", name.to_uppercase()),
                            plain(&written[name]),
                        )
                    })
                    .collect(),
            };
            let variables: Vec<(&str, &str)> = variables
                .iter()
                .map(|(name, value)| (&**name, &**value))
                .collect();
            // A key needs a certificate.
            let certificate = [("ABGAUGE_HTTP__TLS_CERTIFICATE", "tls.crt")];
            config("", &[&certificate[..], &variables].concat());
        }
    }
}

/// A value as one writes it into a variable.
fn plain(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[test]
fn hit_ratio_is_another_name_for_hit_rate() {
    let config = config("[export]\nmetrics = [\"mrr\", \"hit_ratio\"]", &[]);
    assert_eq!(config.export.metrics, ["mrr", "hit_rate"]);
    assert_eq!(config.export.numerators, ["mrr", "hit_rate"]);
}

#[test]
fn a_profile_of_ones_own_is_its_base_with_other_choices() {
    let mine = "[metrics]\nprofile = [\"mine\", \"ranx\"]\n[profile.mine]\nbase = \"ranx\"\nap_denominator = \"k\"\n\
                metrics = [\"map\", \"mar\"]";
    let profiles = config(mine, &[]).measures.profiles;
    let ranx = Profile::named("ranx").expect("it is there");
    let expected = Profile {
        name: "mine".to_owned(),
        source: "your own, from ranx".to_owned(),
        metrics: vec!["map", "mar"],
        ap_denominator: ApDenominator::K,
        ..ranx.clone()
    };
    assert_eq!(profiles, [expected, ranx]);
}

#[test]
fn profiles_can_be_chosen_by_a_variable() {
    let names = |value| -> Vec<String> {
        let profiles = config("", &[("ABGAUGE_METRICS__PROFILE", value)])
            .measures
            .profiles;
        profiles.into_iter().map(|profile| profile.name).collect()
    };
    assert_eq!(names("ranx"), ["ranx"]);
    assert_eq!(names("default,ranx"), ["default", "ranx"]);
}

#[test]
fn what_the_export_names_is_measured() {
    let config = config(
        "[metrics]\ncatalog = \"items.jsonl\"\n[export]\nmetrics = [\"coverage\", \"mar\"]",
        &[],
    );
    assert_eq!(config.export.metrics, ["coverage", "mar"]);
    assert_eq!(
        config.export.numerators,
        ["mar"],
        "distinct counts are never added up"
    );
    assert!(config.measures.metrics.contains(&"coverage") && config.measures.metrics.contains(&"hit_rate"));
}

#[test]
fn an_experiment_starts_at_a_time_in_either_notation() {
    let text = "[experiments.a]\nstart = \"2026-01-31T10:00:00+01:00\"\n[experiments.\"b.c\"]\nstart = 2026-01-31T09:00:00Z";
    let starts = config(text, &[]).experiment_starts;
    let nine = 1_769_850_000_000;
    assert_eq!(
        starts,
        BTreeMap::from([("a".to_owned(), nine), ("b.c".to_owned(), nine)])
    );
}

#[test]
fn an_experiment_has_a_control_with_or_without_a_start() {
    let text = "[experiments.a]\ncontrol = \"old\"\n[experiments.b]\nstart = 2026-01-31T09:00:00Z\ncontrol = \"x y\"";
    let config = config(text, &[]);
    let pair = |name: &str, control: &str| (name.to_owned(), control.to_owned());
    assert_eq!(
        config.experiment_controls,
        BTreeMap::from([pair("a", "old"), pair("b", "x y")])
    );
    assert_eq!(config.experiment_starts.len(), 1);
}

#[test]
fn properties_pass_through_from_every_source() {
    let mut secret = tempfile::NamedTempFile::new().expect("a file");
    writeln!(secret, "  hunter2").expect("written");
    let text = format!(
        "[kafka.properties]\n\"security.protocol\" = \"ssl\"\nsasl.username = \"u\"\nfetch.max.bytes = 5\n\
         check.something = true\n[kafka.property_files]\nssl.key.password = {:?}\n",
        secret.path()
    );
    let env = [
        ("ABGAUGE_KAFKA__PROPERTIES__SECURITY_PROTOCOL", "SASL_SSL"),
        ("ABGAUGE_KAFKA__PROPERTIES__SASL_PASSWORD", "007"),
    ];
    let Properties(properties) = config(&text, &env).kafka.properties;
    let expected = [
        ("check.something", "true"),
        ("fetch.max.bytes", "5"),
        ("sasl.password", "007"),
        ("sasl.username", "u"),
        ("security.protocol", "SASL_SSL"),
        ("ssl.key.password", "hunter2"),
    ];
    assert_eq!(properties, owned(&expected).into_iter().collect());
}

#[test]
fn a_property_has_one_source() {
    let mut secret = tempfile::NamedTempFile::new().expect("a file");
    writeln!(secret, "hunter2").expect("written");
    let path = secret.path().display().to_string();
    let text = "[kafka.properties]\nsasl.password = \"x\"";
    let env = [("ABGAUGE_KAFKA__PROPERTY_FILES__SASL_PASSWORD", path.as_str())];
    check_refused(
        text,
        &env,
        &["PROPERTY_FILES__SASL_PASSWORD", "either the value or the file"],
    );
    let empty = tempfile::NamedTempFile::new().expect("a file");
    let path = empty.path().display().to_string();
    check_refused(
        "",
        &[("ABGAUGE_KAFKA__PROPERTY_FILES__SASL_PASSWORD", &path)],
        &["it is empty"],
    );
}

#[test]
fn no_secret_is_ever_shown() {
    let good = config(
        "[kafka.properties]\nsasl.password = \"hunter2\"",
        &[("ABGAUGE_KAFKA__PROPERTIES__SSL_KEY_PEM", "hunter2")],
    );
    assert_eq!(good.kafka.properties.0.len(), 2);
    let shown = format!("{good:?} {good:#?} {:?}", good.warnings());
    assert!(!shown.contains("hunter2"), "{shown}");
    let files = [
        // Beside a fault, at fault, out of place, of the wrong type, in a comment, over many lines, in broken files.
        "[kafka.properties]\ngroup.id = \"x\"\nsasl.password = \"hunter2\"",
        "[kafka.properties]\ngroup.id = \"hunter2\"",
        "[kafka.properties]\nsasl.password = [\"hunter2\"]",
        "[kafka]\nproperties = \"sasl.password=hunter2\"",
        "[kafka]\nsasl.password = \"hunter2\"",
        "[kafka]\nborkers = \"a:1\"\nproperties = { \"sasl.password\" = \"hunter2\" }",
        "[kafka]\nborkers = \"a:1\" # sasl.password = \"hunter2\"",
        "[kafka]\nproperties.ssl.key.pem = '''\nhunter2\n'''\nborkers = 5",
        "[kafka]\n# old password: hunter2\nborkers = 5",
        "[kafka.properties]\n# ssl.key.pem:\n# hunter2\ngroup.id = 5",
        "[kafka.property_files]\nsasl.password = \"hunter2\"",
        "[log]\nformat = \"xml\"\npassword = \"hunter2\"",
        "[kafka.properties]\nsasl.password = \"hunter2",
        "[kafka.properties]\nx = \nsasl.password = \"hunter2\"",
        "[kafka.properties]\nssl.key.pem = \"\"\"\n\\hunter2\nhunter2\"\"\"\n",
        "[kafka.properties]\nsasl.password = hunter2",
        // In place of their hashes.
        "[http]\nbearer_tokens = [\"hunter2\"]",
        "[http]\nbearer_tokens = \"hunter2\"",
        "[http]\nbearer_tokens = [[\"hunter2\"]]",
        "[http]\nbasic_passwords = [\"scraper:hunter2\"]",
        "[http]\nbasic_password = [\"scraper:hunter2\"]",
        "[http]\nbasic_passwords = [\n\"scraper:hunter2\"\n",
        "sasl.password = hunter2",
        // What is nearly the seed.
        "[join]\nhash_seed = \"hunter2\"",
        "[join]\nslot = 5\nhash_seed = 1 # hunter2",
        "[join]\n# hash_seed = hunter2\nslot = 5",
        "[join]\nhash_seed = hunter2",
    ];
    for text in files {
        let errors = refused(text, &[]);
        let shown = format!("{errors} {errors:?} {:?} {}", errors.errors(), render(&errors));
        assert!(!shown.contains("hunter2"), "{text}:\n{shown}");
    }
    for name in [
        "KAFKA__PROPERTIES__GROUP_ID",
        "KAFKA__PROPERTY_FILES__SASL_PASSWORD",
        "KAFKA__SASL_PASSWORD",
        "HTTP__BEARER_TOKENS",
        "HTTP__BASIC_PASSWORDS",
        "HTTP__BEARER_TOKEN",
        "JOIN__HASH_SEED",
    ] {
        let errors = refused("", &[(&format!("ABGAUGE_{name}"), "hunter2")]);
        let shown = format!("{errors} {errors:?} {}", render(&errors));
        assert!(!shown.contains("hunter2"), "{name}:\n{shown}");
    }
    let beyond = refused("[join]\nhash_seed = -81726354", &[]);
    let shown = format!("{beyond} {beyond:?} {}", render(&beyond));
    assert!(!shown.contains("81726354"), "{shown}");
}

#[test]
fn doubtful_settings_are_legal_and_named() {
    let table = [
        ("[join]\nattribution = \"48h\"", "join.attribution"),
        ("[join]\nclick_skew = \"1h\"", "join.click_skew"),
        ("[export]\nforget_after = \"1h\"", "export.forget_after"),
        ("[metrics]\nk = [5, 2000]", "metrics.k"),
        ("[metrics]\ncatalog = \"items.jsonl\"", "metrics.catalog is set"),
        ("[kafka.properties]\nsasl.username = \"u\"", "security.protocol"),
        ("[http]\nlisten = \"0.0.0.0:1\"", "http.bearer_tokens"),
        (
            "[http]\nlisten = \"[::]:1\"\nbearer_tokens_file = \"tokens\"",
            "http.tls_certificate",
        ),
    ];
    for (text, fragment) in table {
        let warnings = config(text, &[]).warnings();
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].contains(fragment), "{warnings:?}");
    }
    let used = "[metrics]\ncatalog = \"items.jsonl\"\nmetrics = [\"hit_rate\", \"surprisal\"]";
    assert_eq!(config(used, &[]).warnings(), Vec::<String>::new());
    let closed = "[http]\nlisten = \"[::]:1\"\nbearer_tokens_file = \"t\"\ntls_certificate = \"c\"";
    assert_eq!(config(closed, &[]).warnings(), Vec::<String>::new());
}

#[test]
fn who_may_ask_is_told_by_hashes_from_every_source() {
    let token = "0123456789abcdef".repeat(4);
    let user = "scraper:$2y$10$abcdefghijklmnopqrstuuu7NtNcXHnHdcVlnhAqfbVRe3oTRNvjq";
    let text = format!(
        "[http]\nbearer_tokens = [\"{token}\"]\nbasic_passwords_file = \"htpasswd\"\ntls_certificate = \"c.pem\""
    );
    let http = config(&text, &[("ABGAUGE_HTTP__BASIC_PASSWORDS", user)]).http;
    assert_eq!(http.access.tokens.len(), 1);
    assert_eq!(http.access.tokens[0].to_string(), token);
    assert_eq!(http.access.users.len(), 1);
    assert_eq!(http.access.users[0].name, "scraper");
    assert_eq!(http.access.users_file, Some("htpasswd".into()));
    let tls = http.tls.expect("set");
    assert_eq!((tls.certificate, tls.key), ("c.pem".into(), "c.pem".into()));
    assert!(config("", &[]).http.access.is_open());
    let two = format!("{token},{token}");
    let two = config("", &[("ABGAUGE_HTTP__BEARER_TOKENS", &two)]).http.access;
    assert_eq!(two.tokens.len(), 2);
}

#[test]
fn every_known_setting_is_a_section_or_has_a_plain_default() {
    for (section, settings) in known_settings() {
        let Value::Object(settings) = settings else {
            panic!("{section} is no section");
        };
        let tables = settings
            .iter()
            .filter_map(|(name, default)| Some((name, default.as_object()?)));
        for (name, default) in tables {
            let has_tables = default.values().any(Value::is_object);
            assert!(!has_tables, "{section}.{name}");
            assert!(section == "events" || default.is_empty(), "{section}.{name}");
        }
    }
}

/// What `evaluate` takes of a daemon's configuration: it needs no broker, and no secret of theirs.
#[test]
fn what_decides_the_counting_can_be_had_without_the_rest() {
    let text = "[kafka]\nbrokers = \"\"\n[kafka.property_files]\nsasl.password = \"/absent\"\n\
                [join]\nattribution = \"1h\"\n[metrics]\nprofile = \"mine\"\nmetrics = [\"map\"]\n\
                [profile.mine]\nbase = \"ranx\"\nap_denominator = \"k\"\n";
    let counting = |text: &str, env: &[(&str, &str)]| {
        let check = |raw, report: &mut error::Report| validate::counting(&raw, report);
        parse("abgauge.toml", text, owned(env).into_iter(), check)
    };
    let ours = counting(text, &[("ABGAUGE_METRICS__K", "3")]).expect("it is sound");
    assert_eq!(ours.join.attribution_ms, 3_600_000);
    assert_eq!(ours.measures.ks, [NonZeroU32::new(3).expect("not 0")]);
    assert_eq!(ours.chosen_metrics, Some(vec!["map"]));
    assert_eq!(ours.known_profiles.last(), ours.measures.profiles.first());

    let silent = counting("", &[]).expect("it is sound");
    assert_eq!(silent.chosen_metrics, None, "the usual ones were not chosen");
    for bad in [
        "[kafka]\nbrokrs = \"\"",
        "[join]\nslot = \"0s\"",
        "[profile.x]\nbase = \"y\"",
    ] {
        assert!(counting(bad, &[]).is_err(), "{bad}");
    }
}
