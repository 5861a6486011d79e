//! Tests of the way from a file and an environment to a configuration, or to its errors.

mod current;
mod events;
mod experiments;
mod faults;
mod formats;

use std::io::Write;

use abgauge_core::metrics::{ApDenominator, Profile};
use miette::{GraphicalReportHandler, GraphicalTheme};
use serde_json::Value;

use super::load::parse;
use super::names::known_settings;
use super::row::Rule;
use super::*;

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

/// Formats errors as the operator sees them, without colors.
fn render(errors: &ConfigErrors) -> String {
    let mut text = errors.to_string() + "\n";
    let handler = GraphicalReportHandler::new_themed(GraphicalTheme::none()).with_width(400);
    for reported in errors.each() {
        handler.render_report(&mut text, &reported).expect("renders");
    }
    text
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

/// The setting that others exclude: records of one item have no arrays.
const GATHER: &str = "gather = \"10s\"\n";

/// Returns the sample with its commented-out settings enabled.
fn full_sample() -> String {
    let is_setting = |line: &str| line.starts_with(|c: char| c.is_ascii_lowercase() || c == '[');
    let line = |line: &str| match line.strip_prefix('#') {
        Some(setting) if is_setting(setting) => setting.to_owned() + "\n",
        _ => line.to_owned() + "\n",
    };
    let sample: String = Config::default_toml().lines().map(line).collect();
    // Clicks within lists are read from the topic of lists.
    let sample = sample.replace("clicks_topic = \"clicks\"", "clicks_topic = \"served\"");
    sample.replace("\"clicks/", "\"served/")
}

#[test]
fn the_sample_equals_the_defaults() {
    assert_eq!(config(Config::default_toml(), &[]), config("", &[]));
    assert_eq!(config("", &[]).warnings(), [""; 0]);
}

#[test]
fn the_sample_contains_exactly_the_known_settings() {
    let sample = full_sample();
    let secret = "sasl.password = \"/run/secrets/kafka-password\"\n";
    assert!(sample.contains(secret) && sample.contains(GATHER));
    config(&sample.replace(secret, "").replace(GATHER, ""), &[]);
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
fn commented_lists_of_the_sample_are_all_possible_values() {
    let secret = "sasl.password = \"/run/secrets/kafka-password\"\n";
    let full = config(&full_sample().replace(secret, "").replace(GATHER, ""), &[]);
    let bare = config("", &[]);
    assert_eq!(full.export.k, Some(bare.measures.ks));
    // These lists contain all possible values. None of them is the default.
    assert_eq!(full.export.live, ["5m", "1h", "24h", "total"]);
    assert_eq!(full.export.live, full.export.settled);
    assert_eq!(full.export.live, full.export.global);
    assert_eq!(full.export.numerators, full.export.metrics);
    assert_eq!(
        Export {
            k: None,
            live: bare.export.live.clone(),
            settled: bare.export.settled.clone(),
            global: bare.export.global.clone(),
            numerators: Vec::new(),
            ..full.export
        },
        bare.export,
    );
}

#[test]
fn windows_have_their_useful_views_unless_views_are_set() {
    let shown = |text: &str| {
        let export = config(&format!("[export]\n{text}"), &[]).export;
        [export.live, export.settled, export.global].map(|names| names.join(" "))
    };
    assert_eq!(shown(""), ["5m total", "1h 24h total", "total"]);
    assert_eq!(shown("windows = [\"24h\", \"1h\"]"), ["1h", "24h", ""]);
    assert_eq!(
        shown("windows = [\"1h\", \"total\"]"),
        ["1h total", "1h total", "total"]
    );
    assert_eq!(shown("windows = [\"total\"]"), ["total", "total", "total"]);
    let all = "5m 1h 24h total";
    assert_eq!(shown("views = [\"live\", \"settled\"]"), [all, all, all]);
    assert_eq!(
        shown("views = [\"settled\"]\nwindows = [\"5m\"]"),
        ["", "5m", "5m"]
    );
}

#[test]
fn the_defaults_match_the_manual() {
    let config = config("", &[]);
    assert_eq!(config.join.attribution_ms, 30 * 60_000);
    assert_eq!(config.join.lateness_ms, 120_000);
    assert_eq!(
        config.measures.ks.iter().map(|k| k.get()).collect::<Vec<_>>(),
        [1, 5, 10]
    );
    assert_eq!(config.export.live, ["5m", "total"]);
    assert_eq!(config.export.settled, ["1h", "24h", "total"]);
    assert_eq!(
        config.export.metrics,
        ["hit_rate", "ctr", "mrr", "ndcg", "precision", "recall", "map"]
    );
    assert!(config.export.numerators.is_empty() && !config.export.secondary);
    assert_eq!(config.limits.max_state_bytes, 4 << 30);
    assert_eq!(config.http.listen.to_string(), "127.0.0.1:9464");
}

#[test]
fn evaluate_and_the_daemon_have_the_same_defaults() {
    let daemon = config("", &[]);
    let evaluate = abgauge_core::evaluate::Options::default();
    assert_eq!(evaluate.measures, daemon.measures);
    assert_eq!(evaluate.attribution_ms, daemon.join.attribution_ms);
    assert_eq!(evaluate.click_skew_ms, daemon.join.click_skew_ms);
    assert_eq!(evaluate.same_list_ms, daemon.join.same_list_ms);
    assert_eq!(evaluate.slot_ms, daemon.join.slot_ms);
    assert_eq!(evaluate.max_items, daemon.join.max_items);
    assert_eq!(evaluate.max_experiments, daemon.join.max_experiments);
    assert_eq!(evaluate.max_lists_per_click, daemon.join.max_lists_per_click);
    assert_eq!(evaluate.max_off_list, daemon.join.max_off_list);
    assert_eq!(evaluate.hash_seed, daemon.join.hash_seed);
}

#[test]
fn the_span_of_copies_defaults_to_that_of_clicks() {
    let join = |text: &str| config(text, &[]).join;
    assert_eq!(join("").same_list_ms, 30 * 60_000);
    assert_eq!(join("[join]\nattribution = \"1h\"").same_list_ms, 3_600_000);
    let own = join("[join]\nattribution = \"1h\"\nsame_list = \"0s\"");
    assert_eq!((own.same_list_ms, own.settle_after_ms()), (0, 62 * 60_000));
    let longer = join("[join]\nsame_list = \"2h\"");
    assert_eq!(longer.settle_after_ms(), 122 * 60_000);
    let fingerprint = |text: &str| config(text, &[]).fingerprint();
    assert!(fingerprint("").contains("same_list_ms 1800000"));
    assert_ne!(fingerprint(""), fingerprint("[join]\nsame_list = \"0s\""));
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
fn a_variable_overrides_the_file() {
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
fn a_variable_missing_an_underscore_is_refused_with_a_suggestion() {
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
fn unknown_variables_cause_a_warning_unless_kubernetes_sets_them() {
    let strange = config("", &[("ABGAUGE_VERSION", "0.1.0")]);
    let [warning] = strange.warnings().try_into().expect("one");
    assert!(
        warning.starts_with("ABGAUGE_VERSION is not a setting and has no effect"),
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
fn a_variable_holds_a_list_with_commas_or_as_toml() {
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
        assert_eq!(
            (config.export.live.join(" "), config.export.settled.join(" ")),
            ("10m total".to_owned(), "1h total".to_owned()),
            "{value}"
        );
    }
    let one = config(
        "",
        &[
            ("ABGAUGE_EXPORT__VIEWS", "settled"),
            ("ABGAUGE_EXPORT__NUMERATORS", ""),
        ],
    );
    assert_eq!(one.export.settled, ["5m", "1h", "24h", "total"]);
    assert!(one.export.live.is_empty() && one.export.numerators.is_empty());
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
            // Set all settings of a table at once, because some need each other.
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
            // A key needs a certificate, a secret needs a webhook, the global view needs state, and clicks within lists need a
            // single topic.
            let needed = [
                ("ABGAUGE_KAFKA__CLICKS_TOPIC", "served"),
                ("ABGAUGE_STATE__TOPIC", "kept"),
                ("ABGAUGE_HTTP__TLS_CERTIFICATE", "tls.crt"),
                ("ABGAUGE_WEBHOOK__URL", "https://a"),
                ("ABGAUGE_REGISTRY__URL", "https://a"),
                ("ABGAUGE_REGISTRY__USERNAME", "a"),
                ("ABGAUGE_REGISTRY__PASSWORD_FILE", "a"),
                ("ABGAUGE_REGISTRY__CERTIFICATE_FILE", "a"),
            ];
            let (gather, others): (Vec<_>, Vec<_>) = variables
                .into_iter()
                .partition(|(name, _)| name.ends_with("__GATHER"));
            config("", &[&needed[..], &others].concat());
            config("", &[&needed[..], &gather].concat());
        }
    }
}

/// Formats a value the way an operator would write it into a variable.
fn plain(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[test]
fn hit_ratio_is_an_alias_of_hit_rate() {
    let text = "[export]\nmetrics = [\"mrr\", \"hit_ratio\"]\nnumerators = [\"hit_ratio\"]";
    let export = config(text, &[]).export;
    assert_eq!(export.metrics, ["mrr", "hit_rate"]);
    assert_eq!(export.numerators, ["hit_rate"]);
}

#[test]
fn a_custom_profile_is_its_base_with_other_choices() {
    let mine = "[metrics]\nprofile = [\"mine\", \"ranx\"]\n[profile.mine]\nbase = \"ranx\"\nap_denominator = \"k\"\n\
                metrics = [\"map\", \"mar\"]";
    let profiles = config(mine, &[]).measures.profiles;
    let ranx = Profile::named("ranx").expect("it is there");
    let expected = Profile {
        name: "mine".to_owned(),
        source: "your own, based on ranx".to_owned(),
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
fn exported_metrics_are_measured() {
    let config = config(
        "[metrics]\ncatalog = \"items.jsonl\"\n[export]\nmetrics = [\"coverage\", \"mar\"]",
        &[],
    );
    assert_eq!(config.export.metrics, ["coverage", "mar"]);
    assert!(config.measures.metrics.contains(&"coverage") && config.measures.metrics.contains(&"hit_rate"));
}

#[test]
fn an_experiment_start_accepts_both_notations() {
    let text = "[experiments.a]\nstart = \"2026-01-31T10:00:00+01:00\"\n[experiments.\"b.c\"]\nstart = 2026-01-31T09:00:00Z";
    let starts = config(text, &[]).experiment_starts();
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
        config.experiment_controls(),
        BTreeMap::from([pair("a", "old"), pair("b", "x y")])
    );
    assert_eq!(config.experiment_starts().len(), 1);
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
fn secrets_are_never_shown() {
    let good = config(
        "[kafka.properties]\nsasl.password = \"hunter2\"",
        &[("ABGAUGE_KAFKA__PROPERTIES__SSL_KEY_PEM", "hunter2")],
    );
    assert_eq!(good.kafka.properties.0.len(), 2);
    let shown = format!("{good:?} {good:#?} {:?}", good.warnings());
    assert!(!shown.contains("hunter2"), "{shown}");
    let files = [
        // Next to an error, in an error, in the wrong place, of the wrong type, in a comment, over many lines, in broken files.
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
        // Secrets instead of their hashes.
        "[http]\nbearer_tokens = [\"hunter2\"]",
        "[http]\nbearer_tokens = \"hunter2\"",
        "[http]\nbearer_tokens = [[\"hunter2\"]]",
        "[http]\nbasic_passwords = [\"scraper:hunter2\"]",
        "[http]\nbasic_password = [\"scraper:hunter2\"]",
        "[http]\nbasic_passwords = [\n\"scraper:hunter2\"\n",
        "sasl.password = hunter2",
        // Near misses of the seed.
        "[join]\nhash_seed = \"hunter2\"",
        "[join]\nslot = 5\nhash_seed = 1 # hunter2",
        "[join]\n# hash_seed = hunter2\nslot = 5",
        "[join]\nhash_seed = hunter2",
        "[join]\nuser_key = \"hunter2\"",
        "[join]\nuser_key = [\"hunter2\"]",
        "[join]\nuser_keys = \"hunter2\"",
        "[join]\n# user_key = \"hunter2\"\nslot = 5",
        // Addresses with a secret, and a secret instead of a file or of a header's name.
        "[webhook]\nurl = \"hooks.example/hunter2\"",
        "[webhook]\nurl = \"https://user:hunter2@hooks.example/\"",
        "[webhook]\nurl = [\"https://hooks.example/hunter2\"]",
        "[webhook]\nurls = \"https://hooks.example/hunter2\"",
        "[webhook]\nurl = https://hooks.example/hunter2",
        "[webhook]\n#url = \"https://hooks.example/hunter2\"\ntimeout = 5",
        "[webhook]\nurl = \"https://hooks.example/hunter2\"\ntimeout = 5",
        "[webhook]\nsecret = \"Bearer hunter2\"",
        "[webhook]\nheader = \"Authorization: Bearer hunter2\"",
        // In the place of a name, in valid and in broken files, and as the value of a setting that does not exist.
        "hunter2 = 1",
        "hunter2",
        "[hunter2]\nbrokers = \"x\"",
        "[hunter2\nbrokers = \"x\"",
        "[kafka]\nhunter2 = \"x\"",
        "[kafka]\nhunter2\n",
        "[kafka]\n\"hunter2\" = 1\n'hunter2' = 1",
        "[kafka]\nhunter2 = 1\nhunter2 = 2",
        "[kafka]\nhunter2.password = 1",
        "[kafka]\nhunter2.brokers = 1\nx =",
        "kafka = { hunter2 = 1 }",
        "[kafka.hunter2]\nx = 1\n[kafka.hunter2.y]\nz = 1",
        "[kafka.x.hunter2]\ny = 1",
        "[kafka]\nborkers = \"hunter2\"",
        "[kafka]\nborkers = \"hunter2\"\nx = ",
        "[join]\nslot = 5\nhunter2 = 1",
        "[events.served]\nhunter2 = \"x\"",
        "[experiments.e]\nhunter2 = 1",
        "[profile.p]\nbase = \"default\"\nhunter2 = \"x\"",
        "[metrics]\nwindows = [\n\"hunter2\",\n",
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
        "JOIN__USER_KEY",
        "JOIN__USERS_KEY",
        "WEBHOOK__URL",
        "WEBHOOK__URLS",
        "WEBHOOK__SECRET",
    ] {
        let errors = refused("", &[(&format!("ABGAUGE_{name}"), "hunter2")]);
        let shown = format!("{errors} {errors:?} {}", render(&errors));
        assert!(!shown.contains("hunter2"), "{name}:\n{shown}");
    }
    for number in [
        "[join]\nhash_seed = -81726354",
        "[join]\nuser_key = 81726354",
        "[http]\nbearer_tokens = [81726354]",
        "[webhook]\nurl = 81726354",
    ] {
        let errors = refused(number, &[]);
        let shown = format!("{errors} {errors:?} {}", render(&errors));
        assert!(!shown.contains("81726354"), "{shown}");
    }
}

#[test]
fn doubtful_settings_are_accepted_with_a_warning() {
    let table = [
        ("[join]\nattribution = \"48h\"", "join.attribution"),
        ("[join]\nclick_skew = \"1h\"", "join.click_skew"),
        ("[join]\nsame_list = \"1h\"", "join.same_list"),
        ("[export]\nforget_after = \"1h\"", "export.forget_after"),
        ("[metrics]\nk = [5, 2000]", "metrics.k"),
        ("[metrics]\ncatalog = \"items.jsonl\"", "metrics.catalog is set"),
        ("[kafka.properties]\nsasl.username = \"u\"", "security.protocol"),
        ("[http]\nlisten = \"0.0.0.0:1\"", "http.bearer_tokens"),
        (
            "[http]\nlisten = \"[::]:1\"\nbearer_tokens_file = \"tokens\"",
            "http.tls_certificate",
        ),
        (
            "[webhook]\nurl = \"http://hooks.example/x\"\nsecret_file = \"s\"\n[experiments.e]\ncontrol = \"a\"\nshares = { a = 0.5, b = 0.5 }\n\
             primary = [\"ctr@10\"]\nunit = \"request\"\nmin_days = 1",
            "webhook.url (http://hooks.example) is without TLS",
        ),
        (
            "[webhook]\nurl = \"https://hooks.example/x\"\n[experiments.e]\nstart = \"2026-01-31T09:00:00Z\"",
            "no experiment can change its verdict",
        ),
    ];
    for (text, fragment) in table {
        let warnings = config(text, &[]).warnings();
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].contains(fragment), "{warnings:?}");
    }
    let used = "[metrics]\ncatalog = \"items.jsonl\"\nmetrics = [\"hit_rate\", \"surprisal\"]";
    assert_eq!(config(used, &[]).warnings(), Vec::<String>::new());
    let here = "[webhook]\nurl = \"http://127.0.0.1/x\"\nsecret_file = \"s\"\n[experiments.e]\ncontrol = \"a\"\nshares = { a = 0.5, b = 0.5 }\n\
             primary = [\"ctr@10\"]\nunit = \"request\"\nmin_days = 1";
    assert_eq!(config(here, &[]).warnings(), Vec::<String>::new());
    let closed = "[http]\nlisten = \"[::]:1\"\nbearer_tokens_file = \"t\"\ntls_certificate = \"c\"";
    assert_eq!(config(closed, &[]).warnings(), Vec::<String>::new());
}

#[test]
fn access_is_configured_by_hashes_from_every_source() {
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
fn state_is_stored_if_a_topic_is_set() {
    assert_eq!(config("[state]\ninterval = \"20s\"", &[]).state, None);
    let state = config("[state]\ntopic = \"kept\"", &[]).state;
    assert_eq!(
        state,
        Some(super::StateTopic {
            topic: "kept".to_owned(),
            interval: Duration::from_secs(10),
            max_bytes_per_second: 1 << 20,
        })
    );
}

#[test]
fn the_global_view_is_on_if_state_is_stored() {
    assert!(!config("", &[]).global);
    assert!(!config("[global]\nenabled = false", &[]).global);
    assert!(config("[state]\ntopic = \"kept\"", &[]).global);
    assert!(!config("[state]\ntopic = \"kept\"\n[global]\nenabled = false", &[]).global);
}

/// Otherwise each instance would look only at its own users, and none at all of them.
#[test]
fn experiments_are_refused_with_stored_state_but_no_global_view() {
    let text = "[state]\ntopic = \"kept\"\n[global]\nenabled = false\n[experiments.e]\ncontrol = \"a\"\nshares = { a = 1, b = 1 }";
    let reported = render(&refused(text, &[]));
    assert!(
        reported.contains("global.enabled") && reported.contains("over all partitions"),
        "{reported}"
    );
}

#[test]
fn a_webhook_has_an_address_a_secret_and_an_authority() {
    assert_eq!(config("", &[]).webhook, None);
    let text = "[webhook]\nurl = \"https://hooks.example/a\"\nheader = \"X-Token\"\nsecret_file = \"s\"\nca_file = \"ca\"\n\
                timeout = \"3s\"";
    let webhook = config(text, &[("ABGAUGE_WEBHOOK__URL", "https://hooks.example:8443/b")]).webhook;
    let webhook = webhook.expect("it is set");
    assert_eq!(webhook.url.uri().to_string(), "https://hooks.example:8443/b");
    assert_eq!(webhook.header, "x-token");
    assert_eq!(
        (webhook.secret_file, webhook.ca_file),
        (Some("s".into()), Some("ca".into()))
    );
    assert_eq!(webhook.timeout, Duration::from_secs(3));
    let bare = config("[webhook]\nurl = \"http://a\"", &[])
        .webhook
        .expect("it is set");
    assert_eq!(
        (bare.header.as_str(), bare.timeout),
        ("authorization", Duration::from_secs(10))
    );
}

#[test]
fn every_setting_has_one_row() {
    fn add(section: &str, known: serde_json::Map<String, Value>, keys: &mut Vec<String>) {
        for (name, value) in known {
            let key = format!("{section}{name}");
            match value {
                Value::Object(inner) if !inner.is_empty() => add(&format!("{key}."), inner, keys),
                _ => keys.push(key),
            }
        }
    }
    let mut known = Vec::new();
    add("", known_settings(), &mut known);
    add("experiments.", names::settings_of_an_experiment(), &mut known);
    // Tables of tables, with names that the operator chose.
    known.retain(|key| !["profile", "experiments"].contains(&&**key));
    known.sort();
    let mut rows: Vec<&str> = raw::settings().map(|row| row.key).collect();
    rows.sort();
    assert_eq!(rows, known);
}

/// Changes every setting. State that was counted by other rules must not be resumed, and no other change may lose it.
#[test]
fn the_fingerprint_depends_on_exactly_the_settings_that_decide_what_is_counted() {
    let values = "'20s' | '1s' | '1h' | '2MiB' | 7 | 0.25 | true | false | [1] | [7] | ['20m'] | ['1h'] | ['live'] | ['mrr'] | \
                  'UTC' | 'ranx' | 'x' | '/x' | ['x'] | { all = ['x', 'y'] } | \
                  { x = '1' } | { x = 'Cargo.toml' } | ['served/0/1'] | '127.0.0.1:1' | 'https://x' | ['https://x'] | 'warn' | '0123456789abcdef' | \
                  ['0000000000000000000000000000000000000000000000000000000000000000'] | \
                  ['a:$2y$10$abcdefghijklmnopqrstuuu7NtNcXHnHdcVlnhAqfbVRe3oTRNvjq']";
    for row in raw::settings().filter(|row| !row.key.starts_with("experiments.")) {
        // Settings that this one needs.
        let needed = match row.key {
            "events.click.request_id" => "events.served.request_id = { all = ['a', 'b'] }",
            "events.click.action" => "events.click.actions = ['a']",
            "events.click.actions" => "events.click.action = 'a'",
            "events.served.clicked" | "events.served.clicked_items" => "kafka.clicks_topic = 'served'",
            "events.served.row_items" => "events.served.rows = true",
            "events.served.experiment" => "events.served.arm = 'a'",
            "events.served.pair_separator" => "events.served.arm_separator = ':'",
            "events.served.experiment_name" => "events.served.arm_name = 'a'",
            "events.served.arm_name" => "events.served.experiment_name = 'a'",
            "http.tls_key" => "http.tls_certificate = 'a'",
            "webhook.secret_file" | "webhook.ca_file" | "webhook.header" | "webhook.timeout" => {
                "webhook.url = 'https://a'"
            }
            "events.served.format" => "schemas.served = 'a'",
            "events.click.format" => "schemas.click = 'a'",
            "registry.username" => "registry.url = 'https://a'\nregistry.password_file = 'a'",
            "registry.password_file" => "registry.url = 'https://a'\nregistry.username = 'a'",
            "registry.token_file" | "registry.ca_file" | "registry.certificate_file" | "registry.timeout" => {
                "registry.url = 'https://a'"
            }
            "registry.key_file" => "registry.url = 'https://a'\nregistry.certificate_file = 'a'",
            "global.enabled" | "state.interval" | "state.max_bytes_per_second" => "state.topic = 'a'",
            _ => "",
        };
        let brokers = match row.key {
            "kafka.brokers" => "",
            _ => "kafka.brokers = 'b:1'",
        };
        let load = |line: &str| {
            let text = format!("{brokers}\n{needed}\n{line}\n");
            load_text("abgauge.toml", &text, std::iter::empty()).ok()
        };
        let before = load("").unwrap_or_else(|| config("", &[]));
        let mut values: Vec<String> = values.split(" | ").map(str::to_owned).collect();
        for rule in row.rules {
            match rule {
                Rule::Within(range) => values.extend([range.start(), range.end()].map(i64::to_string)),
                Rule::OneOf(words) => values.extend(words().iter().map(|word| format!("'{word}'"))),
                _ => {}
            }
        }
        let lines = values.iter().map(|value| format!("{} = {value}", row.key));
        let others = lines.filter_map(|line| load(&line));
        let changes: Vec<bool> = others
            .filter(|config| *config != before)
            .map(|config| config.fingerprint() != before.fingerprint())
            .collect();
        let is_counted = row.rules.iter().any(|rule| matches!(rule, Rule::Counted));
        assert!(!changes.is_empty(), "{}: no other value is valid", row.key);
        assert_eq!(changes.contains(&true), is_counted, "{}", row.key);
    }
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

/// `evaluate` uses this part of a daemon's configuration. It needs no brokers and no secrets.
#[test]
fn counting_settings_load_without_the_other_settings() {
    let text = "[kafka]\nbrokers = \"\"\n[kafka.property_files]\nsasl.password = \"/absent\"\n\
                [join]\nattribution = \"1h\"\n[metrics]\nprofile = \"mine\"\nmetrics = [\"map\"]\n\
                [profile.mine]\nbase = \"ranx\"\nap_denominator = \"k\"\n";
    let counting = |text: &str, env: &[(&str, &str)]| {
        let check = |raw, report: &mut error::ErrorReport| validate::counting(&raw, report);
        parse("abgauge.toml", text, owned(env).into_iter(), check)
    };
    let ours = counting(text, &[("ABGAUGE_METRICS__K", "3")]).expect("it is sound");
    assert_eq!(ours.join.attribution_ms, 3_600_000);
    assert_eq!(ours.measures.ks, [NonZeroU32::new(3).expect("not 0")]);
    assert_eq!(ours.chosen_metrics, Some(vec!["map"]));
    assert_eq!(ours.known_profiles.last(), ours.measures.profiles.first());

    // The rest of an experiment may be wrong.
    let dated = "[experiments.a]\nstart = 2025-11-20T00:00:00Z\nplanned_days = 14\nmde = 2\n[experiments.b]\nplanned_days = 14";
    let schedule = Schedule {
        start_ms: 1_763_596_800_000,
        planned_end_ms: Some(1_764_806_400_000),
    };
    let schedules = counting(dated, &[]).expect("it is sound").schedules;
    assert_eq!(schedules, [("a".to_owned(), schedule)].into());

    let silent = counting("", &[]).expect("it is sound");
    assert_eq!(silent.chosen_metrics, None, "the usual ones were not chosen");
    for bad in [
        "[kafka]\nbrokrs = \"\"",
        "[join]\nslot = \"0s\"",
        "[profile.x]\nbase = \"y\"",
        "[experiments.a]\nstart = \"today\"",
        "[experiments.a]\nstart = 2025-11-20T00:00:00Z\nplanned_days = 0",
    ] {
        assert!(counting(bad, &[]).is_err(), "{bad}");
    }
}
