//! Random conventions: the built-in profiles, and any word of any choice.

use std::num::NonZeroU32;

use abgauge_core::metrics::profile::CHOICES;
use abgauge_core::metrics::{METRICS, Measures, Profile};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{Index, select, subsequence};

/// Returns the ids of all metrics.
pub fn all_metrics() -> Vec<&'static str> {
    METRICS.iter().map(|metric| metric.id).collect()
}

/// Returns the ten built-in profiles with every metric, including those their sources do not have.
pub fn ten_with_all_metrics() -> Vec<Profile> {
    let with_all = |profile| Profile {
        metrics: all_metrics(),
        ..profile
    };
    Profile::all().into_iter().map(with_all).collect()
}

/// Generates a built-in profile, one with every metric, or one with some other choices.
pub fn profile() -> impl Strategy<Value = Profile> {
    let as_it_is = select(Profile::all());
    let with_all = select(ten_with_all_metrics());
    prop_oneof![1 => as_it_is, 1 => with_all, 3 => custom()]
}

fn custom() -> impl Strategy<Value = Profile> {
    let words = vec(option::of(any::<Index>()), CHOICES.len());
    (select(ten_with_all_metrics()), words).prop_map(|(mut profile, chosen)| {
        profile.name = "custom".to_owned();
        for (choice, index) in CHOICES.iter().zip(chosen) {
            if let Some(index) = index {
                let words = (choice.words)();
                assert!((choice.set)(&mut profile, index.get(&words).0));
            }
        }
        profile
    })
}

/// Generates all metrics under `profiles`, at some of these cut-offs.
pub fn measures(
    profiles: impl Strategy<Value = Vec<Profile>>,
    ks: &[u32],
    n_ks: usize,
) -> impl Strategy<Value = Measures> {
    let ks: Vec<NonZeroU32> = ks.iter().filter_map(|k| NonZeroU32::new(*k)).collect();
    let ks = subsequence(ks, 0..=n_ks);
    let alpha = select(vec![0.0, 0.3, 0.5, 1.0]);
    (profiles, ks, alpha, any::<bool>()).prop_map(|(profiles, ks, alpha, catalogue)| Measures {
        profiles,
        metrics: all_metrics(),
        ks,
        alpha,
        catalogue,
    })
}
