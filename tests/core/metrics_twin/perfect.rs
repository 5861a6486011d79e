//! Lists whose items are all clicked, without off-list clicks: the score of perfection under each choice.

use abgauge_core::metrics::{
    ApDenominator, Column, Measures, NdcgIdeal, Profile, RecallDenominator, ReciprocalRank,
};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::metrics_twin::stream::{Case, Click, Event, List, Rules, text};
use crate::twin::Items;
use crate::twin::items::{Known, items};
use crate::twin::measured::{measures, profile};

/// Returns whether a column scores 1 for a perfect list of this length, which is at least k.
///
/// At a cut-off k the top k has k hits of `length` relevant items.
fn scores_1(column: &Column, profile: &Profile, length: usize) -> bool {
    let cut = column.k.map_or(length, |k| k.get() as usize);
    let (has_all, has_one) = (cut == length, cut == 1);
    match column.metric.id {
        "hit_rate" | "ctr" | "precision" => true,
        "recall" => has_all || profile.recall_denominator == RecallDenominator::RelevantInK,
        // The value is 1 + 1/2 + … + 1/k if all hits count.
        "mrr" => profile.reciprocal_rank == ReciprocalRank::First || has_one,
        "map_by_k" => true,
        // The precisions at the hits are all 1, so their sum is k.
        "map" => match profile.ap_denominator {
            ApDenominator::K
            | ApDenominator::Shown
            | ApDenominator::RelevantInK
            | ApDenominator::RelevantShown
            | ApDenominator::Hits => true,
            ApDenominator::Relevant => has_all,
            ApDenominator::None => has_one,
        },
        // The recalls at the hits are 1/L, 2/L, … k/L. Their mean is 1 only for one item.
        "mar" => length == 1,
        "ndcg" => match profile.ndcg_ideal {
            NdcgIdeal::RelevantInK | NdcgIdeal::RelevantShown | NdcgIdeal::K => true,
            NdcgIdeal::Relevant => has_all,
        },
        "hits" => has_one,
        // Every item has its own aspect, so any order of them is greedy.
        "alpha_ndcg" => true,
        other => panic!("{other} is not about clicks"),
    }
}

/// Returns a case with lists of these lengths whose items are all clicked.
pub fn perfect(lengths: &[usize], measures: Measures) -> Case {
    let lists = (0..).zip(lengths).flat_map(|(id, length)| {
        let items: Vec<u8> = (0..*length as u8).collect();
        clicked_list(id, items)
    });
    // The lists have no more items than there are names of aspects.
    let aspects = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let known = (0..).zip(aspects).map(|(item, aspect)| {
        let aspects = vec![aspect];
        (text(item), Known { aspects, users: 1 })
    });
    Case {
        events: lists.collect(),
        rules: Rules {
            attribution_ms: 1000,
            click_skew_ms: 0,
            same_list_ms: 1000,
            slot_ms: 1000,
        },
        measures,
        items: Items {
            known: known.collect(),
            n_users: 2,
        },
        span_ms: None,
    }
}

/// Returns a list and a click on each of its items.
pub fn clicked_list(id: u8, items: Vec<u8>) -> Vec<Event> {
    let clicks = items.iter().map(|item| {
        Event::Click(Click {
            id,
            at_ms: 1,
            item: *item,
            numbers: false,
        })
    });
    let clicks: Vec<Event> = clicks.collect();
    let list = Event::List(List {
        id,
        at_ms: 0,
        items,
        arms: vec![("ranker", "a")],
        numbers: false,
    });
    [vec![list], clicks].concat()
}

proptest! {
    #[test]
    fn a_perfect_list_scores_1_exactly_if_the_profile_implies_it(
        lengths in vec(1..=8_usize, 1..4),
        measures in measures(vec(profile(), 1..=3), &[1, 2, 3, 5, 8], 3),
    ) {
        let measures = Measures { catalogue: true, ..measures };
        let evaluation = perfect(&lengths, measures).evaluate();
        let sums = evaluation.total.values().next().expect("there is an arm");
        for column in evaluation.ranking.columns() {
            let is_longer = |length: &usize| column.k.is_none_or(|k| *length >= k.get() as usize);
            if !column.metric.counts_clicks || !lengths.iter().all(is_longer) {
                continue;
            }
            let profile = &evaluation.ranking.profiles()[column.profile];
            let expected = lengths.iter().all(|length| scores_1(column, profile, *length));
            let value = column.value(sums).expect("every population has these lists");
            prop_assert_eq!(value == 1.0, expected, "{} of {:?} under {:?}: {}", column.key(), lengths, profile, value);
        }
    }

    /// This holds for any aspects and any α.
    #[test]
    fn a_list_in_greedy_order_scores_an_alpha_ndcg_of_1(
        items in items((0..8_u8).map(text).collect()),
        measures in measures(vec(profile(), 1..=1), &[1, 2, 3, 5], 2),
    ) {
        let chosen = items.known.keys().map(String::as_str).collect();
        let order = crate::twin::formulas::greedy(chosen, &items, measures.alpha);
        let number = |name: &str| (0..8_u8).find(|n| text(*n) == name).expect("one of the eight");
        let any_aspect = order.iter().any(|item| !items.aspects(item).is_empty());
        let events = clicked_list(0, order.iter().map(|name| number(name)).collect());
        let measures = Measures { catalogue: true, ..measures };
        let case = Case { items, ..perfect(&[], measures).with_events(events) };
        let evaluation = case.evaluate();
        let sums = evaluation.total.values().next().expect("there is an arm");
        for column in evaluation.ranking.columns().iter().filter(|column| column.metric.id == "alpha_ndcg") {
            prop_assert_eq!(column.value(sums), Some(if any_aspect { 1.0 } else { 0.0 }), "{}", column.key());
        }
    }
}
