//! Hit ratio: the share of lists with at least one clicked item in the top k.
//!
//! hit ratio@k = mean over lists of [H_k ≥ 1]. In a profile over all lists, a list without a click scores 0. Source:
//! Deshpande and Karypis, Item-based top-N recommendation algorithms, ACM TOIS 22(1), 2004.

use super::{Metric, MetricUnit, Ratio, Term};

pub const HIT_RATE: Metric = Metric {
    id: "hit_rate",
    name: "hit ratio",
    gauge: "hit_ratio",
    help: "Share of served lists with at least one clicked item in the top k.",
    meaning: "Share of lists with at least one clicked item in the top k.",
    unit: MetricUnit::Share,
    is_usual: true,
    needs: None,
    is_additive: true,
    counts_clicks: true,
    is_bounded: |_| true,
    ratio: |profile, k| Some(Ratio::mean(Term::Hit, k, profile.population, profile)),
};

#[cfg(test)]
mod tests {
    use super::super::worked::{CLICKED_AT_2_AND_5, EMPTY, term};
    use super::*;

    #[test]
    fn a_list_is_a_hit_from_its_first_clicked_rank_on() {
        let hit = |k| term(Term::Hit, &CLICKED_AT_2_AND_5, k);
        assert_eq!([hit(1), hit(2), hit(5), hit(u32::MAX)], [0, 1, 1, 1]);
    }

    #[test]
    fn an_empty_list_misses() {
        assert_eq!(term(Term::Hit, &EMPTY, 10), 0);
    }
}
