//! Popularity: how well known the items are that an arm shows.
//!
//! popularity@k = mean over lists that show something of the mean share of users who touched the item, over the top
//! k; an item that the catalogue does not know has share 0. Undefined where the catalogue tells no users. Source: rs_metrics, `popularity`; Abdollahpouri et al.,
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
        denominator: Sum::at(Term::WithShares, None),
        factor: 1,
    }
}

/// The mean of `of` over the top k at each of `ks`, ascending; 0 of an empty list, which no mean counts.
pub(super) fn means_of_top(
    places: &[u32],
    ks: &[u32],
    of: impl Fn(u32) -> f64,
    mut mean: impl FnMut(usize, f64),
) {
    let mut sum = 0.0;
    let mut n = 0;
    for (index, k) in ks.iter().enumerate() {
        let top = places.len().min(*k as usize);
        for place in &places[n..top] {
            sum += of(*place);
        }
        n = top;
        mean(index, if n == 0 { 0.0 } else { sum / n as f64 });
    }
}

/// The means at each of `ks`, for the metrics' cases.
#[cfg(test)]
pub(super) fn means(places: &[u32], ks: &[u32], of: impl Fn(u32) -> f64) -> Vec<f64> {
    let mut means = Vec::new();
    means_of_top(places, ks, of, |_, mean| means.push(mean));
    means
}

#[cfg(test)]
mod tests {
    use super::super::super::catalogue::{Catalogue, UNKNOWN, item};
    use super::*;

    #[test]
    fn averages_shares_over_what_the_top_k_shows() {
        let catalogue = Catalogue::new(vec![item("a", &[], 50), item("b", &[], 100)], 200, None);
        let places = [1, UNKNOWN, 0];
        let at = means(&places, &[1, 2, 3, 10], |place| catalogue.popularity(place));
        assert_eq!(at, [0.5, 0.25, 0.25, 0.25]);
        assert_eq!(means(&[], &[5], |_| 1.0), [0.0]);
    }
}
