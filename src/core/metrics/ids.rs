//! Ids of sums in stored state. An id never changes, whatever else is measured.

use super::list::WHOLE;
use super::term::TermSource;
use super::{NdcgDiscount, Population, Ranking, RecallDenominator, Sum, Term};

impl Term {
    fn id(self, alpha: f64) -> String {
        let (name, choices) = match self {
            Term::Lists(population, off_list) => ("lists", vec![population.word(), off_list.word()]),
            Term::Shown(population, off_list) => ("shown", vec![population.word(), off_list.word()]),
            Term::WithShares => ("with_shares", vec![]),
            Term::Hit => ("hit", vec![]),
            Term::Hits => ("hits", vec![]),
            Term::Precision => ("precision", vec![]),
            Term::Relevant(population, off_list) => ("relevant", vec![population.word(), off_list.word()]),
            Term::Recall(RecallDenominator::Relevant, off_list) => ("recall", vec![off_list.word()]),
            Term::Recall(denominator, off_list) => ("recall", vec![denominator.word(), off_list.word()]),
            Term::AveragePrecision(denominator, off_list, full) => {
                let choices = vec![denominator.word(), off_list.word()];
                ("ap", with_full(choices, full))
            }
            Term::AverageRecall(denominator, off_list) => ("ar", vec![denominator.word(), off_list.word()]),
            Term::ReciprocalRank(ranks) => ("rr", vec![ranks.word()]),
            Term::Ndcg(ideal, discount, off_list, full) => {
                let mut choices = vec![ideal.word(), off_list.word()];
                // The usual discount has no word in its id, and an id must never change.
                if discount != NdcgDiscount::NextRank {
                    choices.push(discount.word());
                }
                ("ndcg", with_full(choices, full))
            }
            Term::AlphaNdcg(off_list) => return format!("alpha_ndcg {alpha} {}", off_list.word()),
            Term::Popularity => ("popularity", vec![]),
            Term::Surprisal => ("surprisal", vec![]),
            Term::Seen => ("seen", vec![]),
            Term::CatalogueSize => ("catalogue_size", vec![]),
        };
        [&[name], &choices[..]].concat().join(" ")
    }

    /// Returns whether the term of the same list differs between catalogues.
    fn depends_on_catalogue(self) -> bool {
        matches!(
            self.source(),
            TermSource::Catalogue | TermSource::ClicksAndCatalogue | TermSource::Window
        )
    }
}

/// Appends the population whose lists without a relevant item score 1.
fn with_full(choices: Vec<&'static str>, full: Option<Population>) -> Vec<&'static str> {
    let full = full.map_or(vec![], |population| vec!["or", "1", "of", population.word()]);
    [choices, full].concat()
}

impl Ranking {
    /// Returns the id of each sum, by column: `ndcg min(k,|G|) ignore @5`. If a sum depends on the catalogue, its id
    /// contains the version.
    pub fn ids(&self, catalogue: Option<u64>) -> Vec<String> {
        let id = |Sum { term, k }: &Sum| {
            let cut = match *k {
                WHOLE => String::new(),
                k => format!(" @{k}"),
            };
            let version = catalogue.filter(|_| term.depends_on_catalogue());
            let version = version.map_or(String::new(), |version| format!(" of {version:016x}"));
            format!("{}{cut}{version}", term.id(self.alpha()))
        };
        self.sums().iter().map(id).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::num::NonZeroU32;

    use super::super::{METRICS, Measures, Profile};
    use super::*;

    /// Ids by which stored sums are found. Lines may be added. If one changes or is removed, its stored sums restart.
    const IDS: &str = include_str!("ids.txt");

    #[test]
    fn ids_of_sums_never_change() {
        let ranking = Ranking::new(&Measures {
            profiles: Profile::all(),
            metrics: METRICS.map(|metric| metric.id).to_vec(),
            ks: vec![NonZeroU32::MIN],
            alpha: 0.5,
            catalogue: true,
        });
        let ids = ranking.ids(Some(0xabc));
        let distinct: BTreeSet<&str> = ids.iter().map(String::as_str).collect();
        assert_eq!(distinct.len(), ranking.width(), "two sums share an id");
        let expected: BTreeSet<&str> = IDS.lines().collect();
        assert_eq!(distinct, expected);
    }
}
