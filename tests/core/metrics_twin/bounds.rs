//! Ranges that values must not leave.

use std::num::NonZeroU32;

use abgauge_core::metrics::{Measures, RecallDenominator};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::metrics_twin::perfect::{clicked_list, perfect};
use crate::metrics_twin::stream::{Case, case, text};
use crate::twin::Items;
use crate::twin::items::Known;
use crate::twin::measured::profile;

proptest! {
    #[test]
    fn bounded_metrics_lie_between_0_and_1(case in case(vec(profile(), 1..=3))) {
        let evaluation = case.evaluate();
        for sums in evaluation.total.values() {
            for column in evaluation.ranking.columns() {
                let profile = &evaluation.ranking.profiles()[column.profile];
                let Some(value) = column.value(sums) else { continue };
                prop_assert!(value >= 0.0, "{} under {:?}: {}", column.key(), profile, value);
                if evaluation.ranking.is_bounded(column) {
                    prop_assert!(value <= 1.0, "{} under {:?}: {}", column.key(), profile, value);
                }
            }
        }
    }

    #[test]
    fn a_longer_cut_never_loses_a_hit(case in case(vec(profile(), 1..=2))) {
        let evaluation = case.evaluate();
        let columns = evaluation.ranking.columns();
        for pair in columns.windows(2) {
            let [shorter, longer] = [&pair[0], &pair[1]];
            let same = (shorter.metric.id, shorter.profile) == (longer.metric.id, longer.profile);
            // A longer cut may contain more relevant items, and then divides by more.
            let profile = &evaluation.ranking.profiles()[longer.profile];
            let is_cut = profile.recall_denominator == RecallDenominator::RelevantInK;
            if !same || (is_cut && longer.metric.id == "recall") || !["hit_rate", "hits", "mrr", "recall", "coverage"].contains(&shorter.metric.id) {
                continue;
            }
            for sums in evaluation.total.values() {
                prop_assert!(shorter.value(sums) <= longer.value(sums), "{} {}", shorter.key(), longer.key());
            }
        }
    }
}

/// With α = 1 an aspect counts once. The greedy ideal takes the item with four aspects first and gains one at rank 2. The
/// other two items cover three each.
#[test]
fn alpha_ndcg_can_exceed_1_because_its_ideal_is_greedy() {
    let known = [
        (1, vec!["a", "b", "e"]),
        (3, vec!["c", "d", "f"]),
        (5, vec!["a", "b", "c", "d"]),
    ];
    let known = known.map(|(item, aspects)| (text(item), Known { aspects, users: 0 }));
    let measures = Measures {
        metrics: vec!["alpha_ndcg"],
        alpha: 1.0,
        catalogue: true,
        ..Measures::usual(&[NonZeroU32::MIN.saturating_add(1)])
    };
    let case = Case {
        events: clicked_list(0, vec![1, 3, 5]),
        items: Items {
            known: known.into(),
            n_users: 1,
        },
        ..perfect(&[], measures)
    };
    let evaluation = case.evaluate();
    let second = 1.0 / 3_f64.log2();
    let value = evaluation
        .value("ranker", "a", "alpha_ndcg@2")
        .expect("there is a list");
    assert!((value - (3.0 + 3.0 * second) / (4.0 + second)).abs() < 1e-9);
    assert!(value > 1.05);
}
