//! Tests of showing the current settings, and of reloading them in a running daemon.

use super::super::load::{self, parse};
use super::super::{CurrentSettings, Loaded};
use super::owned;

fn current(text: &str, env: &[(&str, &str)]) -> CurrentSettings {
    parse("abgauge.toml", text, owned(env).into_iter(), load::shown)
        .unwrap_or_else(|errors| panic!("{}", super::render(&errors)))
}

fn loaded(text: &str) -> Loaded {
    let env = owned(&[("ABGAUGE_KAFKA__BROKERS", "b:1")]);
    parse("abgauge.toml", text, env.into_iter(), load::loaded)
        .unwrap_or_else(|errors| panic!("{}", super::render(&errors)))
}

/// Returns the line of `name` in `[section]`, including its comment.
fn line(shown: &str, section: &str, name: &str) -> String {
    let header = format!("[{section}]");
    let lines = shown.lines().skip_while(|line| *line != header).skip(1);
    let mut lines = lines.take_while(|line| !line.starts_with('['));
    let is_it = |line: &&str| line.trim_start_matches('#').starts_with(&format!("{name} ="));
    let line = lines
        .find(is_it)
        .unwrap_or_else(|| panic!("{section}.{name} is not in {shown}"));
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn every_setting_is_shown_with_its_source() {
    let text = "[kafka]\ngroup_id = \"g\"\n\n[events]\npreset = \"metarank\"\n[metrics]\nk = [\n1,\n5]\n\
                [profile.mine]\nbase = \"ranx\"\n[experiments.\"a.b\"]\nstart = 2026-01-31T09:00:00Z\n";
    let shown = current(text, &[("ABGAUGE_JOIN__ATTRIBUTION", "1h")]).show();
    for (section, name, expected) in [
        ("kafka", "group_id", "group_id = \"g\" # line 2"),
        ("kafka", "served_topic", "served_topic = \"served\" # default"),
        ("kafka", "dead_letter_topic", "#dead_letter_topic = # not set"),
        ("events", "preset", "preset = \"metarank\" # line 5"),
        ("events", "type", "type = \"event\" # default: of the preset"),
        (
            "events.click",
            "actions",
            "actions = [\"click\"] # default: of the preset",
        ),
        (
            "join",
            "attribution",
            "attribution = \"1h\" # ABGAUGE_JOIN__ATTRIBUTION",
        ),
        ("metrics", "k", "k = [1, 5] # line 7"),
        ("export", "k", "k = [1, 5] # default: all of them"),
        ("profile.mine", "base", "base = \"ranx\" # line 10"),
        (
            "experiments.\"a.b\"",
            "start",
            "start = \"2026-01-31T09:00:00Z\" # line 13",
        ),
    ] {
        assert_eq!(line(&shown, section, name), expected);
    }
    assert!(line(&shown, "ingest", "workers").ends_with("# default: one for each core"));
    let all = super::known_settings();
    let names = all.values().filter_map(|section| section.as_object()).flatten();
    for (name, _) in names.filter(|(_, default)| !default.is_object()) {
        assert!(shown.contains(&format!("{name} =")), "{name}: {shown}");
    }
}

#[test]
fn missing_brokers_are_shown_and_other_errors_are_refused() {
    let settings = current("", &[]);
    assert!(settings.lacks_brokers());
    let brokers = line(&settings.show(), "kafka", "brokers");
    assert!(brokers.starts_with("#brokers = # missing: "), "{brokers}");
    assert!(!current("", &[super::BROKERS]).lacks_brokers());
    for bad in ["[join]\nslot = 5", "[kafka]\nbrokers = \"\""] {
        assert!(
            parse("abgauge.toml", bad, std::iter::empty(), load::shown).is_err(),
            "{bad}"
        );
    }
}

/// The output is a valid configuration with the same meaning.
#[test]
fn shown_settings_are_a_valid_configuration() {
    let events = "[events]\npreset = \"ubi\"\n[events.click]\naction = \"\"\nactions = []\n";
    let experiments = "[experiments.\"a.b\"]\ncontrol = \"base\"\nprimary = [\"hit_ratio@5\"]\nguardrails = { \"ctr@10\" = 0.02 }\n\
                       shares = { base = 0.5, \"c d\" = 0.5 }\nplanned_days = 14\n\
                       epochs = [{ start = 2026-02-01T09:00:00Z, shares = { base = 0.4, \"c d\" = 0.6 } }]\n\
                       [experiments.c]\nstart = 2026-02-01T09:00:00Z\n[experiments.d]\n";
    for text in [
        "",
        events,
        experiments,
        "[profile.mine]\nbase = \"ranx\"\nap_denominator = \"k\"\n[metrics]\nprofile = \"mine\"\n",
    ] {
        let first = loaded(text);
        let shown = first.current.show();
        let second = parse(
            "shown.toml",
            &shown,
            std::iter::empty(),
            super::validate::validate,
        );
        let mut second = second.unwrap_or_else(|errors| panic!("{shown}\n{}", super::render(&errors)));
        // Derived defaults are written explicitly now.
        second.ingest.clone_from(&first.config.ingest);
        second.export.k.clone_from(&first.config.export.k);
        assert_eq!(second, first.config, "{shown}");
    }
}

#[test]
fn possible_secrets_are_hidden() {
    let text = r#"
        [join]
        hash_seed = 81726354
        user_key = "hunter2 and his friends"
        [http]
        bearer_tokens = ["0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"]
        bearer_tokens_file = "/run/secrets/tokens"
        [webhook]
        url = "https://hooks.example/hunter2"
        secret_file = "/run/secrets/webhook"
        [kafka.properties]
        "sasl.password" = "hunter2"
        "sasl.username" = "hunter"
        "sasl.oauthbearer.config" = "secret=hunter2"
        "ssl.key.password" = 12345678
        "security.protocol" = "SASL_SSL"
        "fetch.max.bytes" = 1000000
    "#;
    let shown = current(text, &[("ABGAUGE_KAFKA__PROPERTIES__SSL_KEY_PEM", "hunter3")]).show();
    for secret in ["hunter", "12345678", "81726354", "0123456789abcdef"] {
        assert!(!shown.contains(secret), "{secret}: {shown}");
    }
    for (section, name, value) in [
        ("join", "hash_seed", "\"***\""),
        ("join", "user_key", "\"***\""),
        ("http", "bearer_tokens", "[\"***\"]"),
        ("http", "bearer_tokens_file", "\"/run/secrets/tokens\""),
        ("webhook", "url", "\"https://hooks.example/***\""),
        ("webhook", "secret_file", "\"/run/secrets/webhook\""),
        ("webhook", "header", "\"Authorization\""),
        ("kafka.properties", "\"sasl.username\"", "\"***\""),
        ("kafka.properties", "\"security.protocol\"", "\"SASL_SSL\""),
        ("kafka.properties", "\"fetch.max.bytes\"", "\"1000000\""),
    ] {
        let line = line(&shown, section, name);
        assert!(line.starts_with(&format!("{name} = {value} #")), "{line}");
    }
}

#[test]
fn a_reload_applies_some_settings_and_names_the_rest() {
    let hash = "0".repeat(64);
    let guarded = format!("[http]\nbearer_tokens = [\"{hash}\"]\n");
    let compared = "[experiments.\"a.b\"]\ncontrol = \"base\"\n";
    let changed = "[experiments.\"a.b\"]\ncontrol = \"base\"\nmde = 0.1\nalpha = 0.05\n[metrics]\nk = [1]";
    let described = "[experiments.\"a.b\"]\ncontrol = \"base\"\nowner = \"me\"\n";
    let table: [(&str, &str, &[&str], &[&str]); 18] = [
        ("", "", &[], &[]),
        ("[join]\nslot = \"5s\"", "# a remark, and the default", &[], &[]),
        (
            "",
            "[log]\nfilter = \"debug\"\nformat = \"json\"",
            &["log.filter"],
            &["log.format"],
        ),
        ("[metrics]\nk = [1]", "[metrics]\nk = [1, 2]", &[], &["metrics.k"]),
        (
            "[metrics]\ncatalog = \"a\"",
            "[metrics]\ncatalog = \"b\"\nalpha = 0.1",
            &["metrics.catalog"],
            &["metrics.alpha"],
        ),
        // A setting that follows from another one, such as the default primary metric, is not reported.
        (compared, changed, &[], &["experiments.a.b.mde", "metrics.k"]),
        ("", compared, &[], &["experiments.a.b.control"]),
        ("", "[experiments.a]", &[], &["experiments.a"]),
        (
            "[experiments.a]",
            compared,
            &[],
            &["experiments.a.b.control", "experiments.a"],
        ),
        (
            changed,
            "[metrics]\nk = [1]",
            &[],
            &[
                "experiments.a.b.alpha",
                "experiments.a.b.control",
                "experiments.a.b.mde",
            ],
        ),
        (compared, described, &["experiments.a.b.owner"], &[]),
        (
            "[experiments.a]",
            "[experiments.a]\nowner = \"me\"",
            &["experiments.a.owner"],
            &[],
        ),
        (described, compared, &["experiments.a.b.owner"], &[]),
        (
            compared,
            "[experiments.\"a.b\"]\ncontrol = \"base\"\nplanned_users = 40000",
            &["experiments.a.b.planned_users"],
            &[],
        ),
        (
            described,
            "",
            &["experiments.a.b.owner"],
            &["experiments.a.b.control"],
        ),
        // Something was added that did not exist at startup.
        ("", "[metrics]\ncatalog = \"b\"", &[], &["metrics.catalog"]),
        (
            "[http]\ntls_certificate = \"a\"",
            "",
            &[],
            &["http.tls_certificate"],
        ),
        (
            &guarded,
            "[http]\nopen_probes = false",
            &[],
            &["http.bearer_tokens", "http.open_probes"],
        ),
    ];
    for (old, new, taken_over, at_a_restart) in table {
        let (mut running, new) = (loaded(old), loaded(new));
        let changes = running.take_over(&new);
        assert_eq!(changes.taken_over, taken_over, "{old:?}");
        assert_eq!(changes.at_a_restart, at_a_restart, "{old:?}");
        let again = running.take_over(&new);
        assert_eq!(again.taken_over, [""; 0], "{old:?}");
        assert_eq!(again.at_a_restart, at_a_restart, "{old:?}");
    }
}

#[test]
fn a_reload_changes_only_the_settings_it_reports() {
    let hash = |digit: &str| digit.repeat(64);
    let text = |hash: String, more: &str| {
        format!("[http]\ntls_certificate = \"a\"\nbearer_tokens = [\"{hash}\"]\n{more}")
    };
    let mut running = loaded(&text(hash("0"), ""));
    let before = running.config.clone();
    let new = loaded(&text(
        hash("1"),
        "tls_key = \"b\"\nopen_probes = false\nlisten = \"127.0.0.1:1\"",
    ));
    let changes = running.take_over(&new);
    assert_eq!(changes.taken_over, ["http.bearer_tokens", "http.tls_key"]);
    let mut expected = before;
    expected.http.tls.clone_from(&new.config.http.tls);
    expected
        .http
        .access
        .tokens
        .clone_from(&new.config.http.access.tokens);
    assert_eq!(running.config, expected);
}

/// The file of a secret may stay the same while its content changes.
#[test]
fn a_changed_secret_waits_for_a_restart() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let text = format!("[kafka.property_files]\nsasl.password = {:?}", file.path());
    std::fs::write(file.path(), "hunter2").expect("written");
    let mut running = loaded(&text);
    std::fs::write(file.path(), "hunter3").expect("written");
    let changes = running.take_over(&loaded(&text));
    assert_eq!(changes.at_a_restart, ["kafka.property_files.sasl.password"]);
}
