//! Popularity: how well known the items are that an arm shows.
//!
//! popularity@k = mean over lists that show something of the mean share of users who touched the item, over the top
//! k; an item that the catalogue does not know has share 0. Source: rs_metrics, `popularity`; Abdollahpouri et al.,
//! The unfairness of popularity bias in recommendation, 2019 (average recommendation popularity).

use super::{Metric, Ratio, Sum, Term};

pub const POPULARITY: Metric = Metric {
    id: "popularity",
    gauge: "popularity",
    help: "Mean over served lists of the mean share of users who touched the items of the top k.",
    needs_catalogue: true,
    ratio: |_, k| Some(over_shown_lists(Term::Popularity, k)),
};

/// A mean over the lists that show something, whether they were clicked or not.
pub(super) fn over_shown_lists(term: Term, k: super::Cut) -> Ratio {
    Ratio {
        numerator: Sum::at(term, k),
        denominator: Sum::at(Term::NotEmpty, None),
        factor: 1,
    }
}

/// The mean of `of` over the top k; 0 of an empty list, which no mean counts.
pub(super) fn mean_of_top(places: &[u32], k: u32, of: impl Fn(u32) -> f64) -> f64 {
    let top = &places[..places.len().min(k as usize)];
    match top.len() {
        0 => 0.0,
        n => top.iter().map(|place| of(*place)).sum::<f64>() / n as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::catalogue::{Catalogue, UNKNOWN, item};
    use super::*;

    #[test]
    fn averages_shares_over_what_the_top_k_shows() {
        let catalogue = Catalogue::new(vec![item("a", &[], 50), item("b", &[], 100)], 200, None);
        let places = [1, UNKNOWN, 0];
        let at = |k| mean_of_top(&places, k, |place| catalogue.popularity(place));
        assert_eq!([at(1), at(2), at(3), at(10)], [0.5, 0.25, 0.25, 0.25]);
        assert_eq!(mean_of_top(&[], 5, |_| 1.0), 0.0);
    }
}
