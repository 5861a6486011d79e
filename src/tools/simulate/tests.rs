//! Tests of the traffic as a whole.

mod truths;
mod users;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::num::NonZeroU32;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use abgauge_core::engine::event::Side;
use serde_json::Value;
use xxhash_rust::xxh3::Xxh3Default;

use super::output::write_lines;
use super::*;
use crate::stream::kafka::embedded::Embedded;
use crate::stream::kafka::producer::Producer;

const START_MS: i64 = FILE_START_MS;

/// Traffic of about `n` lists.
fn traffic(n: u64, adapt: impl FnOnce(&mut TrafficSettings)) -> Traffic {
    let mut settings = TrafficSettings::new(7, 10.0, START_MS);
    settings.duration_ms = Some(n as i64 * 100);
    adapt(&mut settings);
    Traffic::new(settings)
}

/// Numbers by arm.
fn of_arms(numbers: &[(&str, f64)]) -> Vec<(String, f64)> {
    let owned = numbers.iter().map(|(arm, number)| ((*arm).to_owned(), *number));
    owned.collect()
}

/// World with this design and enough users.
fn world(design: Design) -> World {
    World {
        population: Population {
            n_users: NonZeroU32::new(200_000).unwrap(),
            ..Population::default()
        },
        design,
        ..World::default()
    }
}

fn fingerprint(traffic: Traffic) -> u64 {
    let mut hash = Xxh3Default::new();
    for record in traffic {
        hash.update(&record.arrival_ms.to_le_bytes());
        hash.update(&[record.side as u8, record.kind as u8]);
        hash.update(&record.key);
        hash.update(&record.payload);
    }
    hash.digest()
}

#[test]
fn equal_settings_give_equal_bytes_on_every_machine() {
    let expected = 3_855_629_649_838_049_668;
    assert_eq!(fingerprint(traffic(5_000, |_| {})), expected);
    assert_ne!(
        fingerprint(traffic(5_000, |settings| settings.seed += 1)),
        expected
    );
}

#[test]
fn records_arrive_in_order_at_the_requested_rate() {
    let mut last_ms = i64::MIN;
    let mut n_lists = 0;
    for record in traffic(20_000, |_| {}) {
        assert!(record.arrival_ms >= last_ms);
        last_ms = record.arrival_ms;
        n_lists += u64::from(record.kind == RecordKind::List);
    }
    assert!((19_000..21_000).contains(&n_lists), "{n_lists}");
}

#[test]
fn all_kinds_of_noise_occur_and_can_be_switched_off() {
    let kinds: BTreeSet<_> = traffic(20_000, |_| {}).map(|record| record.kind).collect();
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), RecordKind::ALL);
    let kinds: BTreeSet<_> = traffic(5_000, |settings| settings.noise = Noise::NONE)
        .map(|r| r.kind)
        .collect();
    assert_eq!(
        kinds.into_iter().collect::<Vec<_>>(),
        [RecordKind::List, RecordKind::Click]
    );
}

#[test]
fn a_key_is_the_request_or_the_user_of_the_list_on_both_sides() {
    for key in [TopicKey::Request, TopicKey::User] {
        let mut lists = HashMap::new();
        let mut clicks = Vec::new();
        for record in traffic(2_000, |settings| settings.key = key) {
            let Ok(json) = serde_json::from_slice::<Value>(&record.payload) else {
                continue;
            };
            match record.kind {
                RecordKind::List => {
                    let name = match key {
                        TopicKey::Request => &json["request_id"],
                        TopicKey::User => &json["user_id"],
                    };
                    assert_eq!(name.as_str().map(str::as_bytes), Some(record.key.as_slice()));
                    lists.insert(json["request_id"].to_string(), record.key);
                }
                RecordKind::Click => clicks.push((json["request_id"].to_string(), record.key)),
                _ => {}
            }
        }
        let matched = clicks.iter().filter_map(|(id, key)| Some((lists.get(id)?, key)));
        assert!(matched.clone().count() > 500);
        assert!(matched.clone().all(|(list, click)| list == click));
    }
}

#[test]
fn each_kind_of_refused_record_is_refused_by_its_own_rule() {
    let settings = traffic(1, |_| {}).settings().clone();
    let mut served = HashMap::new();
    let mut records: Vec<_> = traffic(20_000, |_| {}).collect();
    // A click may overtake its list.
    records.sort_by_key(|record| record.side);
    for record in records {
        let Ok(json) = serde_json::from_slice::<Value>(&record.payload) else {
            assert_eq!(record.kind, RecordKind::Broken);
            continue;
        };
        let ts_ms = json["ts"].as_i64().unwrap_or(0);
        let id = json["request_id"].to_string();
        let age_ms = record.arrival_ms - ts_ms;
        let on_time = (0..=settings.lateness_ms / 2).contains(&age_ms);
        match record.kind {
            RecordKind::List | RecordKind::DuplicateList => {
                assert!(on_time);
                served.insert(id, ts_ms);
            }
            RecordKind::LateList => assert!(age_ms > settings.lateness_ms + 60_000),
            RecordKind::Future => assert!(-age_ms > settings.max_future_ms),
            RecordKind::OrphanClick => assert!(on_time && !served.contains_key(&id)),
            RecordKind::Click | RecordKind::RepeatedClick | RecordKind::OffListClick => {
                let delay_ms = served.get(&id).map_or(0, |served| ts_ms - served);
                assert!(on_time && (0..=settings.attribution_ms).contains(&delay_ms));
            }
            RecordKind::ExpiredClick => {
                let after = served
                    .get(&id)
                    .is_none_or(|served| ts_ms - served > settings.attribution_ms);
                assert!(on_time && after);
            }
            RecordKind::Broken | RecordKind::OtherType => {}
        }
    }
}

/// Writer that accepts this many bytes before its reader closes.
struct Pipe(usize);

impl std::io::Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self.0.checked_sub(bytes.len()) {
            None => Err(std::io::ErrorKind::BrokenPipe.into()),
            Some(left) => {
                self.0 = left;
                Ok(bytes.len())
            }
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_reader_that_stops_early_is_not_an_error() {
    let traffic = traffic(10_000, |settings| settings.with_type = true);
    let summary = write_lines(traffic, Pipe(200_000), &AtomicBool::new(false), |_, _| {}).unwrap();
    assert!((500..5_000).contains(&summary.records()), "{summary}");
}

#[test]
fn a_file_has_one_line_with_a_type_per_record() {
    let mut lines = Vec::new();
    let settings = |settings: &mut TrafficSettings| settings.with_type = true;
    let summary = write_lines(
        traffic(2_000, settings),
        &mut lines,
        &AtomicBool::new(false),
        |_, _| {},
    )
    .unwrap();
    let lines: Vec<_> = lines.split(|byte| *byte == b'\n').collect();
    assert_eq!(lines.len() as u64, summary.records() + 1);
    let of_type = |name: &str| {
        let prefix = format!(r#"{{"type":"{name}","request_id":"r-"#);
        lines
            .iter()
            .filter(|line| line.starts_with(prefix.as_bytes()))
            .count() as u64
    };
    let n_lists = summary.of(RecordKind::List) + summary.of(RecordKind::DuplicateList);
    assert!(of_type("served") >= n_lists && of_type("click") >= summary.of(RecordKind::Click));
}

fn options() -> SimulateOptions {
    SimulateOptions {
        brokers: None,
        properties: Properties::default(),
        output: None,
        topics: TrafficTopics {
            served: "served".to_owned(),
            clicks: "clicks".to_owned(),
        },
        create_topics: false,
        heartbeat: None,
        partitions: 2,
        rate: 200.0,
        speed: 300.0,
        duration: Some(Duration::from_secs(1)),
        seed: 1,
        world: World::default(),
        diurnal: false,
        key: TopicKey::Request,
        start_ms: None,
    }
}

#[track_caller]
fn check_refused(adapt: impl FnOnce(&mut SimulateOptions), expected: &str) {
    let mut options = options();
    adapt(&mut options);
    let error = simulate(&options, &AtomicBool::new(false)).unwrap_err();
    assert!(format!("{error:#}").contains(expected), "{error:#}");
}

#[test]
fn invalid_options_are_refused_with_a_suggestion() {
    check_refused(|_| {}, "--brokers HOST:PORT, or --output FILE");
    check_refused(|o| o.rate = 0.0, "--rate");
    check_refused(|o| o.speed = f64::NAN, "--speed");
    check_refused(|o| o.duration = None, "--duration");
    check_refused(
        |o| (o.brokers, o.output) = (Some("b".to_owned()), Some("-".into())),
        "exclude each other",
    );
    let endless = |o: &mut SimulateOptions| (o.output, o.duration) = (Some("endless.jsonl".into()), None);
    check_refused(endless, "fill the disk");
    // A gap between two lists, and all of event time, fit into 64 bits of nanoseconds.
    let rare = |o: &mut SimulateOptions| (o.rate, o.speed) = (0.000_01, 1e6);
    check_refused(rare, "raise --rate or lower --speed");
    let long = |o: &mut SimulateOptions| {
        (o.speed, o.duration) = (1e6, Some(Duration::from_secs(7 * 86_400)));
    };
    check_refused(long, "--duration goes beyond the range of valid event times");
}

#[test]
fn the_lowest_rate_draws_all_valid_times() {
    let settings = TrafficSettings::new(1, 1.0 / (365.0 * 86_400.0), START_MS);
    let mut traffic = Traffic::new(settings);
    let mut n_lists = 0;
    while let Some(record) = traffic.next_until(i64::MAX) {
        n_lists += u32::from(record.kind == RecordKind::List);
    }
    // From 2025 to 2286.
    assert!((200..320).contains(&n_lists), "{n_lists}");
}

#[test]
fn fast_traffic_for_kafka_ends_at_the_current_time() {
    let settings = settings(&options(), START_MS).unwrap();
    assert_eq!(settings.start_ms + settings.duration_ms.unwrap(), START_MS);
    assert_eq!(settings.duration_ms, Some(300_000));
    assert_eq!(settings.lists_per_second, 200.0 / 300.0);
}

#[test]
fn kafka_receives_the_reported_records_and_a_missing_topic_is_named() {
    let embedded = Embedded::start(&["served", "clicks"], 2).unwrap();
    let mut options = options();
    options.brokers = Some(embedded.bootstrap().to_owned());
    let dir = tempfile::tempdir().unwrap();
    options.heartbeat = Some(dir.path().join("heartbeat"));
    let summary = simulate(&options, &AtomicBool::new(false)).unwrap();
    assert_eq!(records_on(&embedded), summary.records());
    let beat = std::fs::read_to_string(dir.path().join("heartbeat")).unwrap();
    let n_delivered: u64 = beat.split(' ').next().unwrap().parse().unwrap();
    assert!((1..=summary.records()).contains(&n_delivered), "{beat}");
    assert!((100..300).contains(&summary.of(RecordKind::List)), "{summary}");
    let brokers = options.brokers.clone();
    let absent = |o: &mut SimulateOptions| (o.brokers, o.topics.clicks) = (brokers, "absent".to_owned());
    check_refused(absent, "topic absent does not exist");
}

fn records_on(embedded: &Embedded) -> u64 {
    ["served", "clicks"]
        .map(|topic| embedded.n_records(topic, 2).unwrap())
        .iter()
        .sum()
}

#[test]
fn the_clock_never_runs_ahead_of_delivered_records() {
    let embedded = Embedded::start(&["served", "clicks"], 2).unwrap();
    let adapt = |settings: &mut TrafficSettings| {
        settings.lists_per_second = 1.0;
        settings.duration_ms = Some(300_000);
    };
    let (clock, hand) = Clock::simulated(START_MS);
    let linger = Duration::from_millis(2);
    let producer = Producer::connect(embedded.bootstrap(), &Properties::default(), linger).unwrap();
    let driver = Driver::new(traffic(1, adapt), producer, options().topics, 300.0).with_hand(hand);
    let mut n_steps = 0;
    let watch = |done_ms, summary: &Summary| {
        let now_ms = clock.now_ms();
        assert_eq!(now_ms, START_MS + done_ms);
        let due = traffic(1, adapt)
            .take_while(|record| record.arrival_ms <= now_ms)
            .count() as u64;
        assert_eq!((summary.records(), records_on(&embedded)), (due, due));
        n_steps += 1;
    };
    driver.run(&AtomicBool::new(false), watch).unwrap();
    assert_eq!(clock.now_ms(), START_MS + 300_000);
    assert!(n_steps >= 5, "{n_steps}");
}

#[test]
fn a_run_that_is_cancelled_stops_at_once() {
    let embedded = Embedded::start(&["served", "clicks"], 2).unwrap();
    let mut options = options();
    options.brokers = Some(embedded.bootstrap().to_owned());
    options.duration = Some(Duration::from_secs(3600));
    let wall = Clock::system();
    let cancel = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let run = scope.spawn(|| simulate(&options, &cancel));
        std::thread::sleep(Duration::from_millis(300));
        cancel.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(run.join().unwrap().is_ok());
    });
    assert!(wall.uptime() < Duration::from_secs(10));
}

#[test]
fn diurnal_traffic_follows_the_hour() {
    let in_hour = |diurnal| {
        let mut hours = [0; 24];
        let lists = traffic(1, |settings| {
            settings.diurnal = diurnal;
            settings.lists_per_second = 0.2;
            settings.duration_ms = Some(24 * 3_600_000);
        });
        for list in lists.filter(|record| record.kind == RecordKind::List) {
            hours[(list.arrival_ms / 3_600_000 % 24) as usize] += 1;
        }
        hours
    };
    let [steady, bent] = [false, true].map(in_hour);
    assert!(
        steady[4] > 500 && bent[4] < 200 && bent[20] > 1000,
        "{steady:?} {bent:?}"
    );
}
