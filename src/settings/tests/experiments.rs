//! Tests of `[experiments.NAME]`: settings, errors and warnings.

use abgauge_core::statistics::{EpochWeights, Goal, Settings, Unit, Validity};

use super::super::load::{self, parse};
use super::super::{EpochStart, Experiment};
use super::{config, owned, render};

/// Returns the experiment `a` with these lines.
fn experiment(lines: &str) -> Experiment {
    let mut experiments = config(&format!("[experiments.a]\n{lines}"), &[]).experiments;
    experiments.remove("a").expect("it is there")
}

fn settings(lines: &str) -> Settings {
    experiment(lines).settings.expect("a control is set")
}

fn shares<const N: usize>(shares: [(&str, f64); N]) -> std::collections::BTreeMap<String, f64> {
    shares.map(|(arm, share)| (arm.to_owned(), share)).into()
}

#[track_caller]
fn check_refused(lines: &str, fragments: &[&str]) {
    super::check_refused(&format!("[experiments.a]\n{lines}"), &[], fragments);
}

#[test]
fn every_comparison_setting_is_read() {
    let found = experiment(
        r#"
        start = 2026-01-31T09:00:00Z
        control = "base"
        shares = { base = 0.5, "a b" = 0.25, c = 0.25 }
        primary = ["hit_ratio@10", "mrr", "clicks_per_user"]
        guardrails = { "ctr@5" = 0.02, lists_per_user = 0.1 }
        mde = 0.1
        alpha = 0.01
        min_days = 14
        planned_days = 28.5
        goal = "non_inferior"
        sticky = true
        lower_is_better = ["hit_rate"]
        list_ratio_margin = 0.03
        epoch_weights = "lists"
        [[experiments.a.epochs]]
        start = "2026-02-07T10:00:00+01:00"
        shares = { base = 0.4, c = 0.6 }
        "#,
    );
    let expected = Settings {
        shares: shares([("base", 0.5), ("a b", 0.25), ("c", 0.25)]),
        primary: ["hit_rate@10", "mrr", "clicks_per_user"]
            .map(str::to_owned)
            .into(),
        guardrails: shares([("ctr@5", 0.02), ("lists_per_user", 0.1)]),
        mde: 0.1,
        alpha: 0.01,
        min_days: 14.0,
        planned_days: Some(28.5),
        goal: Goal::NonInferior,
        unit: Unit::User,
        sticky: true,
        lower_is_better: ["hit_rate".to_owned()].into(),
        list_ratio_margin: 0.03,
        epoch_weights: EpochWeights::Lists,
        ..Settings::new("base")
    };
    assert_eq!(found.start_ms, Some(1_769_850_000_000));
    assert_eq!(found.settings, Some(expected));
    let epoch = EpochStart {
        start_ms: 1_769_850_000_000 + 7 * 86_400_000,
        shares: shares([("base", 0.4), ("c", 0.6)]),
    };
    assert_eq!(found.epochs, [epoch]);
    let by_request = settings("control = \"base\"\nunit = \"request\"\nshares = { base = 0.5, c = 0.5 }");
    assert_eq!(by_request.unit, Unit::Request);
    let strict = settings("control = \"base\"\nvalidity = \"strict\"");
    assert_eq!(strict.validity, Validity::Strict);
}

#[test]
fn a_control_alone_has_the_documented_defaults() {
    let found = experiment("control = \"base\"");
    let expected = Settings {
        primary: vec!["ctr@10".to_owned()],
        ..Settings::new("base")
    };
    assert_eq!(found.settings, Some(expected));
    assert_eq!(experiment("start = 2026-01-31T09:00:00Z").settings, None);
    assert_eq!(
        experiment(""),
        Experiment::default(),
        "an empty table asks for intervals alone"
    );
}

#[test]
fn the_default_primary_is_ctr_at_the_largest_k_or_the_first_metric() {
    let primary = |of_metrics: &str| {
        let text = format!("[metrics]\n{of_metrics}\n[experiments.a]\ncontrol = \"base\"");
        let settings = config(&text, &[]).experiments["a"].settings.clone();
        settings.expect("a control is set").primary
    };
    assert_eq!(primary("k = [2, 7]"), ["ctr@7"]);
    assert_eq!(primary("k = []"), ["ctr"]);
    assert_eq!(primary("metrics = [\"mrr\", \"map\"]"), ["mrr@10"]);
    assert_eq!(
        primary("profile = [\"seed-0\", \"default\"]"),
        ["hit_rate@10"],
        "the first profile has no CTR"
    );
    let only_counted = "metrics = [\"coverage\"]\ncatalog = \"items.jsonl\"";
    assert_eq!(primary(only_counted), [""; 0]);
}

#[test]
fn settings_that_need_a_control_are_refused_without_one() {
    for setting in [
        "shares = { base = 0.5, b = 0.5 }",
        "primary = [\"ctr@10\"]",
        "guardrails = { mrr = 0.02 }",
        "mde = 0.1",
        "alpha = 0.1",
        "min_days = 7",
        "planned_days = 14",
        "validity = \"strict\"",
        "goal = \"superior\"",
        "unit = \"user\"",
        "sticky = false",
        "lower_is_better = []",
        "list_ratio_margin = 0.02",
        "epoch_weights = \"lists\"",
        "epochs = []",
    ] {
        let name = setting.split_once(' ').expect("a setting").0;
        let key = format!("experiments.a.{name}: is for comparisons with a control");
        check_refused(
            setting,
            &[&key, ":2:", "write control = \"ARM\" below [experiments.a]"],
        );
    }
    // Report a single error, at the first of the settings.
    check_refused(
        "start = 2026-01-31T09:00:00Z\nmde = 0.1\nalpha = 0.1",
        &["experiments.a.mde", ":3:7"],
    );
}

#[test]
fn an_out_of_range_value_is_refused_with_its_range() {
    let table: &[(&str, &[&str])] = &[
        (
            "mde = 0",
            &[
                "a.mde",
                ":3:7",
                "0 is out of range",
                "above 0 and below 1",
                "0.05 for 5%",
            ],
        ),
        ("mde = 5", &["5 is out of range"]),
        ("mde = nan", &["NaN is out of range"]),
        (
            "mde = \"5%\"",
            &["a.mde", "\"5%\" is not a number", "a number such as 0.5"],
        ),
        (
            "alpha = 0.5",
            &["a.alpha", "0.5 is out of range", "above 0 and below 0.5"],
        ),
        (
            "min_days = 0",
            &[
                "a.min_days",
                "0 is out of range",
                "a number of days above 0 and at most 3653",
            ],
        ),
        ("planned_days = 4000", &["a.planned_days", "4000 is out of range"]),
        (
            "list_ratio_margin = 1",
            &["a.list_ratio_margin", "1 is out of range"],
        ),
        (
            "validity = \"one_look\"",
            &["a.validity", "\"sequence\" or \"strict\""],
        ),
        (
            "goal = \"non-inferior\"",
            &["a.goal", ":3:8", "did you mean \"non_inferior\"?"],
        ),
        ("unit = \"users\"", &["a.unit", "did you mean \"user\"?"]),
        (
            "epoch_weights = \"list\"",
            &["a.epoch_weights", "did you mean \"lists\"?"],
        ),
        ("sticky = \"yes\"", &["a.sticky", "true or false"]),
        ("primary = \"ctr@10\"", &["a.primary", ":3:11", "is not a list"]),
        (
            "guardrails = [\"mrr\"]",
            &[
                "a.guardrails",
                "a list is not a table",
                "margins by metric: { \"ctr@10\" = 0.02 }",
            ],
        ),
        (
            "shares = 0.5",
            &[
                "a.shares",
                "0.5 is not a table",
                "shares by arm: { control = 0.5, ARM = 0.5 }",
            ],
        ),
        (
            "mde = 0.1\nplaned_days = 14",
            &["a.planed_days", ":4:1", "did you mean `planned_days`?"],
        ),
        ("key = \"user\"", &["a.key", "did you mean `key` under [kafka]?"]),
    ];
    for (line, fragments) in table {
        check_refused(&format!("control = \"base\"\n{line}"), fragments);
    }
    // Each error is found, whatever else is wrong.
    let errors = super::refused(
        "[experiments.a]\ncontrol = \"base\"\nmde = 0\nalpha = 1\nsticky = 5\ngoal = \"x\"",
        &[],
    );
    assert_eq!(errors.errors().len(), 4, "{}", render(&errors));
}

#[test]
fn an_unusable_comparison_metric_is_refused_with_a_suggestion() {
    let table: &[(&str, &[&str])] = &[
        (
            "primary = []",
            &["a.primary", ":3:11", "nothing could be decided"],
        ),
        (
            "primary = [\"mrr\", \"hit_rat@10\"]",
            &[
                "a.primary",
                ":3:19",
                "\"hit_rat@10\" is not a metric",
                "did you mean \"hit_rate@10\"?",
            ],
        ),
        (
            "primary = [\"revenue\"]",
            &["\"revenue\" is not a metric", "such as \"hit_rate@10\""],
        ),
        (
            "primary = [\"click_per_user\"]",
            &["did you mean \"clicks_per_user\"?"],
        ),
        (
            "primary = [\"ctr@7\"]",
            &[
                "\"ctr@7\" has a cut-off that is not computed",
                "write \"ctr@5\", or add 7 to `k` under [metrics]",
            ],
        ),
        (
            "primary = [\"hit_ratio@20\"]",
            &[
                "\"hit_ratio@20\" has a cut-off",
                "write \"hit_rate@10\", or add 20",
            ],
        ),
        (
            "primary = [\"mar@10\"]",
            &[
                "\"mar@10\" is not measured by the first profile, default",
                "add \"mar\" to `metrics` under [metrics], or write \"ctr@10\"",
            ],
        ),
        (
            "primary = [\"coverage\"]",
            &[
                "\"coverage\" counts distinct items",
                "write another metric, such as \"ctr@10\"",
            ],
        ),
        (
            "primary = [\"surprisal@5\"]",
            &["not measured", "catalog = \"FILE\" under [metrics]"],
        ),
        (
            "primary = [\"mrr@5\", \"mrr@5\"]",
            &[":3:21", "\"mrr@5\" is there twice"],
        ),
        (
            "guardrails = { \"ctr@7\" = 0.1 }",
            &["a.guardrails", ":3:16", "write \"ctr@5\""],
        ),
        (
            "guardrails = { mrr = 2 }",
            &[
                "a.guardrails",
                ":3:22",
                "2 is out of range",
                "above 0 and below 1",
            ],
        ),
        (
            "guardrails = { \"hit_rate@5\" = 0.1, \"hit_ratio@5\" = 0.1 }",
            &["\"hit_ratio@5\" is there twice"],
        ),
        (
            "lower_is_better = [\"mrr@4\"]",
            &["a.lower_is_better", ":3:20", "write \"mrr@5\""],
        ),
    ];
    for (line, fragments) in table {
        check_refused(&format!("control = \"base\"\n{line}"), fragments);
    }
    let of_another = "[metrics]\nprofile = [\"seed-0\", \"default\"]\n[experiments.a]\ncontrol = \"base\"\nprimary = [\"ctr@10\"]";
    super::check_refused(
        of_another,
        &[],
        &["the first profile, seed-0", "put a profile first that has it"],
    );
    let whole = "[metrics]\nprofile = \"uncut\"\n\
                 [experiments.a]\ncontrol = \"base\"\nprimary = [\"mrr@10\"]";
    super::check_refused(whole, &[], &["over the whole list only", "write \"mrr\""]);
    // The measured metrics are unknown here, so nothing can be compared with them.
    let unsound = "[metrics]\nk = [7, 5]\n[experiments.a]\ncontrol = \"base\"\nprimary = [\"ctr@6\"]";
    super::check_refused(unsound, &[], &["metrics.k"]);
}

#[test]
fn invalid_shares_are_refused_with_a_suggestion() {
    let table: &[(&str, &[&str])] = &[
        (
            "{ base = 0.5, b = 0.4 }",
            &[
                "a.shares",
                ":3:10",
                "adds up to 0.9, not to 1",
                "{ b = 0.4444444, base = 0.5555556 }",
            ],
        ),
        (
            "{ base = 0.33, b = 0.33, \"c d\" = 0.33 }",
            &["0.99", "{ b = 0.3333333, base = 0.3333333, \"c d\" = 0.3333333 }"],
        ),
        (
            "{ base = 1.5, b = 0.5 }",
            &[":3:19", "1.5 is out of range", "above 0 and below 1"],
        ),
        ("{ base = 0.5, b = 0.5, c = 0 }", &["0 is out of range"]),
        (
            "{ base = 0.99 }",
            &["fewer than two arms", "{ base = 0.5, ARM = 0.5 }"],
        ),
        ("{}", &["fewer than two arms"]),
        (
            "{ bsae = 0.5, b = 0.5 }",
            &["no share of the control, `base`", "is `bsae` the control?"],
        ),
        (
            "{ x = 0.5, y = 0.5 }",
            &["no share of the control, `base`", "add it"],
        ),
        (
            "{ base = 0.5, __other__ = 0.5 }",
            &[":3:24", "no arm can have this name"],
        ),
        (
            "{ base = 0.5, b = \"half\" }",
            &[":3:28", "\"half\" is not a number"],
        ),
    ];
    for (shares, fragments) in table {
        check_refused(&format!("control = \"base\"\nshares = {shares}"), fragments);
    }
    // Rounding errors are allowed.
    let thirds = settings("control = \"base\"\nshares = { base = 0.3333333, b = 0.3333333, c = 0.3333333 }");
    assert_eq!(thirds.shares.len(), 3);
}

#[test]
fn epochs_in_an_impossible_order_are_refused() {
    let epoch =
        |start: &str, shares: &str| format!("{{ start = \"{start}T09:00:00Z\", shares = {{ {shares} }} }}");
    let equal = "base = 0.5, b = 0.5";
    let [first, second] = ["2026-02-01", "2026-02-08"].map(|day| epoch(day, equal));
    let table: &[(String, &[&str])] = &[
        (
            format!("{second}, {first}"),
            &[
                "a.epochs",
                "does not start after the epoch before it",
                "in the order of time",
            ],
        ),
        (
            format!("{first}, {first}"),
            &["does not start after the epoch before it"],
        ),
        (
            epoch("2026-01-31", equal),
            &["a.epochs", "does not start after the experiment (`start`)"],
        ),
        (
            epoch("2026-02-01", "base = 0.5, b = 0.4"),
            &["a.epochs", "adds up to 0.9"],
        ),
        (
            epoch("2026-02-01", "base = 0.5, neurla = 0.5"),
            &[
                "`neurla` is not among the arms of `shares`",
                "did you mean `neural`?",
            ],
        ),
        (
            epoch("2026-02-01", "base = 0.5, other = 0.5"),
            &[
                "`other` is not among",
                "an additional arm restarts the experiment",
            ],
        ),
        (
            epoch("2026-02-01", "neural = 0.5, b = 0.5"),
            &["no share of the control, `base`"],
        ),
        (epoch("2026-02-01 ", equal), &["is not a time"]),
        (
            "{ start = \"2026-02-01T09:00:00Z\" }".to_owned(),
            &["an epoch has no `shares`", "shares = { control = 0.5"],
        ),
        (
            format!("{{ shares = {{ {equal} }} }}"),
            &["an epoch has no `start`"],
        ),
        ("5".to_owned(), &["5 is not a table", "write { start = "]),
        (
            "{ strat = 5 }".to_owned(),
            &["unknown field `strat`", "`start` or `shares`"],
        ),
        (
            "{ begin = 5 }".to_owned(),
            &["unknown field `…`", "`start` or `shares`"],
        ),
    ];
    for (epochs, fragments) in table {
        let lines = "start = \"2026-01-31T09:00:00Z\"\ncontrol = \"base\"\nshares = { base = 0.3, b = 0.3, neural = 0.4 }";
        check_refused(&format!("{lines}\nepochs = [{epochs}]"), fragments);
    }
    let without_first = format!("control = \"base\"\nepochs = [{first}]");
    check_refused(
        &without_first,
        &[
            "a.epochs",
            "first shares are not set",
            "write the first ones as `shares`",
        ],
    );
}

#[test]
fn contradictory_settings_are_refused() {
    let equal = "shares = { base = 0.5, b = 0.5 }";
    let table: &[(&str, &[&str])] = &[
        (
            "primary = [\"mrr\"]\nguardrails = { mrr = 0.1 }",
            &["a.guardrails", "\"mrr\" is also a primary metric"],
        ),
        (
            "guardrails = { \"ctr@10\" = 0.1 }",
            &["a.guardrails", "\"ctr@10\" is the default primary metric"],
        ),
        (
            "planned_days = 5",
            &[
                "a.planned_days",
                ":3:16",
                "5 is fewer than min_days (7)",
                "planned_days = 7 or more, or min_days = 5",
            ],
        ),
        (
            "primary = [\"clicks_per_user\"]",
            &[
                "a.primary",
                ":3:12",
                "is per assigned user, and without `shares`",
                "write the shares of users",
            ],
        ),
        (
            "guardrails = { lists_per_user = 0.1 }",
            &["a.guardrails", ":3:16", "per assigned user"],
        ),
        (
            "unit = \"request\"\nsticky = true",
            &["a.sticky", ":4:10", "users have no arm"],
        ),
    ];
    for (lines, fragments) in table {
        check_refused(&format!("control = \"base\"\n{lines}"), fragments);
    }
    let by_request =
        format!("control = \"base\"\nunit = \"request\"\n{equal}\nprimary = [\"hits_per_user\"]");
    check_refused(
        &by_request,
        &[
            "a.primary",
            "no user is assigned to an arm",
            "write unit = \"user\"",
        ],
    );
    let lowers =
        format!("control = \"base\"\nunit = \"request\"\n{equal}\nlower_is_better = [\"hits_per_user\"]");
    assert!(
        !settings(&lowers).lower_is_better.is_empty(),
        "it is shown without deciding"
    );
}

#[test]
fn a_planned_look_is_refused_with_strict_tests() {
    let equal = "control = \"base\"\nshares = { base = 0.5, b = 0.5 }\nplanned_days = 14";
    check_refused(
        &format!("{equal}\nvalidity = \"strict\""),
        &[
            "a.planned_days: plans one analysis, but validity is \"strict\"",
            ":4:16",
            "leave `validity` out",
        ],
    );
    let planned = settings(&format!("{equal}\nvalidity = \"sequence\""));
    assert_eq!(planned.planned_days, Some(14.0));
}

#[test]
fn a_planned_look_is_refused_if_shares_differ_more_than_fourfold() {
    let planned = |shares: &str| format!("control = \"base\"\nplanned_days = 14\nshares = {{ {shares} }}");
    let reported = [
        "a.planned_days",
        ":3:16",
        "`b` (0.19) and the control (0.81)",
        "more than fourfold",
        "leave it out",
    ];
    check_refused(&planned("base = 0.81, b = 0.19"), &reported);
    check_refused(
        &planned("base = 0.1, b = 0.9"),
        &["`b` (0.9) and the control (0.1)"],
    );
    for fine in [
        "base = 0.8, b = 0.2",
        "base = 0.2, b = 0.8",
        "base = 0.3, b = 0.6, c = 0.1",
    ] {
        assert_eq!(settings(&planned(fine)).planned_days, Some(14.0), "{fine}");
    }
    let later = "epochs = [{ start = 2026-02-01T00:00:00Z, shares = { base = 0.9, b = 0.1 } }]";
    check_refused(
        &format!("{}\n{later}", planned("base = 0.5, b = 0.5")),
        &["a.planned_days", "`b` (0.1)"],
    );
}

#[test]
fn settings_that_prevent_a_decision_cause_a_warning() {
    let warnings = |key: &str, lines: &str| {
        config(
            &format!("[kafka]\nkey = \"{key}\"\nstart = \"earliest\"\n[experiments.a]\n{lines}"),
            &[],
        )
        .warnings()
    };
    let sound = "control = \"base\"\nprimary = [\"mrr\"]\nshares = { base = 0.5, b = 0.5 }";
    assert_eq!(warnings("user", sound), [""; 0]);
    assert_eq!(warnings("request", "start = 2026-01-31T09:00:00Z"), [""; 0]);
    assert_eq!(
        warnings("request", &format!("{sound}\nunit = \"request\"")),
        [""; 0]
    );
    let ramp = |days: &[(&str, f64)]| {
        let epoch = |(day, share): &(&str, f64)| {
            format!(
                "{{ start = 2026-02-{day}T00:00:00Z, shares = {{ base = {}, b = {share} }} }}",
                1.0 - share
            )
        };
        let epochs: Vec<String> = days.iter().map(epoch).collect();
        format!("{sound}\nepochs = [{}]", epochs.join(", "))
    };
    assert_eq!(warnings("user", &ramp(&[("01", 0.2)])), [""; 0]);
    let sticky = |epochs: String| format!("{epochs}\nsticky = true");
    assert_eq!(
        warnings("user", &sticky(ramp(&[("01", 0.5)]))),
        [""; 0],
        "the shares stay"
    );
    let control = "control = \"base\"";
    let canary = "control = \"base\"\nprimary = [\"mrr\"]\nshares = { base = 0.65, \"5 %\" = 0.05, c = 0.3 }";
    for (key, lines, expected) in [
        (
            "user",
            control,
            "experiments.a has a control but no shares: nothing is decided, and there is no sample ratio, no list ratio and no lift per user",
        ),
        (
            "user",
            "control = \"base\"\nshares = { base = 0.5, b = 0.5 }",
            "experiments.a has no primary metric: only ctr@10 decides",
        ),
        ("request", sound, "kafka.key is \"request\""),
        (
            "user",
            canary,
            "experiments.a.shares: 5 % (0.05) is small compared with the control (0.65)",
        ),
        (
            "user",
            &sticky(ramp(&[("01", 0.5), ("02", 0.2), ("03", 0.5)])),
            "experiments.a is sticky and its shares change: 2 of its 3 later epochs",
        ),
    ] {
        let [warning] = <[String; 1]>::try_from(warnings(key, lines)).expect(expected);
        assert!(warning.starts_with(expected), "{warning}");
    }
    let [canary] = <[String; 1]>::try_from(warnings("user", canary)).expect("one");
    let remedy = "control = \"5 %-control\", shares = { \"5 %-control\" = 0.5, \"5 %\" = 0.5 }";
    assert!(canary.contains(remedy), "{canary}");
    let uncounted = "[kafka]\nkey = \"user\"\nstart = \"earliest\"\n[metrics]\nmetrics = [\"coverage\"]\ncatalog = \"i\"\n[experiments.a]\n\
                     control = \"base\"\nshares = { base = 0.5, b = 0.5 }";
    let warnings = config(uncounted, &[]).warnings();
    assert!(
        warnings[0].contains("no measured metric is a sum over users"),
        "{warnings:?}"
    );
}

#[test]
fn windows_that_match_no_look_cause_a_warning() {
    let with = |windows: &str, asked: &str| {
        let config = config(&format!("[metrics]\nwindows = {windows}\n{asked}"), &[]);
        let warnings = config.warnings().into_iter();
        let of_looks = warnings.filter(|warning| warning.contains("between two analyses"));
        (config.look_window().map(|window| window.name), of_looks.collect())
    };
    let asked = "[experiments.a]\nstart = 2026-01-31T09:00:00Z";
    let none = Vec::<String>::new;
    assert_eq!(with("[\"5m\", \"1h\"]", asked), (Some("1h".to_owned()), none()));
    assert_eq!(with("[\"5m\"]", ""), (None, none()));
    let (window, remarks) = with("[\"5m\", \"75m\"]", asked);
    let expected = "none of metrics.windows is a multiple of the time between two analyses (10m): experiments have no intervals in any window, only since their start, and alerts ignore them. Add one, such as \"10h\"";
    assert_eq!((window, remarks), (None, vec![expected.to_owned()]));
}

#[test]
fn a_list_cap_causes_a_doubt_unless_topics_are_keyed_by_user() {
    let doubts = |key: &str| {
        let text = format!(
            "[kafka]\nkey = \"{key}\"\n[experiments.a]\ncontrol = \"base\"\nmax_lists_per_user = 200"
        );
        config(&text, &[]).doubts()
    };
    assert_eq!(doubts("user"), [""; 0]);
    let [doubt] = <[String; 1]>::try_from(doubts("request")).expect("one");
    assert!(
        doubt.starts_with("experiments.a.max_lists_per_user is 200, but kafka.key is \"request\": "),
        "{doubt}"
    );
}

#[test]
fn days_lost_by_a_restart_cause_a_warning() {
    let warnings = |of_kafka: &str, lines: &str| {
        let settings = "control = \"base\"\nprimary = [\"mrr\"]\nshares = { base = 0.5, b = 0.5 }";
        let text = format!("[kafka]\nkey = \"user\"\n{of_kafka}\n[experiments.a]\n{settings}\n{lines}");
        config(&text, &[]).warnings()
    };
    let begin = "experiments.a needs 7 days (min_days), but a restart keeps only about the longest window (24h) with kafka.start = \"rebuild\". Set state.topic, or kafka.start = \"earliest\", ";
    let without = "and experiments.a.start to the start of the experiment, with topics whose retention reaches back that far";
    let with = "with topics whose retention reaches back to its start";
    for (lines, end) in [("", without), ("start = 2026-01-31T09:00:00Z", with)] {
        assert_eq!(warnings("", lines), [format!("{begin}{end}")]);
        assert_eq!(warnings("start = \"earliest\"", lines), [""; 0]);
        assert_eq!(
            warnings("", &format!("{lines}\n[state]\ntopic = \"kept\"")),
            [""; 0]
        );
        // A restart reads that many days again.
        let a_day = format!("{lines}\nmin_days = 1");
        assert_eq!(warnings("", &a_day), [""; 0]);
        assert_eq!(
            warnings("", &format!("{lines}\n[metrics]\nwindows = [\"7d\"]")),
            [""; 0]
        );
        // It does not read up to the planned end, though.
        let [warning] = <[String; 1]>::try_from(warnings("", &format!("{a_day}\nplanned_days = 14")))
            .expect("one warning");
        assert!(
            warning.starts_with("experiments.a needs 14 days (planned_days), "),
            "{warning}"
        );
    }
    let text = "[experiments.a]\ncontrol = \"base\"\nunit = \"request\"";
    let reported = config(text, &[]).warnings();
    assert!(
        matches!(&reported[..], [only] if only.contains("no shares")),
        "{reported:?}"
    );
}

/// Remarks on an experiment are shown next to it. At the top of the page they would stay for as long as it runs.
#[test]
fn missing_experiment_settings_are_warnings_of_check_only() {
    let config = config("[experiments.a]\ncontrol = \"base\"", &[]);
    assert_eq!(
        config.warnings().len(),
        2,
        "no shares, and users that are not counted"
    );
    assert_eq!((config.doubts(), config.remarks()), (vec![], vec![]));
}

#[test]
fn an_epoch_between_two_looks_is_noted() {
    let text = "[experiments.a]\nstart = 2026-01-31T09:00:00Z\ncontrol = \"base\"\nshares = { base = 0.5, b = 0.5 }\n\
                epochs = [{ start = 2026-02-01T09:00:05Z, shares = { base = 0.5, b = 0.5 } }, \
                { start = 2026-02-02T09:10:00Z, shares = { base = 0.5, b = 0.5 } }]";
    let [note] = <[String; 1]>::try_from(config(text, &[]).notes()).expect("one");
    let expected = "experiments.a.epochs (2026-02-01T09:00:05Z) lies between two analyses, which are 10m apart: its epoch starts with the next analysis, at 2026-02-01T09:10:00Z";
    assert_eq!(note, expected);
}

#[test]
fn the_number_of_epochs_is_bounded() {
    let epochs = |n: usize| {
        let epoch = |day: usize| {
            let start = jiff::Timestamp::from_second(1_770_000_000 + 86_400 * day as i64).expect("a time");
            format!("{{ start = {start}, shares = {{ base = 0.5, b = 0.5 }} }}")
        };
        let epochs: Vec<String> = (0..n).map(epoch).collect();
        format!(
            "control = \"base\"\nshares = {{ base = 0.5, b = 0.5 }}\nepochs = [{}]",
            epochs.join(", ")
        )
    };
    assert_eq!(experiment(&epochs(1000)).epochs.len(), 1000);
    check_refused(&epochs(1001), &["a.epochs", "too many epochs", "at most 1000"]);
}

#[test]
fn an_experiment_with_a_control_is_shown_with_defaults() {
    let shown = |lines: &str| {
        let text = format!("[kafka]\nbrokers = \"b:1\"\n[experiments.\"a.b\"]\n{lines}");
        let shown = parse("abgauge.toml", &text, owned(&[]).into_iter(), load::shown);
        let shown = shown
            .unwrap_or_else(|errors| panic!("{}", render(&errors)))
            .show();
        let (_, of_experiment) = shown.split_once("[experiments.\"a.b\"]\n").expect("it is shown");
        let squeeze = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        of_experiment.lines().map(squeeze).collect::<Vec<_>>()
    };
    assert_eq!(
        shown("start = 2026-01-31T09:00:00Z"),
        [
            "#description = # not set",
            "#owner = # not set",
            "#planned_users = # not set",
            "start = \"2026-01-31T09:00:00Z\" # line 4"
        ]
    );
    assert_eq!(shown("owner = \"ann\"")[1], "owner = \"ann\" # line 4");
    let all = "control = \"base\"\nmde = 0.1\nshares = { base = 0.5, \"c d\" = 0.5 }\n\
               epochs = [{ start = 2026-02-01T09:00:00Z, shares = { base = 0.4, \"c d\" = 0.6 } }]";
    assert_eq!(
        shown(all),
        [
            "#description = # not set",
            "#owner = # not set",
            "#planned_users = # not set",
            "#start = # not set",
            "control = \"base\" # line 4",
            "shares = { base = 0.5, \"c d\" = 0.5 } # line 6",
            "primary = [\"ctr@10\"] # default: CTR at the largest k, else the first metric measured",
            "#guardrails = # not set",
            "mde = 0.1 # line 5",
            "alpha = 0.05 # default",
            "min_days = 7.0 # default",
            "#planned_days = # not set",
            "validity = \"sequence\" # default",
            "goal = \"superior\" # default",
            "unit = \"user\" # default",
            "sticky = false # default",
            "#lower_is_better = # not set",
            "list_ratio_margin = 0.01 # default",
            "#max_lists_per_user = # not set",
            "epoch_weights = \"overlap\" # default",
            "epochs = [{ start = \"2026-02-01T09:00:00Z\", shares = { base = 0.4, \"c d\" = 0.6 } }] # line 7",
        ]
    );
}

#[test]
fn a_description_and_an_owner_are_short_texts_and_need_no_control() {
    let about = |lines: &str| {
        let mut all = config(&format!("[experiments.a]\n{lines}"), &[]).about_experiments;
        all.remove("a")
    };
    let known = about("description = \"New <ranker>\"\nowner = \"ann\"").expect("it is there");
    assert_eq!(known.description.as_deref(), Some("New <ranker>"));
    assert_eq!(known.owner.as_deref(), Some("ann"));
    assert_eq!(about("control = \"base\""), None);
    let longest = "ä".repeat(300);
    let known = about(&format!("description = \"{longest}\"")).expect("it is there");
    assert_eq!(known.description, Some(longest.clone()));
    check_refused(
        &format!("description = \"{longest}x\""),
        &[
            "experiments.a.description",
            "has 301 characters",
            "write at most 300 characters",
        ],
    );
    check_refused(
        &format!("owner = \"{}\"", "x".repeat(101)),
        &["experiments.a.owner", "write at most 100 characters"],
    );
    check_refused("owner = \" \"", &["experiments.a.owner", "is blank"]);
}

#[test]
fn planned_users_are_a_positive_whole_number_and_need_no_control() {
    for lines in [
        "planned_users = 40000",
        "control = \"base\"\nplanned_users = 40000",
    ] {
        let config = config(&format!("[experiments.a]\n{lines}"), &[]);
        let planned = config.about_experiments["a"].planned_users;
        assert_eq!(planned.map(u64::from), Some(40_000), "{lines}");
    }
    for control in ["", "control = \"base\"\n"] {
        for number in ["0", "-1", "1000000000001"] {
            check_refused(
                &format!("{control}planned_users = {number}"),
                &[
                    "experiments.a.planned_users",
                    &format!("{number} is out of range"),
                    "write a number from 1 to 1000000000000",
                ],
            );
        }
    }
    check_refused("planned_users = 0.5", &["planned_users"]);
}

#[test]
fn a_description_does_not_change_what_is_counted() {
    let of = |lines: &str| config(&format!("[experiments.a]\ncontrol = \"base\"\n{lines}"), &[]);
    let described = "description = \"New\"\nowner = \"ann\"\nplanned_users = 40000";
    let (plain, described) = (of(""), of(described));
    assert_eq!(plain.fingerprint(), described.fingerprint());
    assert_eq!(plain.experiments, described.experiments);
}
