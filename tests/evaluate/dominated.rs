//! One user with a large share of an arm's lists: the notes in every format.

use std::fmt::Write as _;

use abgauge_core::evaluate::{Compare, Evaluation, Evaluator, Options};
use abgauge_core::statistics::Settings;
use serde_json::Value;

use crate::MIDNIGHT_MS;

/// A xorshift generator of numbers in 0..1.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Returns the events of 600 users per arm, each with one to nine lists and clicks on a quarter of them, and of a crawler with
/// this share of all lists of `b`. The crawler clicks as often as others, or never.
fn events(seed: u64, share: f64, clicks: bool) -> String {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut lists: Vec<(String, &str, bool)> = Vec::new();
    let mut n_of_b = 0;
    for user in 0..1200 {
        let arm = ["a", "b"][user % 2];
        for _ in 0..1 + (9.0 * dice.roll()) as usize {
            n_of_b += usize::from(arm == "b");
            lists.push((format!("u{user}"), arm, dice.roll() < 0.25));
        }
    }
    let n_crawled = (share / (1.0 - share) * n_of_b as f64) as usize;
    for _ in 0..n_crawled {
        lists.push(("crawler".to_owned(), "b", clicks && dice.roll() < 0.25));
    }
    let mut lines = String::new();
    for (n, (user, arm, is_hit)) in lists.iter().enumerate() {
        let ts = MIDNIGHT_MS + 1000 * n as i64;
        writeln!(
            lines,
            r#"{{"type":"served","request_id":"{n}","user_id":"{user}","ts":{ts},"experiments":{{"e":"{arm}"}},"items":["i"]}}"#
        )
        .expect("text takes all");
        if *is_hit {
            writeln!(
                lines,
                r#"{{"type":"click","request_id":"{n}","ts":{},"item":"i"}}"#,
                ts + 1
            )
            .expect("text takes all");
        }
    }
    lines
}

fn evaluated(events: &str, settings: Settings, max_user_share: f64) -> Evaluation {
    let options = Options {
        max_user_share,
        compare: Some(Compare {
            all: Some(settings),
            ..Compare::default()
        }),
        ..Options::default()
    };
    let mut evaluator = Evaluator::new(&options);
    evaluator
        .read("events", events.as_bytes())
        .expect("it can be read");
    evaluator.finish()
}

/// Returns the notes on `b` in JSON, after a check that the table has the same.
#[track_caller]
fn notes(evaluation: &Evaluation) -> Vec<String> {
    let mut json = Vec::new();
    evaluation.report().json(&mut json).expect("memory takes all");
    let json: Value = serde_json::from_slice(&json).expect("JSON");
    let notes = json["comparisons"]["e"]["b"]["notes"].as_array().expect("notes");
    let notes: Vec<String> = notes
        .iter()
        .map(|note| note.as_str().expect("text").to_owned())
        .collect();
    let table = evaluation.report().table();
    for note in &notes {
        assert!(table.contains(&format!("\nnote: {note}")), "{note}: {table}");
    }
    notes
}

/// Settings without a primary, and by a metric per user.
fn settings() -> [Settings; 2] {
    let by_user = Settings {
        shares: ["a", "b"].map(|arm| (arm.to_owned(), 0.5)).into(),
        primary: vec!["hits_per_user".to_owned()],
        ..Settings::new("a")
    };
    [Settings::new("a"), by_user]
}

#[test]
fn the_variance_of_one_user_is_noted_in_every_run_with_any_primary_or_none() {
    for share in [0.2, 0.35, 0.6] {
        for seed in 1..=8 {
            let events = events(seed, share, false);
            // A limit of 1 leaves only the note on the variance.
            let notes = notes(&evaluated(&events, Settings::new("a"), 1.0));
            let has_note = notes
                .iter()
                .any(|note| note.contains("of the variance of ") && note.contains("one user or very few"));
            assert!(has_note, "{share}, {seed}: {notes:?}");
        }
    }
}

#[test]
fn a_user_who_clicks_like_others_dominates_metrics_per_user() {
    let [none, by_user] = settings();
    let noted = |events: &str, settings: &Settings| {
        let notes = notes(&evaluated(events, settings.clone(), 1.0));
        let dominated = notes
            .into_iter()
            .find(|note| note.contains("of the variance of "));
        dominated.unwrap_or_default()
    };
    for seed in 1..=8 {
        let dominated = events(seed, 0.35, true);
        let note = noted(&dominated, &by_user);
        assert!(
            note.contains("of the variance of hits per assigned user comes from one user"),
            "{seed}: {note}"
        );
        let usual = events(seed, 0.0, true);
        for settings in [&none, &by_user] {
            assert_eq!(noted(&usual, settings), "", "{seed}");
        }
    }
}

#[test]
fn the_warning_about_one_user_is_also_a_note() {
    let dominated = events(1, 0.1, false);
    let expected = "one user has about 10.0% of the lists of the arm b, more than limits.max_user_share (5%): filter crawlers";
    for settings in settings() {
        let evaluation = evaluated(&dominated, settings.clone(), 0.05);
        let warnings = evaluation.warnings();
        assert!(
            warnings.iter().any(|warning| warning.contains(expected)),
            "{warnings:?}"
        );
        let notes = notes(&evaluation);
        assert!(notes.iter().any(|note| note.starts_with(expected)), "{notes:?}");
        let allowed = evaluated(&dominated, settings, 0.11);
        assert!(
            !self::notes(&allowed)
                .iter()
                .any(|note| note.contains("max_user_share"))
        );
    }
}
