//! Built-in profiles: one row for each source.

use super::profile::DEFAULT;
use super::{
    ApDenominator, ArDenominator, Average, NdcgDiscount, NdcgIdeal, OffList, Population,
    PrecisionDenominator, Profile, RecallDenominator, ReciprocalRank, Truncation, WithoutRelevant,
};

impl Profile {
    /// Returns the row that all others start from.
    fn base(name: &str, source: &str, metrics: &[&'static str]) -> Profile {
        Profile {
            name: name.to_owned(),
            source: source.to_owned(),
            metrics: metrics.to_vec(),
            population: Population::Clicked,
            precision_population: Population::Clicked,
            recall_population: Population::Clicked,
            map_population: Population::Clicked,
            off_list: OffList::Relevant,
            precision_average: Average::Macro,
            precision_denominator: PrecisionDenominator::K,
            recall_average: Average::Macro,
            recall_denominator: RecallDenominator::Relevant,
            ap_denominator: ApDenominator::Relevant,
            ap_truncation: Truncation::AtK,
            without_relevant: WithoutRelevant::Zero,
            ar_denominator: ArDenominator::Shown,
            reciprocal_rank: ReciprocalRank::First,
            rr_truncation: Truncation::AtK,
            ndcg_discount: NdcgDiscount::NextRank,
            ndcg_ideal: NdcgIdeal::RelevantInK,
            ndcg_truncation: Truncation::AtK,
            note: "",
        }
    }

    /// Takes the means of every metric over the same lists.
    fn over(self, population: Population) -> Profile {
        Profile {
            population,
            precision_population: population,
            recall_population: population,
            map_population: population,
            ..self
        }
    }

    fn over_all(self) -> Profile {
        self.over(Population::All)
    }

    /// Returns all built-in profiles, `default` first.
    pub fn all() -> Vec<Profile> {
        let base = Profile::base;
        let of_all: Vec<&'static str> = super::METRICS.iter().map(|metric| metric.id).collect();
        vec![
            Profile {
                recall_population: Population::Clicked,
                off_list: OffList::Ignore,
                ap_denominator: ApDenominator::RelevantInK,
                note: "recall is a mean over the lists with a click: over all lists it would measure how many there are",
                ..base(DEFAULT, "abgauge", &of_all).over_all()
            },
            Profile {
                precision_average: Average::Micro,
                recall_average: Average::Micro,
                ap_denominator: ApDenominator::None,
                reciprocal_rank: ReciprocalRank::Sum,
                ..base(
                    "summed",
                    "ranking-metrics notebook",
                    &["hit_rate", "mrr", "precision", "recall", "map"],
                )
                .over_all()
            },
            Profile {
                precision_denominator: PrecisionDenominator::Shown,
                note: "precision is NaN in the source if a list is empty; α-NDCG is ndeval's, with the greedy ideal, and not the \
                       source's own; the source's own raises an error with NumPy 2",
                ..base(
                    "rs_metrics_0.6.0",
                    "rs_metrics 0.6.0",
                    &[
                        "hit_rate",
                        "mrr",
                        "precision",
                        "recall",
                        "map",
                        "ndcg",
                        "alpha_ndcg",
                        "coverage",
                        "popularity",
                        "surprisal",
                    ],
                )
            },
            Profile {
                precision_denominator: PrecisionDenominator::Shown,
                ap_denominator: ApDenominator::Shown,
                ndcg_ideal: NdcgIdeal::RelevantShown,
                note: "the list is cut at k before anything else, so the ideal list is no longer than what is shown; \
                       α-NDCG is ndeval's, with the greedy ideal, and not the source's own",
                ..base(
                    "rs_metrics_0.3.0",
                    "rs_metrics 0.3.0",
                    &[
                        "hit_rate",
                        "mrr",
                        "precision",
                        "recall",
                        "map",
                        "mar",
                        "ndcg",
                        "alpha_ndcg",
                        "coverage",
                        "popularity",
                        "surprisal",
                    ],
                )
            },
            Profile {
                ap_truncation: Truncation::None,
                rr_truncation: Truncation::None,
                ndcg_ideal: NdcgIdeal::Relevant,
                ndcg_truncation: Truncation::None,
                ..base(
                    "uncut",
                    "ranking-evaluation notebook",
                    &["mrr", "precision", "recall", "map", "ndcg", "hits"],
                )
            },
            Profile {
                precision_population: Population::ClickedWithList,
                map_population: Population::ClickedWithList,
                precision_denominator: PrecisionDenominator::Shown,
                ap_denominator: ApDenominator::RelevantInK,
                ndcg_ideal: NdcgIdeal::Relevant,
                note: "NDCG's ideal list is not cut at k, so that a perfect top k scores below 1 where |G| > k; CTR is equal if the \
                       source's truth has a row for every shown pair: it joins both tables",
                ..base(
                    "jurity",
                    "Jurity 2.1.0",
                    &["ctr", "precision", "recall", "map", "ndcg"],
                )
            },
            Profile {
                ap_denominator: ApDenominator::K,
                ..base(
                    "ap_over_k",
                    "course notebook",
                    &["hit_rate", "mrr", "precision", "recall", "map", "ndcg"],
                )
            },
            Profile {
                ap_denominator: ApDenominator::RelevantInK,
                note: "the source averages over the users of the truth: with tables, those with a row in it",
                ..base(
                    "replay_tables",
                    "RePlay 0.22.0",
                    &["hit_rate", "mrr", "precision", "recall", "map", "ndcg"],
                )
            },
            Profile {
                ap_denominator: ApDenominator::RelevantInK,
                note: "the source averages over the users of the truth: with dicts, also those with an empty list in it",
                ..base(
                    "replay_dicts",
                    "RePlay 0.22.0",
                    &["hit_rate", "mrr", "precision", "recall", "map", "ndcg"],
                )
                .over_all()
            },
            Profile {
                ndcg_ideal: NdcgIdeal::K,
                note: "NDCG's ideal list has k relevant items even where fewer exist, so that a perfect list may score below 1",
                ..base(
                    "rectools",
                    "RecTools 0.19.0",
                    &[
                        "hit_rate",
                        "mrr",
                        "precision",
                        "recall",
                        "map",
                        "map_by_k",
                        "ndcg",
                    ],
                )
            },
            base(
                "ranx",
                "ranx 0.3.21",
                &["hit_rate", "mrr", "precision", "recall", "map", "ndcg", "hits"],
            ),
            Profile {
                rr_truncation: Truncation::None,
                ..base(
                    "trec_eval",
                    "pytrec_eval-terrier 0.5.11",
                    &["hit_rate", "mrr", "precision", "recall", "map", "ndcg"],
                )
            },
            Profile {
                precision_population: Population::ClickedWithList,
                recall_population: Population::ClickedWithList,
                map_population: Population::ClickedWithList,
                note: "MAP is the source's `map`; its `map_at_k` divides by min(k,|G|)",
                ..base(
                    "recommenders",
                    "recommenders 1.2.1",
                    &["precision", "recall", "map", "ndcg"],
                )
            },
            Profile {
                off_list: OffList::Ignore,
                ap_denominator: ApDenominator::Hits,
                note: "the source is given scores above 0: it takes relevant items with others for irrelevant, except in \
                       NDCG and the hit rate",
                ..base(
                    "torchmetrics",
                    "torchmetrics 1.9.0",
                    &["hit_rate", "mrr", "precision", "recall", "map", "ndcg"],
                )
                .over(Population::WithList)
            },
            Profile {
                off_list: OffList::Ignore,
                ap_denominator: ApDenominator::RelevantInK,
                without_relevant: WithoutRelevant::One,
                ..base("lightgbm", "lightgbm 4.7.0", &["map", "ndcg"]).over(Population::WithList)
            },
            Profile {
                off_list: OffList::Ignore,
                precision_denominator: PrecisionDenominator::Shown,
                ap_denominator: ApDenominator::RelevantInK,
                without_relevant: WithoutRelevant::One,
                note: "a name such as `ndcg@5-` makes the source count a list without a relevant item as 0",
                ..base("xgboost", "xgboost 3.4.1", &["precision", "map", "ndcg"]).over(Population::WithList)
            },
            Profile {
                precision_population: Population::WithList,
                map_population: Population::ClickedWithList,
                precision_denominator: PrecisionDenominator::Shown,
                recall_denominator: RecallDenominator::RelevantInK,
                ap_denominator: ApDenominator::RelevantShown,
                ndcg_discount: NdcgDiscount::Rank,
                note: "average precision raises an error in the source if a list has no relevant item",
                ..base(
                    "lenskit",
                    "lenskit 2026.4.0",
                    &["hit_rate", "mrr", "precision", "recall", "map", "ndcg"],
                )
            },
        ]
    }
}
