//! Convention profiles: named rows of choices that turn a metric's name into one formula.
//!
//! Libraries disagree about the same name (Tamm, Damdinov and Vasilev, Quality metrics in recommender systems: do we
//! calculate metrics consistently?, RecSys 2021). A profile reproduces the numbers of one of them. It is only data: no
//! formula depends on a profile's name.

/// Declares the values of one choice: the word in the configuration, and its meaning.
macro_rules! choices {
    ($(#[$doc:meta])* $name:ident { $($value:ident = $word:literal: $meaning:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name { $(#[doc = $meaning] $value,)+ }

        impl $name {
            pub const ALL: &'static [(&'static str, $name, &'static str)] =
                &[$(($word, $name::$value, $meaning),)+];

            /// Returns the word in the configuration.
            pub fn word(self) -> &'static str {
                match self { $($name::$value => $word,)+ }
            }
        }
    };
}

choices! {
    /// Lists that a mean is taken over.
    Population {
        All = "all": "all lists; one without a click scores 0",
        Clicked = "clicked": "lists with a relevant item (|G| ≥ 1)",
        ClickedWithList = "clicked_with_list": "non-empty lists with a relevant item (|G| ≥ 1, L ≥ 1)",
        WithList = "with_list": "non-empty lists (L ≥ 1), with or without a click",
    }
}
choices! {
    /// Relevance of a clicked item that its list does not show.
    OffList {
        Ignore = "ignore": "a click on an item outside the list counts as telemetry only",
        Relevant = "relevant": "a clicked item outside the list is in G, and is missed",
    }
}
choices! {
    /// Way in which the lists of an arm become one number.
    Average {
        Macro = "macro": "mean over lists",
        Micro = "micro": "ratio of sums over lists",
    }
}
choices! {
    /// Divisor of the hits in precision.
    PrecisionDenominator {
        K = "k": "k, even if the list is shorter",
        Shown = "min(k,L)": "the items shown in the top k",
    }
}
choices! {
    /// Divisor of the hits in recall.
    RecallDenominator {
        Relevant = "|G|": "the relevant items",
        RelevantInK = "min(k,|G|)": "the relevant items that fit into the top k",
    }
}
choices! {
    /// Divisor of the sum in average precision.
    ApDenominator {
        K = "k": "k",
        Shown = "min(k,L)": "the items shown in the top k",
        Relevant = "|G|": "the relevant items",
        RelevantInK = "min(k,|G|)": "the relevant items that fit into the top k",
        RelevantShown = "min(k,L,|G|)": "the relevant items that fit into the shown top k",
        Hits = "hits": "the hits in the top k",
        None = "none": "no divisor: the sum of precisions at the hits",
    }
}
choices! {
    /// NDCG and average precision of a list without a relevant item, if its population has such lists.
    WithoutRelevant {
        Zero = "0": "0, as if everything were missed",
        One = "1": "1, because nothing can be missed",
    }
}
choices! {
    /// Divisor of the sum in average recall.
    ArDenominator {
        K = "k": "k",
        Shown = "min(k,L)": "the items shown in the top k",
    }
}
choices! {
    /// Clicked ranks that count in reciprocal rank.
    ReciprocalRank {
        First = "first": "1 ÷ the first clicked rank",
        Sum = "sum": "the sum of 1 ÷ rank over all clicked ranks; can exceed 1",
    }
}
choices! {
    /// Divisor of a hit at a rank in NDCG.
    NdcgDiscount {
        NextRank = "log2(r+1)": "log2 of the next rank",
        Rank = "max(1,log2(r))": "log2 of the rank, and 1 at rank 1: rank 2 is not discounted",
    }
}
choices! {
    /// Length of the ideal list that NDCG compares with.
    NdcgIdeal {
        RelevantInK = "min(k,|G|)": "the relevant items that fit into the top k",
        RelevantShown = "min(k,L,|G|)": "the relevant items that fit into the shown top k",
        Relevant = "|G|": "all relevant items",
        K = "k": "k relevant items, even if fewer exist",
    }
}
choices! {
    /// Cut-offs at which AP, RR and NDCG are measured.
    Truncation {
        AtK = "@k": "at each k, and over the whole list",
        None = "none": "over the whole list only, reported without @k",
    }
}

/// Row of choices.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    pub name: String,
    /// Library or paper whose numbers these are.
    pub source: String,
    /// Ids of the metrics that the source reports.
    pub metrics: Vec<&'static str>,
    pub population: Population,
    pub precision_population: Population,
    pub recall_population: Population,
    pub map_population: Population,
    pub off_list: OffList,
    pub precision_average: Average,
    pub precision_denominator: PrecisionDenominator,
    pub recall_average: Average,
    pub recall_denominator: RecallDenominator,
    pub ap_denominator: ApDenominator,
    pub ap_truncation: Truncation,
    pub without_relevant: WithoutRelevant,
    pub ar_denominator: ArDenominator,
    pub reciprocal_rank: ReciprocalRank,
    pub rr_truncation: Truncation,
    pub ndcg_discount: NdcgDiscount,
    pub ndcg_ideal: NdcgIdeal,
    pub ndcg_truncation: Truncation,
    /// Notes on numbers that may surprise a reader.
    pub note: &'static str,
}

/// Former names of some profiles, with their current names. A former name is still accepted, and is shown as it was
/// written.
pub const OLD_NAMES: [(&str, &str); 5] = [
    ("seed-0", "summed"),
    ("seed-2", "uncut"),
    ("seed-4", "ap_over_k"),
    ("rs_metrics", "rs_metrics_0.3.0"),
    ("replay", "replay_dicts"),
];

/// Name of the profile that applies if none is named.
pub const DEFAULT: &str = "default";

impl Profile {
    /// Returns the built-in profile of this name, which may be a [former one](OLD_NAMES).
    pub fn named(name: &str) -> Option<Profile> {
        let mut all = Profile::all().into_iter().chain(Profile::all_by_old_names());
        all.find(|profile| profile.name == name)
    }

    /// Returns the renamed profiles under their [former names](OLD_NAMES).
    pub fn all_by_old_names() -> Vec<Profile> {
        let all = Profile::all();
        let by_old_name = |(old, name): (&str, &str)| {
            let mut profiles = all.iter();
            let profile = profiles.find(|profile| profile.name == name)?;
            Some(Profile {
                name: old.to_owned(),
                ..profile.clone()
            })
        };
        OLD_NAMES.into_iter().filter_map(by_old_name).collect()
    }

    /// Returns whether the profile is named by its [former name](OLD_NAMES).
    pub fn has_old_name(&self) -> bool {
        OLD_NAMES.iter().any(|(old, _)| *old == self.name)
    }

    /// Explains a [former name](OLD_NAMES): the profile that it means, and its variants. `None` if the name is current.
    pub fn explain_old_name(&self) -> Option<String> {
        let (old, name) = OLD_NAMES.into_iter().find(|(old, _)| *old == self.name)?;
        let mut text = format!("{old} is the former name of the profile {name} ({})", self.source);
        for other in Profile::all() {
            let variant = other.name.strip_prefix(old).filter(|rest| rest.starts_with('_'));
            if variant.is_some() && other.name != name {
                text.push_str(&format!(
                    "; {} ({}) gives other numbers",
                    other.name, other.source
                ));
            }
        }
        Some(text)
    }

    /// Returns the population whose lists without a relevant item score 1 in NDCG and average precision. `None` if they
    /// score 0, or if the population has no such lists.
    pub(super) fn full_without_relevant(&self, population: Population) -> Option<Population> {
        let has_them = matches!(population, Population::All | Population::WithList);
        (has_them && self.without_relevant == WithoutRelevant::One).then_some(population)
    }
}

/// Choice that a profile makes, for tables and the configuration.
pub struct Choice {
    /// Setting in `[profile.NAME]`.
    pub setting: &'static str,
    /// Question that the choice answers.
    pub about: &'static str,
    /// Returns a profile's word for this choice.
    pub word: fn(&Profile) -> &'static str,
    /// Sets the choice by its word. Returns false if the word does not exist.
    pub set: fn(&mut Profile, &str) -> bool,
    /// Returns all words with their meanings.
    pub words: fn() -> Vec<(&'static str, &'static str)>,
}

macro_rules! choice {
    ($field:ident: $type:ident, $about:literal) => {
        Choice {
            setting: stringify!($field),
            about: $about,
            word: |profile| profile.$field.word(),
            set: |profile, word| {
                let known = $type::ALL.iter().find(|(name, ..)| *name == word);
                known.map(|(_, value, _)| profile.$field = *value).is_some()
            },
            words: || {
                $type::ALL
                    .iter()
                    .map(|(word, _, meaning)| (*word, *meaning))
                    .collect()
            },
        }
    };
}

/// Choices in the order of the table.
pub const CHOICES: [Choice; 18] = [
    choice!(population: Population, "lists in the mean"),
    choice!(precision_population: Population, "the same for precision"),
    choice!(recall_population: Population, "the same for recall"),
    choice!(map_population: Population, "the same for MAP"),
    choice!(off_list: OffList, "effect of a click on an item outside its list"),
    choice!(precision_average: Average, "how precision is averaged"),
    choice!(precision_denominator: PrecisionDenominator, "divisor of the hits in precision"),
    choice!(recall_average: Average, "how recall is averaged"),
    choice!(recall_denominator: RecallDenominator, "divisor of the hits in recall"),
    choice!(ap_denominator: ApDenominator, "divisor of the sum in average precision"),
    choice!(ap_truncation: Truncation, "cut-offs of MAP"),
    choice!(without_relevant: WithoutRelevant, "NDCG and AP of a list without a relevant item, if such lists are in the mean"),
    choice!(ar_denominator: ArDenominator, "divisor of the sum in average recall"),
    choice!(reciprocal_rank: ReciprocalRank, "clicked ranks that MRR counts"),
    choice!(rr_truncation: Truncation, "cut-offs of MRR"),
    choice!(ndcg_discount: NdcgDiscount, "divisor of a hit at rank r in NDCG"),
    choice!(ndcg_ideal: NdcgIdeal, "number of hits at the top of NDCG's ideal list"),
    choice!(ndcg_truncation: Truncation, "cut-offs of NDCG"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_of_every_choice_round_trips() {
        let mut profile = Profile::named(DEFAULT).expect("it is there");
        for choice in CHOICES {
            for (word, _) in (choice.words)() {
                assert!((choice.set)(&mut profile, word), "{} = {word}", choice.setting);
                assert_eq!((choice.word)(&profile), word, "{}", choice.setting);
            }
            assert!(!(choice.set)(&mut profile, "nonsense"));
        }
    }

    #[test]
    fn former_names_are_explained() {
        let explained = |name: &str| Profile::named(name).expect("it is there").explain_old_name();
        for (name, text) in [
            (
                "rs_metrics",
                "rs_metrics is the former name of the profile rs_metrics_0.3.0 (rs_metrics 0.3.0); rs_metrics_0.6.0 (rs_metrics 0.6.0) \
                 gives other numbers",
            ),
            (
                "replay",
                "replay is the former name of the profile replay_dicts (RePlay 0.22.0); replay_tables (RePlay 0.22.0) gives other numbers",
            ),
            (
                "seed-0",
                "seed-0 is the former name of the profile summed (ranking-metrics notebook)",
            ),
        ] {
            assert_eq!(explained(name).as_deref(), Some(text));
        }
        for profile in Profile::all() {
            assert_eq!(profile.explain_old_name(), None, "{}", profile.name);
        }
    }

    #[test]
    fn profiles_have_unique_names_and_existing_metrics() {
        let all = Profile::all();
        for (index, profile) in all.iter().enumerate() {
            assert!(all[..index].iter().all(|other| other.name != profile.name));
            for id in &profile.metrics {
                assert!(
                    super::super::METRICS.iter().any(|metric| metric.id == *id),
                    "{id}"
                );
            }
        }
        assert_eq!(all[0].name, DEFAULT);
    }
}
