//! The live page in headless Chromium under traffic, and the shape of the JSON that it reads.
//!
//! `ABGAUGE_SCREENSHOTS=docs tests/run --test page` retakes docs/page.png, docs/page-dark.png and docs/page-phone.png.
//! `ABGAUGE_FIRST_VIEWS=250 tests/run --test page -- first_views` opens the page of 250 demos, four times each.

#[path = "../support/mod.rs"]
mod support;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use abgauge_core::statistics::ArmState;
use serde_json::{Map, Value, json};
use support::busy::{self, Busy};
use support::certificates::{Authority, Validity};
use support::crowd::{self, Crowd};
use support::daemon::Daemon;
use support::https::{self, Trust};
use support::kafka::Kafka;
use support::trickle::Trickle;
use support::{browser, tools, wait};

use crate::support::looked::LookedAt;

/// Arguments for a list in every cell of a line.
const TRAFFIC: [&str; 4] = ["--duration", "10m", "--rate", "150"];
/// Arguments for screenshots: lines as smooth as those of real traffic, slow enough for a busy machine to keep up.
const SMOOTH_TRAFFIC: [&str; 6] = ["--duration", "12m", "--rate", "400", "--speed", "120"];

#[test]
fn the_page_updates_live_and_settled_numbers_by_itself() {
    let folder = std::env::var("ABGAUGE_SCREENSHOTS").map(|folder| tools::repository(&folder));
    let mut demo = Daemon::demo(match folder {
        Ok(_) => &SMOOTH_TRAFFIC[..],
        Err(_) => &TRAFFIC,
    });
    demo.wait_until_ready();
    let url = format!("http://{}/", demo.address());
    let folder = folder
        .map(|folder| folder.display().to_string())
        .unwrap_or_default();
    let said = browser::run("page.mjs", &[&url, &folder], Duration::from_secs(480));
    assert!(said.contains("all is well"), "{said}");
}

/// Each demo has its own seed.
#[test]
fn first_views_agree_with_every_output_and_claim_only_what_is_true() {
    let n_demos = std::env::var("ABGAUGE_FIRST_VIEWS");
    let n_views = if n_demos.is_ok() { "4" } else { "1" };
    let n_demos = n_demos.unwrap_or_else(|_| "1".to_owned());
    let program = support::daemon::program().display().to_string();
    let args = [program.as_str(), "1", &n_demos, n_views];
    let said = browser::run("first-views.mjs", &args, Duration::from_secs(3 * 3600));
    assert!(said.contains("first views agree"), "{said}");
}

#[test]
fn the_page_survives_a_restart_of_the_daemon() {
    let mut demo = Daemon::demo(&TRAFFIC);
    demo.wait_until_ready();
    let url = format!("http://{}/", demo.address());
    let mut page = browser::Script::start("restart.mjs", &[&url]);
    page.wait_said("stop it", wait::LONG);
    demo.signal(libc::SIGTERM);
    // An open page must not delay the end.
    assert_eq!(demo.wait_exit(Duration::from_secs(20)), Some(0));
    page.wait_said("start it", wait::LONG);
    demo.start_again();
    let said = page.wait_end(Duration::from_secs(120));
    assert!(said.contains("all is well"), "{said}");
}

#[test]
fn the_page_follows_an_experiment_from_before_its_first_list() {
    // Half of the connections are reserved for live pages.
    let mut trickle = Trickle::start("max_connections = 24");
    trickle.daemon.wait_until_ready();
    let url = format!("http://{}/", trickle.daemon.address());
    let mut page = browser::Script::start("day.mjs", &[&url, "12"]);
    page.wait_said("begin", wait::LONG);
    trickle.lists("first", "v 1", 20);
    trickle.lists("first", "v 2", 30);
    page.wait_said("go on", wait::LONG);
    trickle.lists("first", "v 2", 5);
    page.wait_said("another experiment", wait::LONG);
    trickle.lists("second", "grid", 3);
    trickle.lists("second", "carousel", 3);
    let said = page.wait_end(Duration::from_secs(240));
    assert!(said.contains("all is well"), "{said}");
}

#[test]
fn the_page_updates_over_tls_and_with_a_password() {
    const PASSWORD: &str = "correct horse battery";
    let dir = tools::temporary_dir("secured");
    let authority = Authority::new(dir.path(), "authority");
    let server = authority.sign("server", &["127.0.0.1"], Validity::Now);
    let hashed =
        crate::support::program::run_with_input(&["hash", "password", "--user", "viewer"], PASSWORD).stdout;
    let mut trickle = Trickle::start(&format!(
        "tls_certificate = {:?}\ntls_key = {:?}\nbasic_passwords = [{:?}]\n",
        server.certificate,
        server.key,
        hashed.trim(),
    ));
    let trust = Trust::of(&authority.file);
    trickle.daemon.wait_until("abgauge to be ready", |daemon| {
        let answer = https::get(daemon.address(), Some(&trust), "/readyz", &[]);
        answer.ok().filter(|answer| answer.status == 200)
    });
    trickle.lists("first", "v 1", 20);
    trickle.lists("first", "v 2", 20);
    let url = format!("https://{}/", trickle.daemon.address());
    let mut page = browser::Script::start("secured.mjs", &[&url, "viewer", PASSWORD]);
    page.wait_said("go on", wait::LONG);
    trickle.lists("first", "v 2", 5);
    let said = page.wait_end(Duration::from_secs(120));
    assert!(said.contains("all is well"), "{said}");
}

#[test]
fn the_page_shows_pending_conditions() {
    let brokers = format!("[kafka]\nbrokers = \"127.0.0.1:{}\"\n", tools::free_port());
    let mut daemon = Daemon::run(&brokers);
    daemon.wait_until("the port", |daemon| daemon.try_get("/healthz").ok());
    let url = format!("http://{}/", daemon.address());
    let said = browser::run("waiting.mjs", &[&url], Duration::from_secs(120));
    assert!(said.contains("all is well"), "{said}");
}

#[test]
fn the_page_shows_warnings_about_its_numbers() {
    const N_PARTITIONS: i32 = 12;
    let kafka = Kafka::shared();
    let [served, clicks] = ["served", "clicks"].map(|stem| kafka.new_topic(stem, N_PARTITIONS));
    let section = kafka.section(&served, &clicks);
    // A value below the longest window causes a warning.
    let mut daemon = Daemon::run(&format!("{section}[export]\nforget_after = \"1h\"\n"));
    daemon.wait_until_ready();
    let url = format!("http://{}/", daemon.address());
    let sentence = format!(
        "about 11 of 12 clicks find no list, because producers use different partitioners: topic `{clicks}` is keyed with CRC32 \
         (librdkafka's default), topic `{served}` with murmur2 (Java's): set partitioner=murmur2_random in the producers of \
         `{clicks}` (Rust's confluent-kafka ignores that: partitioner.type=Murmur2RandomPartitioner)"
    );
    let mut page = browser::Script::start("warnings.mjs", &[&url, &sentence]);
    page.wait_said("go wrong", wait::LONG);
    for (topic, partitioner) in [(&served, "murmur2_random"), (&clicks, "consistent_random")] {
        let producer = kafka.producer_with(&[("partitioner", partitioner)]);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
        for number in 0..400 {
            let id = format!("r-{number}");
            let event = match partitioner {
                "murmur2_random" => json!({"request_id": id, "ts": now.as_millis() as u64, "items": ["a"]}),
                _ => json!({"request_id": id, "ts": now.as_millis() as u64, "item": "a"}),
            };
            let event = event.to_string();
            producer.produce(topic, None, Some(id.as_bytes()), Some(event.as_bytes()), None);
        }
        producer.flush();
    }
    let said = page.wait_end(Duration::from_secs(120));
    assert!(said.contains("all is well"), "{said}");
}

#[test]
fn all_partitions_can_be_chosen_if_state_is_stored() {
    const N_LISTS: usize = 20;
    let kafka = Kafka::shared();
    let [served, clicks] = ["served", "clicks"].map(|stem| kafka.new_topic(stem, 2));
    let state = kafka.unique("state");
    let settings = [
        ("cleanup.policy", "compact"),
        ("max.message.bytes", "1048576"),
        ("message.timestamp.type", "LogAppendTime"),
    ];
    kafka.create_topic(&state, 2, &settings);
    let mut daemon = Daemon::run(&format!(
        "{section}[join]\nattribution = \"2s\"\nlateness = \"4s\"\nmax_future = \"1s\"\nidle_after = \"1s\"\nslot = \"1s\"\n\
         [state]\ntopic = \"{state}\"\ninterval = \"1s\"\n",
        section = kafka.section(&served, &clicks),
    ));
    daemon.wait_until_ready();
    let producer = kafka.producer();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    for number in 0..N_LISTS {
        let id = format!("r-{number}");
        let event = json!({
            "request_id": id, "ts": now.as_millis() as u64, "experiments": {"e": "a"}, "items": ["a"],
        });
        let event = event.to_string();
        producer.produce(&served, None, Some(id.as_bytes()), Some(event.as_bytes()), None);
    }
    producer.flush();
    let of_all = [("scope", "global"), ("window", "total")];
    daemon.wait_until("all to be stored and read", |daemon| {
        (daemon.metrics().sum("abgauge_lists", &of_all) == N_LISTS as f64).then_some(())
    });
    let url = format!("http://{}/", daemon.address());
    let said = browser::run(
        "whole.mjs",
        &[&url, &N_LISTS.to_string()],
        Duration::from_secs(120),
    );
    assert!(said.contains("all is well"), "{said}");
}

#[test]
fn ten_thousand_arms_stay_fluid() {
    let crowd = Crowd::start();
    let url = format!("http://{}/", crowd.daemon.address());
    let n_arms = crowd::N_ARMS.to_string();
    let args = [&[&*url, &*n_arms], &crowd::HOSTILE[..]].concat();
    let said = browser::run("crowd.mjs", &args, Duration::from_secs(240));
    println!("{said}");
    assert!(said.contains("all is well"), "{said}");
}

#[test]
fn arms_are_compared_with_their_control_by_the_last_look() {
    const MINUTE_MS: i64 = 60_000;
    let server = LookedAt::start();
    let url = format!("http://{}/", server.address);
    let mut page = browser::Script::start("looks.mjs", &[&url, crate::support::looked::HOSTILE]);
    page.wait_said("look", wait::LONG);
    server.look(30 * MINUTE_MS, ArmState::Collecting);
    page.wait_said("look again", wait::LONG);
    server.look(0, ArmState::Win);
    page.wait_said("look without shares", wait::LONG);
    server.look_without_shares();
    page.wait_said("look undecided", wait::LONG);
    server.look_undecided(None);
    page.wait_said("look as planned", wait::LONG);
    server.look_undecided(Some(crate::support::looked::PLANNED_END_MS));
    for planned in [40_000, 8_701, 8_000] {
        page.wait_said(&format!("plan {planned} users"), wait::LONG);
        server.plan_users(planned);
    }
    let said = page.wait_end(Duration::from_secs(120));
    assert!(said.contains("all is well"), "{said}");
}

#[test]
fn a_value_explains_itself() {
    let server = LookedAt::start();
    server.look_undecided(None);
    let url = format!("http://{}/", server.address);
    let said = browser::run(
        "why.mjs",
        &[&url, crate::support::looked::HOSTILE],
        Duration::from_secs(120),
    );
    assert!(said.contains("all is well"), "{said}");
}

/// Opens a page with one look, and checks its wording.
#[track_caller]
fn check_wording(show: fn(&LookedAt), what: &str) {
    let server = LookedAt::start();
    show(&server);
    let url = format!("http://{}/", server.address);
    let folder = std::env::var("ABGAUGE_WORDING_PICTURES").unwrap_or_default();
    let said = browser::run("wording.mjs", &[&url, what, &folder], Duration::from_secs(120));
    assert!(said.contains("all is well"), "{said}");
}

#[test]
fn an_arm_that_is_not_worse_is_neither_a_winner_nor_green() {
    check_wording(LookedAt::look_not_worse, "not worse");
}

#[test]
fn harm_within_its_interval_is_only_probable_and_shows_its_bound() {
    check_wording(LookedAt::look_probably_harmful, "probably harmful");
}

#[test]
fn a_loss_whose_interval_includes_zero_again_is_explained() {
    check_wording(LookedAt::look_lost_and_open_again, "lost and open again");
}

#[test]
fn a_confirmed_decision_shows_since_when_it_holds() {
    check_wording(LookedAt::look_confirmed, "confirmed");
}

#[test]
fn an_arm_keeps_its_color_in_any_order() {
    check_wording(LookedAt::look_two_winners, "colors");
}

#[test]
fn an_undecided_experiment_shows_what_is_missing() {
    check_wording(|server| server.look_undecided(None), "what is missing");
}

#[test]
fn only_one_of_two_winners_is_promoted() {
    check_wording(LookedAt::look_two_winners, "two winners");
}

#[test]
fn absolute_effects_have_intervals_in_the_unit_of_the_metric() {
    check_wording(|server| server.look_undecided(None), "absolute effects");
}

#[test]
fn lifts_of_an_invalid_experiment_are_folded() {
    check_wording(LookedAt::look_invalid, "invalid");
}

#[test]
fn each_check_of_the_numbers_has_its_result_in_one_line() {
    check_wording(LookedAt::look_two_winners, "trusted");
}

#[test]
fn a_failed_check_is_named_with_its_runbook() {
    check_wording(LookedAt::look_invalid, "not trusted");
}

#[test]
fn names_with_few_lists_are_one_line() {
    check_wording(|server| server.look_undecided(None), "few lists");
}

#[test]
fn a_stream_without_counted_records_is_red() {
    check_wording(|server| server.look_undecided(None), "nothing counted");
}

#[test]
fn charts_show_their_numbers_to_pointer_and_keys() {
    let mut demo = Daemon::demo(&TRAFFIC);
    demo.wait_until_ready();
    let url = format!("http://{}/", demo.address());
    let folder = std::env::var("ABGAUGE_CHART_PICTURES").unwrap_or_default();
    let said = browser::run("charts.mjs", &[&url, &folder], Duration::from_secs(240));
    assert!(said.contains("all is well"), "{said}");
}

#[test]
fn charts_start_with_the_first_look_and_escape_names() {
    const LOOK_MS: i64 = 600_000;
    const DAY_MS: i64 = 86_400_000;
    let server = LookedAt::start();
    let url = format!("http://{}/", server.address);
    let mut page = browser::Script::start("first-charts.mjs", &[&url, crate::support::looked::HOSTILE]);
    page.wait_said("look", wait::LONG);
    for number in (0..4).rev() {
        server.look(number * LOOK_MS, ArmState::Win);
    }
    for planned in [40_000, 20_000] {
        page.wait_said(&format!("plan {planned} users"), wait::LONG);
        server.plan_users(planned);
    }
    page.wait_said("a later look", wait::LONG);
    server.look(-LOOK_MS, ArmState::Win);
    page.wait_said("a day later", wait::LONG);
    server.look(-DAY_MS, ArmState::Win);
    let said = page.wait_end(Duration::from_secs(120));
    assert!(said.contains("all is well"), "{said}");
}

#[test]
fn every_metric_of_every_profile_can_be_chosen() {
    let busy = Busy::start();
    let url = format!("http://{}/", busy.daemon.address());
    let n_items = busy::N_ITEMS.to_string();
    let args = [&*url, busy::PROFILES[1], &n_items];
    let said = browser::run("metrics.mjs", &args, Duration::from_secs(120));
    assert!(said.contains("all is well"), "{said}");
}

#[test]
fn the_api_has_the_documented_shape() {
    let mut demo = Daemon::demo(&TRAFFIC);
    let answer = demo.wait_until("settled lists", |demo| {
        let answer = demo.try_get("/api/v1/experiments?timelines=1h").ok()?;
        let json: Value = serde_json::from_str(&answer.body).expect("JSON");
        // Partitions settle one after the other, and the last arm of an experiment may be in the last one.
        let experiments = json["experiments"].as_object()?;
        let mut arms = experiments
            .values()
            .flat_map(|it| it["arms"].as_object().into_iter().flatten());
        let settled =
            |(_, arm): (&String, &Value)| arm.pointer("/windows/1h/settled").is_some_and(Value::is_object);
        (experiments.len() == 2 && arms.all(settled)).then_some(json)
    });
    assert_eq!(answer["version"], 1);
    assert_eq!(answer["windows"], serde_json::json!(["5m", "1h", "24h", "total"]));
    assert_eq!(answer["profiles"][0]["name"], "default");
    let keys_of_default = answer["profiles"][0]["metrics"].as_array().map(Vec::len);
    assert_eq!(keys_of_default, Some(7 * 4));
    assert_eq!(keys(&answer["experiments"]), ["layout", "ranker"]);
    assert_eq!(
        keys(&answer["experiments"]["ranker"]["arms"]),
        ["blend", "control", "neural"]
    );
    for (experiment, arms) in object(&answer["experiments"]) {
        for (arm, it) in object(&arms["arms"]) {
            assert_eq!(keys(&it["windows"]), ["1h", "24h", "5m", "total"]);
            let total = &it["windows"]["total"];
            let lists = |view: &str| total[view]["lists"].as_u64().expect("a count");
            assert!(lists("live") > lists("settled"), "{experiment}/{arm}: {total}");
            for view in ["live", "settled"] {
                check_view(&total[view], false);
                check_view(&it["windows"]["1h"][view], true);
            }
        }
    }
    let stream = &answer["stream"];
    assert_eq!((&stream["ready"], &stream["exact"]), (&true.into(), &true.into()));
    assert_eq!(stream["settle_after_ms"], 1_920_000, "30 minutes and 2");
    assert_eq!(stream["pair_restarts"], 0);
    for key in ["live_end_ms", "settled_end_ms", "open_lists", "state_bytes"] {
        assert!(stream[key].as_i64() > Some(0), "{key}: {stream}");
    }
    let accepted = stream["records"]["served"]["accepted"].as_i64();
    assert!(accepted > Some(0), "{stream}");
    assert_eq!(stream["state_max_bytes"], 4_u64 << 30, "limits.max_state");
    assert_eq!(stream["partitions"].as_array().map(Vec::len), Some(8));
}

/// Checks the usual metrics at 1, 5, 10 and over the whole list. All of them are ratios.
#[track_caller]
fn check_view(view: &Value, with_timeline: bool) {
    let metrics = object(&view["metrics"]);
    // Recall is a mean over lists with a click.
    let n_metrics = if view["clicks"] == 0 { 6 } else { 7 };
    assert_eq!(metrics.len(), n_metrics * 4, "{view}");
    for (key, value) in metrics {
        let value = value.as_f64().expect("a number");
        assert!((0.0..=1.0).contains(&value), "{key}: {view}");
    }
    let ratio = view["clicks"].as_f64().expect("a count") / view["items_shown"].as_f64().expect("a count");
    assert!(
        (metrics["ctr"].as_f64().expect("a number") - ratio).abs() < 1e-12,
        "{view}"
    );
    let cells = &view["timeline"]["lists"];
    assert_eq!(
        cells.as_array().map(Vec::len),
        with_timeline.then_some(60),
        "{view}"
    );
    if with_timeline {
        let sum: u64 = cells
            .as_array()
            .expect("cells")
            .iter()
            .filter_map(Value::as_u64)
            .sum();
        assert_eq!(
            Some(sum),
            view["lists"].as_u64(),
            "the cells are the window's: {view}"
        );
    }
}

fn object(value: &Value) -> &Map<String, Value> {
    value.as_object().unwrap_or_else(|| panic!("no object: {value}"))
}

fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = object(value).keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}
