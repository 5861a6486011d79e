//! The fixed-point sums against exact integers: bounds on their error.

use abgauge_core::evaluate::Evaluation;
use abgauge_core::metrics::{
    ApDenominator, ArDenominator, FIXED_ONE, Measures, Population, Profile, RecallDenominator,
    ReciprocalRank, SumUnit, WithoutRelevant,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use crate::metrics_twin::cases_of;
use crate::metrics_twin::stream::{Case, Click, Event, List, Rules};
use crate::twin::Items;
use crate::twin::measured::ten_with_all_metrics;

/// Least common multiple of 1 to 12. Ranks, k, lengths and |G| of lists with 12 items divide it.
const ALL: i128 = 27_720;
/// Common denominator of the rational terms of such lists, which are quotients of quotients.
const PARTS: i128 = ALL * ALL;

/// A list of `length` items with clicks on these ranks, from 1, and `n_off_list` off-list clicks.
#[derive(Debug, Clone)]
struct Clicked {
    length: usize,
    ranks: Vec<usize>,
    n_off_list: usize,
}

fn clicked() -> impl Strategy<Value = Clicked> {
    (0..=10_usize, vec(any::<bool>(), 10), 0..=2_usize).prop_map(|(length, clicked, n_off_list)| Clicked {
        length,
        ranks: (1..=length).filter(|rank| clicked[rank - 1]).collect(),
        n_off_list,
    })
}

/// Returns a case with one arm that serves these lists.
fn case(lists: &[Clicked], measures: Measures) -> Case {
    let events = lists.iter().enumerate().flat_map(|(id, list)| {
        // Lists with equal ids are in different slots.
        let (id, at_ms) = ((id % 200) as u8, (id / 200) as i64 * 10_000);
        let items = (1..=list.length as u8).collect();
        let off_list = (0..list.n_off_list).map(|n| 200 + n as u8);
        let clicks = list
            .ranks
            .iter()
            .map(|rank| *rank as u8)
            .chain(off_list)
            .map(move |item| {
                Event::Click(Click {
                    id,
                    at_ms,
                    item,
                    numbers: false,
                })
            });
        let served = Event::List(List {
            id,
            at_ms,
            items,
            arms: vec![("ranker", "a")],
            numbers: false,
        });
        [served].into_iter().chain(clicks).collect::<Vec<_>>()
    });
    Case {
        events: events.collect(),
        rules: Rules {
            attribution_ms: 1000,
            click_skew_ms: 0,
            same_list_ms: 1000,
            slot_ms: 1000,
        },
        measures,
        items: Items {
            known: Default::default(),
            n_users: 1,
        },
        span_ms: None,
    }
}

/// Returns the exact term of a list in units of 1/[`PARTS`], or `None` if it is irrational.
fn exact_term(metric: &str, k: Option<u32>, profile: &Profile, list: &Clicked) -> Option<i128> {
    let cut = k.map_or(list.length, |k| k as usize);
    let shown = cut.min(list.length) as i128;
    let hits: Vec<i128> = list
        .ranks
        .iter()
        .filter(|rank| **rank <= cut)
        .map(|rank| *rank as i128)
        .collect();
    let cut = cut as i128;
    let n_relevant = (list.ranks.len() + off_list(profile, list)) as i128;
    let divided = |sum: i128, by: i128| if by == 0 { 0 } else { sum / by };
    let misses_nothing = n_relevant == 0 && profile.without_relevant == WithoutRelevant::One;
    let population_has_it = match profile.map_population {
        Population::All => true,
        Population::WithList => list.length > 0,
        Population::Clicked | Population::ClickedWithList => false,
    };
    Some(match metric {
        "map" | "map_by_k" if misses_nothing => PARTS * i128::from(population_has_it),
        "mrr" => match profile.reciprocal_rank {
            ReciprocalRank::First => hits.first().map_or(0, |rank| PARTS / rank),
            ReciprocalRank::Sum => hits.iter().map(|rank| PARTS / rank).sum(),
        },
        "precision" => divided(PARTS * hits.len() as i128, shown),
        "recall" => {
            let by = match (profile.recall_denominator, k) {
                (RecallDenominator::RelevantInK, Some(_)) => n_relevant.min(cut),
                _ => n_relevant,
            };
            divided(PARTS * hits.len() as i128, by)
        }
        "map" | "map_by_k" => {
            let sum = (1..).zip(&hits).map(|(n, rank)| PARTS * n / rank).sum();
            let by = match profile.ap_denominator {
                _ if metric == "map_by_k" => cut,
                ApDenominator::K => cut,
                ApDenominator::Shown => shown,
                ApDenominator::Relevant => n_relevant,
                ApDenominator::RelevantInK => n_relevant.min(cut),
                ApDenominator::RelevantShown => n_relevant.min(shown),
                ApDenominator::Hits => hits.len() as i128,
                ApDenominator::None => 1,
            };
            divided(sum, by)
        }
        "mar" => {
            let sum = (1..=hits.len() as i128)
                .map(|n| divided(PARTS * n, n_relevant))
                .sum();
            let by = match profile.ar_denominator {
                ArDenominator::K => cut,
                ArDenominator::Shown => shown,
            };
            divided(sum, by)
        }
        _ => return None,
    })
}

fn off_list(profile: &Profile, list: &Clicked) -> usize {
    match profile.off_list {
        abgauge_core::metrics::OffList::Relevant => list.n_off_list,
        abgauge_core::metrics::OffList::Ignore => 0,
    }
}

fn sums(evaluation: &Evaluation) -> &[i128] {
    let mut arms = evaluation.total.values();
    arms.next().expect("there is an arm")
}

proptest! {
    #![proptest_config(cases_of(96))]

    /// The error |sum − true sum|, computed in integers, is at most half a unit of the fixed point per list that contributes.
    /// So the error of a mean is at most 2^-33 for any number of lists.
    #[test]
    fn sums_are_off_by_at_most_half_a_unit_per_list(
        lists in vec(clicked(), 1..24),
        profile in select(ten_with_all_metrics()),
        ks in select(vec![vec![1, 3], vec![5, 12]]),
    ) {
        let ks: Vec<_> = ks.into_iter().filter_map(std::num::NonZeroU32::new).collect();
        let measures = Measures { profiles: vec![profile.clone()], metrics: crate::twin::measured::all_metrics(), ..Measures::usual(&ks) };
        let evaluation = case(&lists, measures).evaluate();
        let sums = sums(&evaluation);
        let mut n_checked = 0;
        for column in evaluation.ranking.columns().iter().filter(|column| column.unit == SumUnit::Fixed) {
            let k = column.k.map(|k| k.get());
            let exact: Option<Vec<i128>> =
                lists.iter().map(|list| exact_term(column.metric.id, k, &profile, list)).collect();
            let Some(exact) = exact else { continue };
            let n_terms = exact.iter().filter(|term| **term != 0).count() as i128;
            let off = sums[column.numerator] * PARTS - exact.iter().sum::<i128>() * i128::from(FIXED_ONE);
            prop_assert!(2 * off.abs() <= n_terms * PARTS, "{}: off by {}/{} units", column.key(), off, PARTS);
            n_checked += 1;
        }
        prop_assert!(n_checked >= 3);
    }
}

/// 2^33 + 1 is a multiple of 683, so 2^32 ÷ 683 is 1/1366 away from the middle between two integers. The error of a mean of
/// reciprocal ranks 1/683 is therefore 682/683 of 2^-33, the documented bound. The bound is tight, and more lists do not
/// increase the error.
#[test]
fn the_documented_error_bound_is_tight() {
    let rank = 683_i128;
    assert_eq!(((1_i128 << 33) + 1) % rank, 0);
    for n_lists in [1, 100] {
        let list = |id: usize| {
            let items: Vec<String> = (1..=rank).map(|item| format!("\"i{item}\"")).collect();
            let items = items.join(",");
            format!(
                "{{\"type\":\"served\",\"request_id\":{id},\"ts\":1763596800000,\"experiments\":{{\"e\":\"a\"}},\"items\":[{items}]}}\n\
                 {{\"type\":\"click\",\"request_id\":{id},\"ts\":1763596800000,\"item\":\"i{rank}\"}}\n"
            )
        };
        let mut evaluator =
            abgauge_core::evaluate::Evaluator::new(&abgauge_core::evaluate::Options::default());
        let lines: String = (0..n_lists).map(list).collect();
        evaluator
            .read("events", lines.as_bytes())
            .expect("memory can be read");
        let evaluation = evaluator.finish();
        let mut columns = evaluation.ranking.columns().iter();
        let mrr = columns
            .find(|column| column.key() == "mrr")
            .expect("it is measured");
        let sums = sums(&evaluation);
        let lists = mrr.denominator(sums);
        assert_eq!(lists, n_lists as i128);
        // mean − 1/683 in units of 2^-33 ÷ 683.
        let off = 2 * (sums[mrr.numerator] * rank - lists * i128::from(FIXED_ONE));
        assert_eq!(off.abs(), lists * (rank - 1));
    }
}
