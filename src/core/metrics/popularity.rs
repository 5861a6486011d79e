//! Popularity: how well known the items are that an arm shows.
//!
//! popularity@k = mean over lists that show something of the mean share of users who touched the item, over the top k. An
//! item that the catalogue does not contain has share 0. Undefined if the catalogue does not count users. Source:
//! rs_metrics, `popularity`; Abdollahpouri et al., The unfairness of popularity bias in recommendation, 2019 (average
//! recommendation popularity).

use super::{CatalogueData, Metric, MetricUnit, Ratio, Sum, Term, fixed};

pub const POPULARITY: Metric = Metric {
    id: "popularity",
    name: "popularity",
    gauge: "popularity",
    help: "Mean over served lists of the mean popularity in the top k: the share of users who touched an item.",
    meaning: "Mean share of users who touched the items of the top k.",
    unit: MetricUnit::Share,
    is_usual: false,
    needs: Some(CatalogueData::Shares),
    is_additive: true,
    counts_clicks: false,
    is_bounded: |_| true,
    ratio: |_, k| Some(over_shown_lists(Term::Popularity, k)),
};

/// Returns the mean of a term over the lists that show something, clicked or not.
pub(super) fn over_shown_lists(term: Term, k: super::Cut) -> Ratio {
    Ratio {
        numerator: Sum::at(term, k),
        denominator: Sum::at(Term::WithShares, None),
        factor: 1,
    }
}

/// Sets the means of `of` over the top k, for each of `ks`, which ascend and end with the whole list. The mean of an empty
/// list is 0 and is not counted.
pub(super) fn means_of_top<T, const N: usize>(
    items: &[T],
    ks: &[u32],
    of: impl Fn(&T) -> [f64; N],
    means: &mut [[i64; N]],
) {
    let mut sums = [0.0; N];
    let mut of_top = [0; N];
    let mut n = 0;
    for (means, k) in means.iter_mut().zip(ks) {
        let top = items.len().min(*k as usize);
        // A cut-off beyond the end of the list adds nothing, so the sums stay.
        if top > n {
            for item in &items[n..top] {
                sums.iter_mut()
                    .zip(of(item))
                    .for_each(|(sum, value)| *sum += value);
            }
            n = top;
            let n_shown = f64::from(top as i32);
            of_top = sums.map(|sum| fixed(sum / n_shown));
        }
        *means = of_top;
    }
}

/// Returns the mean at each of `ks`, for the metrics' cases.
#[cfg(test)]
pub(super) fn means<T>(items: &[T], ks: &[u32], of: impl Fn(&T) -> f64) -> Vec<i64> {
    let mut means = vec![[-1]; ks.len()];
    means_of_top(items, ks, |item| [of(item)], &mut means);
    means.concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::catalogue::{Catalogue, hash, item};

    #[test]
    fn averages_shares_over_the_items_in_the_top_k() {
        let catalogue = Catalogue::new(vec![item("a", &[], 50), item("b", &[], 100)], 200, None);
        let shown = ["b", "unknown", "a"].map(hash);
        let at = means(&shown, &[1, 2, 3, 10], |item| {
            catalogue.look_up(*item).1.popularity
        });
        assert_eq!(at, [0.5, 0.25, 0.25, 0.25].map(fixed));
        assert_eq!(means(&[0; 0], &[5], |_| 1.0), [0]);
    }
}
