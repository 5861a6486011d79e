//! Changes to one list or click that can move a value in one direction only.

use abgauge_core::evaluate::Evaluation;
use abgauge_core::metrics::{ApDenominator, Average, Column, NdcgIdeal, Profile, WithoutRelevant};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use crate::metrics_twin::stream::{Case, Click, Event, List, case};
use crate::twin::measured::{profile, ten_with_all_metrics};

/// Returns the columns of two evaluations of the same arms, side by side.
fn pairs<'a>(
    before: &'a Evaluation,
    after: &'a Evaluation,
) -> impl Iterator<Item = (&'a Column, &'a [i128], &'a [i128])> {
    assert!(
        before.total.keys().eq(after.total.keys()),
        "the arms are the same"
    );
    let arms = before.total.values().zip(after.total.values());
    arms.flat_map(|(before_sums, after_sums)| {
        let columns = before.ranking.columns().iter();
        columns.map(move |column| (column, &**before_sums, &**after_sums))
    })
}

fn default() -> Vec<Profile> {
    ten_with_all_metrics()[..1].to_vec()
}

/// Changes the list at this index and its copies, which share its id and time.
fn change_list(case: &Case, index: Index, change: impl Fn(&mut List)) -> Option<Case> {
    let lists = case.events.iter().filter_map(|event| match event {
        Event::List(list) => Some(list),
        Event::Click(_) => None,
    });
    let lists: Vec<&List> = lists.collect();
    let chosen = *lists.get(index.index(lists.len().max(1)))?;
    let key = |list: &List| (list.id, list.at_ms);
    let mut events = case.events.clone();
    for event in &mut events {
        if let Event::List(list) = event
            && key(list) == key(chosen)
        {
            change(list);
        }
    }
    Some(case.with_events(events))
}

proptest! {
    /// The copy is inserted anywhere below the item, or replaces an item that was not clicked.
    #[test]
    fn repeating_an_item_never_raises_a_click_metric_of_default(
        case in case(Just(default())),
        (list, original, place) in any::<(Index, Index, Index)>(),
        replace in any::<bool>(),
    ) {
        let clicked = |id: u8, item: u8| {
            let mut events = case.events.iter();
            events.any(|event| matches!(event, Event::Click(click) if (click.id, click.item) == (id, item)))
        };
        let changed = change_list(&case, list, |list| {
            let Some(original) = (!list.items.is_empty()).then(|| original.index(list.items.len())) else {
                return;
            };
            let item = list.items[original];
            let below = original + 1 + place.index(list.items.len() - original);
            match list.items.get_mut(below) {
                Some(other) if replace && !clicked(list.id, *other) => *other = item,
                _ => list.items.insert(below, item),
            }
        });
        let Some(changed) = changed else { return Ok(()) };
        let (before, after) = (case.evaluate(), changed.evaluate());
        for (column, before_sums, after_sums) in pairs(&before, &after) {
            if !column.metric.counts_clicks {
                continue;
            }
            let (before, after) = (column.value(before_sums), column.value(after_sums));
            prop_assert!(after <= before && after.is_some() == before.is_some(), "{}: {:?}, then {:?}", column.key(), before, after);
        }
    }
}

/// Returns whether another click on a list never lowers the list's numerator: the metric is not divided by |G|, and a list
/// without a click does not score 1.
fn grows_with_clicks(column: &Column, profile: &Profile) -> bool {
    match column.metric.id {
        "hit_rate" | "ctr" | "mrr" | "hits" | "precision" => true,
        "recall" => profile.recall_average == Average::Micro,
        "map" | "map_by_k" | "ndcg" if profile.without_relevant == WithoutRelevant::One => false,
        "map_by_k" => true,
        "map" => matches!(
            profile.ap_denominator,
            ApDenominator::K | ApDenominator::Shown | ApDenominator::None
        ),
        "ndcg" => profile.ndcg_ideal == NdcgIdeal::K,
        _ => false,
    }
}

/// Returns whether an off-list click cannot raise the metric. Its item counts as missed, or not at all. For α-NDCG it changes
/// the greedy ideal.
fn is_not_raised_off_list(column: &Column) -> bool {
    column.metric.id != "alpha_ndcg"
}

/// Adds a click on an item from 0 to 9, which the list may or may not show.
fn with_click(case: &Case, list: Index, item: u8) -> Case {
    let lists: Vec<(u8, i64)> = case
        .events
        .iter()
        .filter_map(|event| match event {
            Event::List(list) => Some((list.id, list.at_ms)),
            Event::Click(_) => None,
        })
        .collect();
    let click = lists.get(list.index(lists.len().max(1))).map(|(id, at_ms)| {
        Event::Click(Click {
            id: *id,
            at_ms: *at_ms,
            item,
            numbers: true,
        })
    });
    case.with_events(case.events.iter().cloned().chain(click).collect())
}

proptest! {
    #[test]
    fn a_further_click_never_lowers_metrics_not_divided_by_relevant_items(
        case in case(vec(profile(), 1..=2)), list in any::<Index>(), item in 0..8_u8
    ) {
        let (before, after) = (case.evaluate(), with_click(&case, list, item).evaluate());
        for (column, before_sums, after_sums) in pairs(&before, &after) {
            let profile = &case.measures.profiles[column.profile];
            let [numerator, later] = [before_sums, after_sums].map(|sums| sums[column.numerator]);
            if grows_with_clicks(column, profile) {
                prop_assert!(later >= numerator, "{} under {:?}", column.key(), profile);
            }
            let [denominator, later] = [before_sums, after_sums].map(|sums| sums[column.denominator]);
            prop_assert!(later >= denominator, "{} under {:?}", column.key(), profile);
        }
    }

    #[test]
    fn a_further_click_never_lowers_hit_ratio_ctr_mrr_precision_and_hits_of_default(
        case in case(Just(default())), list in any::<Index>(), item in 0..8_u8
    ) {
        let (before, after) = (case.evaluate(), with_click(&case, list, item).evaluate());
        for (column, before_sums, after_sums) in pairs(&before, &after) {
            if ["hit_rate", "ctr", "mrr", "precision", "hits"].contains(&column.metric.id) {
                prop_assert!(column.value(after_sums) >= column.value(before_sums), "{}", column.key());
            }
        }
    }

    /// Items 8 and 9 do not occur in the lists that clicks are drawn for.
    #[test]
    fn an_off_list_click_changes_nothing_if_ignored_and_raises_nothing_if_relevant(
        case in case(vec(profile(), 1..=2)), list in any::<Index>(), item in 8..10_u8
    ) {
        let (before, after) = (case.evaluate(), with_click(&case, list, item).evaluate());
        for (column, before_sums, after_sums) in pairs(&before, &after) {
            let profile = &case.measures.profiles[column.profile];
            let [numerator, later] = [before_sums, after_sums].map(|sums| sums[column.numerator]);
            if profile.off_list == abgauge_core::metrics::OffList::Ignore {
                prop_assert_eq!(numerator, later, "{} under {:?}", column.key(), profile);
                prop_assert_eq!(column.value(before_sums), column.value(after_sums), "{} under {:?}", column.key(), profile);
            } else if is_not_raised_off_list(column) {
                prop_assert!(later <= numerator, "{} under {:?}", column.key(), profile);
            }
        }
    }
}
