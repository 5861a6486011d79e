//! Surprisal: how unexpected the items are that an arm shows, in bits.
//!
//! surprisal@k = mean over lists that show something of the mean of −log2(share of users who touched the item), over the
//! top k. It is log2(number of users) for an item that no user touched or that the catalogue does not contain. Source: Zhou
//! et al., Solving the apparent diversity-accuracy dilemma of recommender systems, PNAS 107(10), 2010; rs_metrics.

use super::popularity::over_shown_lists;
use super::{CatalogueData, Metric, MetricUnit, Term};

pub const SURPRISAL: Metric = Metric {
    id: "surprisal",
    name: "surprisal",
    gauge: "surprisal",
    help: "Mean over served lists of the mean surprisal of the items of the top k, in bits.",
    meaning: "Mean surprisal of the items of the top k: the fewer users touched an item, the more bits.",
    unit: MetricUnit::Bits,
    is_usual: false,
    needs: Some(CatalogueData::Shares),
    is_additive: true,
    counts_clicks: false,
    is_bounded: |_| false,
    ratio: |_, k| Some(over_shown_lists(Term::Surprisal, k)),
};

#[cfg(test)]
mod tests {
    use super::super::fixed;
    use super::super::popularity::means;
    use crate::metrics::catalogue::{Catalogue, hash, item};

    #[test]
    fn surprisal_is_measured_in_bits() {
        let catalogue = Catalogue::new(vec![item("a", &[], 16), item("b", &[], 128)], 256, None);
        let shown = ["a", "b", "unknown"].map(hash);
        let at = means(&shown, &[1, 2, 3], |item| catalogue.look_up(*item).1.surprisal);
        assert_eq!(at, [4.0, 2.5, 13.0 / 3.0].map(fixed));
    }
}
