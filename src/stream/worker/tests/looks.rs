//! Messages from the worker to the looks at experiments.

use abgauge_core::looks::{Experiment, GivenUp, Look, LookRules, Looks, every_ms};
use abgauge_core::statistics::Settings;

use super::*;

const LOOK_MS: i64 = 600_000;

/// Returns a stage, and the receiver that takes its looks.
fn stage() -> (Stage, Looks) {
    let mut config = Stage::config(&[("KAFKA__KEY", "user")]);
    let ranker = Experiment {
        settings: Some(Settings::new("a")),
        ..Experiment::default()
    };
    config.experiments.insert("ranker".to_owned(), ranker);
    let stage = Stage::of(1, &config);
    let looks = Looks::new(LookRules {
        every_ms: every_ms(1000),
        ranking: stage.ranking.clone(),
        experiments: config.experiments,
        counts_users: true,
        window: None,
        max_bytes: u64::MAX,
        bounds_waiting: false,
    });
    (stage, looks)
}

/// Takes the looks that are due.
fn look(stage: &Stage, looks: &mut Looks) -> Vec<Look> {
    let mut looked = Vec::new();
    for news in stage.news.try_iter() {
        looks.take(news);
        looked.extend(std::iter::from_fn(|| looks.look()));
    }
    looked
}

fn lists(looked: &Look) -> f64 {
    looked.experiments["ranker"].arms["a"].size.lists
}

#[test]
fn a_look_covers_lists_that_all_pairs_have_settled_by_its_time() {
    let (mut stage, mut looks) = stage();
    stage.own(&[0, 1], [0, 0]);
    stage.list(0, 0, "r-0", T0);
    stage.list(1, 0, "r-1", T0 + 2 * LOOK_MS);
    stage.list(1, 1, "r-2", T0 + 3 * LOOK_MS);
    stage.click(1, 0, "r-2", T0 + 3 * LOOK_MS);
    stage.round();
    assert_eq!(look(&stage, &mut looks).len(), 0);
    stage.list(0, 1, "r-3", T0 + 3 * LOOK_MS);
    stage.click(0, 0, "r-3", T0 + 3 * LOOK_MS);
    stage.round();
    let looked = look(&stage, &mut looks);
    let begin = T0.div_euclid(LOOK_MS) * LOOK_MS;
    let times: Vec<i64> = looked
        .iter()
        .map(|looked| (looked.as_of_ms - begin) / LOOK_MS)
        .collect();
    assert_eq!(
        times,
        [1, 2],
        "what is younger than attribution and lateness has not settled"
    );
    assert_eq!(looked.iter().map(lists).collect::<Vec<_>>(), [1.0, 1.0]);
}

#[test]
fn a_restarted_pair_adds_up_from_zero() {
    let (mut stage, mut looks) = stage();
    stage.own(&[0], [2, 1]);
    let fill = |stage: &mut Stage| {
        stage.list(0, 0, "r-0", T0);
        stage.list(0, 1, "r-1", T0 + 3 * LOOK_MS);
        stage.click(0, 0, "r-1", T0 + 3 * LOOK_MS);
        stage.round();
    };
    fill(&mut stage);
    assert_eq!(look(&stage, &mut looks).last().map(lists), Some(1.0));
    stage.worker.handle(Input::OffsetLost(SERVED));
    stage.ends.insert(SERVED, 6);
    stage.ends.insert(CLICKED, 6);
    stage.low = 5;
    stage.uptime += Duration::from_secs(1);
    stage.round();
    stage.answer_starts();
    stage.list(0, 5, "r-2", T0 + 4 * LOOK_MS);
    stage.list(0, 6, "r-3", T0 + 8 * LOOK_MS);
    stage.click(0, 5, "r-3", T0 + 8 * LOOK_MS);
    stage.round();
    let looked = look(&stage, &mut looks);
    assert_eq!(
        looked.last().map(lists),
        Some(1.0),
        "r-0 and r-1 have left the log"
    );
}

#[test]
fn a_given_up_experiment_has_no_more_looks() {
    let (mut stage, mut looks) = stage();
    stage.own(&[0], [0, 0]);
    stage
        .worker
        .handle(Input::GivenUp(GivenUp::Experiment("ranker".to_owned())));
    stage.list(0, 0, "r-0", T0);
    stage.list(0, 1, "r-1", T0 + 3 * LOOK_MS);
    stage.click(0, 0, "r-1", T0 + 3 * LOOK_MS);
    stage.round();
    assert_eq!(look(&stage, &mut looks).len(), 0);
    stage.pass(1000);
    let reported = stage.telemetry.warnings();
    assert!(
        reported
            .iter()
            .any(|warning| warning.message.contains("limits.max_statistics")),
        "{reported:?}"
    );
}

#[test]
fn a_given_up_window_raises_a_warning_and_looks_continue() {
    let (mut stage, mut looks) = stage();
    stage.own(&[0], [0, 0]);
    let window = GivenUp::Window("ranker".to_owned());
    stage.worker.handle(Input::GivenUp(window));
    stage.list(0, 0, "r-0", T0);
    stage.list(0, 1, "r-1", T0 + 3 * LOOK_MS);
    stage.click(0, 0, "r-1", T0 + 3 * LOOK_MS);
    stage.round();
    assert!(!look(&stage, &mut looks).is_empty());
    stage.pass(1000);
    let reported = stage.telemetry.warnings();
    let is_reported = |what: &str| reported.iter().any(|warning| warning.message.contains(what));
    assert!(
        is_reported("in its window") && is_reported("limits.max_statistics"),
        "{reported:?}"
    );
}

#[test]
fn losing_the_looks_thread_is_fatal() {
    let (mut stage, _) = stage();
    let (_, gone) = mpsc::sync_channel(1);
    stage.news = gone;
    stage.own(&[0], [0, 0]);
    stage.list(0, 0, "r-0", T0);
    stage.round();
    let fatal = stage.worker.fatal().map(|fault| fault.message.as_str());
    assert!(fatal.is_some_and(|why| why.contains("analyses")), "{fatal:?}");
}

/// Reads a list of an arm without items, which is refused.
fn refused_list(stage: &mut Stage, partition: i32, offset: i64, arm: &str) {
    let json = format!(r#"{{"request_id":"r","ts":{T0},"experiments":{{"ranker":"{arm}"}},"items":null}}"#);
    stage.record((Side::Served, partition), offset, T0, &json);
}

fn has_warning(stage: &Stage, text: &str) -> bool {
    let warnings = stage.telemetry.warnings();
    warnings.iter().any(|warning| warning.message.contains(text))
}

#[test]
fn refused_lists_count_in_a_partition_without_an_accepted_list_of_their_arm() {
    let (mut stage, mut looks) = stage();
    stage.own(&[0, 1], [0, 0]);
    stage.list_of(0, 0, "r-0", T0, "b", &["x"]);
    stage.list(0, 1, "r-1", T0);
    refused_list(&mut stage, 1, 0, "b");
    // In the second minute partition 1 knows the arm, which then has another refused list.
    for (n, after_ms) in [(0, 60_000), (1, 120_000), (2, 3 * LOOK_MS)] {
        for partition in [0, 1] {
            let id = format!("{partition}-{n}");
            stage.list(partition, 2 + 2 * n, &id, T0 + after_ms);
            stage.click(partition, n, &id, T0 + after_ms);
        }
        refused_list(&mut stage, 1, 3 + 2 * n, "b");
        stage.round();
    }
    let looked = look(&stage, &mut looks);
    let looked = looked.last().expect("a look is due");
    let (_, report) = looked.experiments["ranker"]
        .comparison
        .as_ref()
        .expect("a control");
    // The last one waits for a slot that is not settled.
    assert_eq!(report.arms["b"].refused, [3.0 / 4.0, 0.0]);
    assert!(!has_warning(&stage, "were refused"));
}

#[test]
fn arms_whose_lists_are_all_refused_raise_a_warning_until_one_is_accepted() {
    let (mut stage, _) = stage();
    stage.own(&[0, 1], [0, 0]);
    stage.list(0, 0, "r-0", T0);
    for offset in 1..4 {
        refused_list(&mut stage, 0, offset, "b");
    }
    refused_list(&mut stage, 1, 0, "b");
    stage.pass(1000);
    let warning = "lists of arm `b` of experiment `ranker`: all 4 were refused";
    assert!(has_warning(&stage, warning), "{:?}", stage.telemetry.warnings());
    stage.list_of(1, 1, "r-1", T0, "b", &["x"]);
    stage.pass(1000);
    assert!(
        !has_warning(&stage, "were refused"),
        "{:?}",
        stage.telemetry.warnings()
    );
    for arm in 0..12 {
        refused_list(&mut stage, 0, 4 + arm, &format!("c{arm:02}"));
    }
    stage.pass(1000);
    assert!(has_warning(&stage, "lists of arm `c09` of"), "the tenth");
    assert!(!has_warning(&stage, "lists of arm `c10` of"));
    assert!(has_warning(&stage, "arms whose lists were all refused: 2 more"));
}
