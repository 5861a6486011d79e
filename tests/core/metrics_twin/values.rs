//! Each value equals a recount, for any order of lines and any other metrics; parts add up.

use std::collections::BTreeMap;

use abgauge_core::engine::Arm;
use abgauge_core::evaluate::{Evaluation, TotalsByArm};
use abgauge_core::metrics::{Column, Measures, Profile};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use crate::metrics_twin::cases_of;
use crate::metrics_twin::recount::{Joined, assert_close, join, of_arm, seen, value};
use crate::metrics_twin::stream::{Case, Event, case};
use crate::twin::measured::{profile, ten_with_all_metrics};

fn check_all(totals: &TotalsByArm, evaluation: &Evaluation, lists: &[Joined], case: &Case) {
    let columns = evaluation.ranking.columns();
    for (arm, sums) in totals {
        let lists = of_arm(lists, arm, &case.items);
        for column in columns {
            let expected = value(&lists, column, &case.measures, &case.items);
            assert_close(column.value(sums), expected, || {
                let profile = &case.measures.profiles[column.profile];
                format!("{} of {arm:?} under {profile:?}", column.key())
            });
        }
    }
}

proptest! {
    #[test]
    fn every_value_equals_a_recount(case in case(vec(profile(), 1..=2))) {
        let evaluation = case.evaluate();
        let lists = join(&case);
        let mut arms: Vec<_> = lists.iter().flat_map(|list| list.arms.clone()).collect();
        arms.sort_unstable();
        arms.dedup();
        let counted: Vec<_> = evaluation.total.keys().map(|arm| (&*arm.experiment, &*arm.arm)).collect();
        prop_assert_eq!(counted, arms);
        check_all(&evaluation.total, &evaluation, &lists, &case);
        let span_ms = case.span_ms.expect("it is asked for");
        for (begin_ms, totals) in &evaluation.spans {
            let begin_ms = begin_ms - crate::metrics_twin::stream::T0;
            let inside = |at_ms: i64| at_ms.div_euclid(span_ms) * span_ms == begin_ms;
            let lists: Vec<_> = lists.iter().filter(|list| inside(list.at_ms)).cloned().collect();
            check_all(totals, &evaluation, &lists, &case);
        }
    }
}

proptest! {
    #[test]
    fn the_order_of_lines_changes_no_bit(
        (case, shuffled) in case(vec(profile(), 1..=2)).prop_flat_map(|case| {
            let shuffled = Just(case.events.clone()).prop_shuffle();
            (Just(case), shuffled)
        })
    ) {
        let evaluation = case.evaluate();
        let other = case.with_events(shuffled).evaluate();
        prop_assert_eq!(&evaluation.total, &other.total);
        prop_assert_eq!(&evaluation.spans, &other.spans);
        for (sums, other_sums) in evaluation.total.values().zip(other.total.values()) {
            for (column, other_column) in evaluation.ranking.columns().iter().zip(other.ranking.columns()) {
                let bits = column.value(sums).map(f64::to_bits);
                prop_assert_eq!(bits, other_column.value(other_sums).map(f64::to_bits), "{}", column.key());
            }
        }
    }

    #[test]
    fn the_tallies_of_two_halves_add_to_the_whole(case in case(vec(profile(), 1..=2)), cut in 0..=5_u8) {
        let (first, second): (Vec<Event>, Vec<Event>) =
            case.events.iter().cloned().partition(|event| event.id() < cut);
        let whole = case.evaluate();
        let halves = [first, second].map(|events| case.with_events(events).evaluate());
        check_halves(&whole, &halves, &case);
    }

    /// The lists of a span count like those of a separate file.
    #[test]
    fn the_tallies_of_spans_add_to_the_whole(case in case(vec(profile(), 1..=2))) {
        let whole = case.evaluate();
        let distinct = coverage_columns(&whole);
        let mut added: BTreeMap<&Arm, Vec<i128>> = BTreeMap::new();
        for (arm, sums) in whole.spans.values().flatten() {
            let total = added.entry(arm).or_insert_with(|| vec![0; sums.len()]);
            total.iter_mut().zip(sums).for_each(|(total, sum)| *total += sum);
        }
        prop_assert!(added.keys().copied().eq(whole.total.keys()));
        for (added, total) in added.values().zip(whole.total.values()) {
            for place in (0..total.len()).filter(|place| !distinct.contains(place)) {
                prop_assert_eq!(added[place], total[place], "sum {}", place);
            }
        }
    }
}

/// Returns the positions in a tally that count distinct items, which do not add up.
fn coverage_columns(evaluation: &Evaluation) -> Vec<usize> {
    let columns = evaluation.ranking.coverage().into_iter();
    columns
        .flat_map(|columns| columns.seen.clone().chain([columns.size]))
        .collect()
}

fn check_halves(whole: &Evaluation, halves: &[Evaluation; 2], case: &Case) {
    let distinct = coverage_columns(whole);
    let lists = join(case);
    for (arm, total) in &whole.total {
        let parts: Vec<&[i128]> = halves
            .iter()
            .filter_map(|half| Some(&**half.total.get(arm)?))
            .collect();
        for place in (0..total.len()).filter(|place| !distinct.contains(place)) {
            let added: i128 = parts.iter().map(|sums| sums[place]).sum();
            assert_eq!(added, total[place], "sum {place} of {arm:?}");
        }
        let Some(columns) = whole.ranking.coverage() else {
            continue;
        };
        for (place, k) in columns.seen.clone().zip(&columns.ks) {
            let of_both = parts.iter().map(|sums| sums[place]);
            let (most, sum) = (of_both.clone().max().unwrap_or(0), of_both.sum());
            assert!((most..=sum).contains(&total[place]), "coverage of a union");
            let union = seen(&of_arm(&lists, arm, &case.items), Some(*k), &case.items);
            assert_eq!(total[place], union as i128, "coverage@{k} of {arm:?}");
        }
    }
    let names = halves.iter().flat_map(|half| half.total.keys());
    assert!(names.into_iter().all(|arm| whole.total.contains_key(arm)));
}

/// Numerator, denominator, and the bits of the value.
type Shown = (i128, i128, Option<u64>);

fn shown(evaluation: &Evaluation, column: &Column) -> Vec<Shown> {
    let of_arm = |sums: &[i128]| {
        let value = column.value(sums).map(f64::to_bits);
        (sums[column.numerator], column.denominator(sums), value)
    };
    evaluation.total.values().map(|sums| of_arm(sums)).collect()
}

/// Checks that all columns of `part` occur in `whole` with the same numbers. Its profiles start at `first`.
fn check_company(whole: &Evaluation, part: &Evaluation, first: usize) {
    for column in part.ranking.columns() {
        let same = |other: &&Column| {
            other.profile == first + column.profile
                && other.metric.id == column.metric.id
                && other.k == column.k
        };
        let other = whole.ranking.columns().iter().find(same);
        let other = other.unwrap_or_else(|| panic!("{} is missing in company", column.key()));
        assert_eq!(shown(part, column), shown(whole, other), "{}", column.key());
    }
}

proptest! {
    #![proptest_config(cases_of(48))]

    #[test]
    fn columns_do_not_depend_on_other_columns(
        case in case(vec(profile(), 2..=3)),
        (metric, k) in any::<(Index, Index)>()
    ) {
        let whole = case.evaluate();
        let measures = &case.measures;
        let n_columns = whole.ranking.columns().len();
        let mut n_alone = 0;
        for (index, profile) in measures.profiles.iter().enumerate() {
            let alone = Measures { profiles: vec![profile.clone()], ..measures.clone() };
            let part = case.with_measures(alone.clone()).evaluate();
            n_alone += part.ranking.columns().len();
            check_company(&whole, &part, index);

            let one_metric = Measures { metrics: vec![*metric.get(&measures.metrics)], ..alone };
            let one_k = Measures {
                ks: measures.ks.get(k.index(measures.ks.len() + 1)).copied().into_iter().collect(),
                ..one_metric
            };
            check_company(&whole, &case.with_measures(one_k).evaluate(), index);
        }
        prop_assert_eq!(n_alone, n_columns);
    }
}

/// This is the case of `--convention` given ten times.
#[test]
fn ten_profiles_together_equal_each_alone() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    let ten: Vec<Profile> = ten_with_all_metrics();
    let mut runner = TestRunner::deterministic();
    let strategy = case(Just(ten.clone()));
    for _ in 0..3 {
        let mut case = strategy.new_tree(&mut runner).expect("a case").current();
        case.measures.catalogue = true;
        let whole = case.evaluate();
        check_all(&whole.total, &whole, &join(&case), &case);
        for (index, profile) in ten.iter().enumerate() {
            let measures = Measures {
                profiles: vec![profile.clone()],
                ..case.measures.clone()
            };
            check_company(&whole, &case.with_measures(measures).evaluate(), index);
        }
    }
}
