//! Hits: the mean number of clicked items in the top k.
//!
//! hits@k = mean over lists of H_k. Source: ranx (Bassani, ECIR 2022), `hits`.

use super::{Metric, MetricUnit, Ratio, Term};

pub const HITS: Metric = Metric {
    id: "hits",
    name: "hits",
    gauge: "hits",
    help: "Mean number of clicked items in the top k of a served list.",
    meaning: "Mean number of clicked items in the top k.",
    unit: MetricUnit::Items,
    is_usual: false,
    needs: None,
    is_additive: true,
    counts_clicks: true,
    is_bounded: |_| false,
    ratio: |profile, k| Some(Ratio::mean(Term::Hits, k, profile.population, profile)),
};

#[cfg(test)]
mod tests {
    use super::super::worked::{CLICKED_AT_2_AND_5, term};
    use super::*;

    #[test]
    fn counts_clicked_items_up_to_k() {
        let hits = |k| term(Term::Hits, &CLICKED_AT_2_AND_5, k);
        assert_eq!([hits(1), hits(2), hits(4), hits(5), hits(99)], [0, 1, 1, 2, 2]);
    }
}
