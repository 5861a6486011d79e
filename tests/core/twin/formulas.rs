//! Contributions of one list to the numerator and denominator of a metric, straight from the formulas.

use std::collections::{BTreeMap, BTreeSet};

use abgauge_core::metrics::Profile;
use abgauge_core::metrics::profile::CHOICES;

use super::Items;

/// Choices of a profile: setting → word.
#[derive(Debug, Clone)]
pub struct Convention(BTreeMap<&'static str, &'static str>);

impl Convention {
    pub fn of(profile: &Profile) -> Convention {
        let choices = CHOICES.iter();
        Convention(
            choices
                .map(|choice| (choice.setting, (choice.word)(profile)))
                .collect(),
        )
    }

    pub fn says(&self, setting: &str) -> &'static str {
        self.0[setting]
    }
}

/// A list, its clicks, and its off-list clicks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Outcome {
    /// Items in rank order, including copies.
    pub items: Vec<String>,
    pub clicked: BTreeSet<String>,
    /// Clicked items that the list does not show, as far as they are remembered.
    pub off_list: BTreeSet<String>,
}

impl Outcome {
    /// Returns the relevant items G.
    fn relevant(&self, convention: &Convention) -> BTreeSet<&str> {
        let mut relevant: BTreeSet<&str> = self.clicked.iter().map(String::as_str).collect();
        if convention.says("off_list") == "relevant" {
            relevant.extend(self.off_list.iter().map(String::as_str));
        }
        relevant
    }

    /// Returns the ranks up to k with a relevant item, ascending from 1. A repeated item counts at its first rank.
    fn ranks(&self, k: usize) -> Vec<usize> {
        let first = |item| self.items.iter().position(|shown| shown == item);
        let clicked = self.clicked.iter().filter_map(first);
        let mut ranks: Vec<usize> = clicked.map(|above| above + 1).filter(|rank| *rank <= k).collect();
        ranks.sort_unstable();
        ranks
    }

    fn is_in(&self, population: &str, convention: &Convention) -> bool {
        let is_clicked = !self.relevant(convention).is_empty();
        match population {
            "all" => true,
            "clicked" => is_clicked,
            "with_list" => !self.items.is_empty(),
            "clicked_with_list" => is_clicked && !self.items.is_empty(),
            other => panic!("there is no population {other}"),
        }
    }
}

/// Returns a list's contributions to the numerator and the denominator of a metric. If all lists divide by the same k, it is
/// counted as a mean over lists.
pub fn parts(
    metric: &str,
    k: Option<u32>,
    convention: &Convention,
    list: &Outcome,
    items: Option<&Items>,
    alpha: f64,
) -> (f64, f64) {
    let length = list.items.len();
    let cut = k.map_or(length, |k| k as usize);
    let top = Top {
        list,
        convention,
        at_k: k.is_some(),
        cut,
        shown: length.min(cut),
        ranks: list.ranks(cut),
        n_relevant: list.relevant(convention).len(),
    };
    let known = || items.unwrap_or_else(|| panic!("{metric} needs a catalogue"));
    match metric {
        "hit_rate" => top.mean("population", if top.ranks.is_empty() { 0.0 } else { 1.0 }),
        "hits" => top.mean("population", top.hits()),
        "ctr" => (top.hits(), top.shown as f64),
        "mrr" => top.mean("population", top.reciprocal_rank()),
        "ndcg" => top.mean("population", top.ndcg()),
        "precision" => top.precision(),
        "recall" => top.recall(),
        "map" => top.mean(
            "map_population",
            top.average_precision(convention.says("ap_denominator")),
        ),
        "map_by_k" => top.mean("map_population", top.average_precision("k")),
        "mar" => top.mean("population", top.average_recall()),
        "alpha_ndcg" => top.mean("population", top.alpha_ndcg(known(), alpha)),
        "popularity" => top.mean_of_items(|item| known().share(item)),
        "surprisal" => top.mean_of_items(|item| known().surprisal(item)),
        // Coverage counts distinct items over all lists, so single lists do not contribute.
        "coverage" => (0.0, 0.0),
        other => panic!("there is no metric {other}"),
    }
}

/// The top k of one list under one convention.
struct Top<'a> {
    list: &'a Outcome,
    convention: &'a Convention,
    /// Set at a cut-off. Otherwise this is the whole list, and k is its length.
    at_k: bool,
    /// Value of k.
    cut: usize,
    /// Number of shown items, min(k, L).
    shown: usize,
    /// Relevant ranks up to k.
    ranks: Vec<usize>,
    /// Number of relevant items |G|.
    n_relevant: usize,
}

impl Top<'_> {
    fn hits(&self) -> f64 {
        self.ranks.len() as f64
    }

    /// Returns the value with a count of 1 if the list is in the population that a choice names, else zeros.
    fn mean(&self, choice: &str, value: f64) -> (f64, f64) {
        match self.list.is_in(self.convention.says(choice), self.convention) {
            true => (value, 1.0),
            false => (0.0, 0.0),
        }
    }

    /// Returns both sums if the list is in the population, else zeros.
    fn ratio(&self, choice: &str, above: f64, below: usize) -> (f64, f64) {
        let (_, list) = self.mean(choice, 0.0);
        (above * list, below as f64 * list)
    }

    fn precision(&self) -> (f64, f64) {
        let says = |choice| self.convention.says(choice);
        let by_shown = says("precision_denominator") == "min(k,L)" || !self.at_k;
        match (says("precision_average"), by_shown) {
            ("micro", true) => self.ratio("precision_population", self.hits(), self.shown),
            (_, true) => self.mean("precision_population", over(self.hits(), self.shown)),
            (_, false) => self.mean("precision_population", over(self.hits(), self.cut)),
        }
    }

    fn recall(&self) -> (f64, f64) {
        let divisor = match self.convention.says("recall_denominator") {
            "min(k,|G|)" if self.at_k => self.n_relevant.min(self.cut),
            _ => self.n_relevant,
        };
        match self.convention.says("recall_average") {
            "micro" => self.ratio("recall_population", self.hits(), divisor),
            _ => self.mean("recall_population", over(self.hits(), divisor)),
        }
    }

    /// Returns whether nothing is relevant and this counts as perfect.
    fn has_nothing_to_miss(&self) -> bool {
        self.n_relevant == 0 && self.convention.says("without_relevant") == "1"
    }

    fn average_precision(&self, denominator: &str) -> f64 {
        if self.has_nothing_to_miss() {
            return 1.0;
        }
        let precisions = (1..)
            .zip(&self.ranks)
            .map(|(hits, rank)| over(hits as f64, *rank));
        let divisor = match denominator {
            "k" => self.cut,
            "min(k,L)" => self.shown,
            "|G|" => self.n_relevant,
            "min(k,|G|)" => self.n_relevant.min(self.cut),
            "min(k,L,|G|)" => self.n_relevant.min(self.shown),
            "hits" => self.ranks.len(),
            "none" => 1,
            other => panic!("AP is not divided by {other}"),
        };
        over(precisions.sum(), divisor)
    }

    fn average_recall(&self) -> f64 {
        let recalls = (1..=self.ranks.len()).map(|hits| over(hits as f64, self.n_relevant));
        let divisor = match self.convention.says("ar_denominator") {
            "k" => self.cut,
            "min(k,L)" => self.shown,
            other => panic!("AR is not divided by {other}"),
        };
        over(recalls.sum(), divisor)
    }

    fn reciprocal_rank(&self) -> f64 {
        let mut reciprocals = self.ranks.iter().map(|rank| 1.0 / *rank as f64);
        match self.convention.says("reciprocal_rank") {
            "first" => reciprocals.next().unwrap_or(0.0),
            "sum" => reciprocals.sum(),
            other => panic!("there is no reciprocal rank {other}"),
        }
    }

    fn ndcg(&self) -> f64 {
        if self.has_nothing_to_miss() {
            return 1.0;
        }
        let discount: fn(usize) -> f64 = match self.convention.says("ndcg_discount") {
            "log2(r+1)" => discount,
            "max(1,log2(r))" => |rank| 1.0 / (rank as f64).log2().max(1.0),
            other => panic!("NDCG is not discounted by {other}"),
        };
        let n_ideal = match self.convention.says("ndcg_ideal") {
            "min(k,|G|)" if self.at_k => self.n_relevant.min(self.cut),
            // This is what ranx and trec_eval do without a cut-off.
            "min(k,|G|)" => self.n_relevant,
            "min(k,L,|G|)" => self.n_relevant.min(self.shown),
            "|G|" => self.n_relevant,
            "k" => self.cut,
            other => panic!("there is no ideal length {other}"),
        };
        let ideal: f64 = (1..=n_ideal).map(discount).sum();
        let gain: f64 = self.ranks.iter().map(|rank| discount(*rank)).sum();
        if ideal > 0.0 { gain / ideal } else { 0.0 }
    }

    fn alpha_ndcg(&self, items: &Items, alpha: f64) -> f64 {
        let item = |rank: usize| self.list.items[rank - 1].as_str();
        let clicked = self.ranks.iter().map(|rank| (*rank, item(*rank)));
        let ideal = greedy(self.list.relevant(self.convention), items, alpha);
        let ideal = alpha_dcg((1..).zip(ideal.into_iter().take(self.cut)), items, alpha);
        let gain = alpha_dcg(clicked, items, alpha);
        if ideal > 0.0 { gain / ideal } else { 0.0 }
    }

    /// Returns the mean over the shown items, or zeros if the list shows none.
    fn mean_of_items(&self, of: impl Fn(&str) -> f64) -> (f64, f64) {
        let top = &self.list.items[..self.shown];
        match top.len() {
            0 => (0.0, 0.0),
            n => (top.iter().map(|item| of(item)).sum::<f64>() / n as f64, 1.0),
        }
    }
}

/// Divides, or returns 0 if the denominator is 0.
fn over(numerator: f64, denominator: usize) -> f64 {
    match denominator {
        0 => 0.0,
        n => numerator / n as f64,
    }
}

fn discount(rank: usize) -> f64 {
    1.0 / (rank as f64 + 1.0).log2()
}

fn alpha_dcg<'a>(ranked: impl Iterator<Item = (usize, &'a str)>, items: &Items, alpha: f64) -> f64 {
    let mut above = Vec::new();
    let mut sum = 0.0;
    for (rank, item) in ranked {
        sum += gain(item, &above, items, alpha) * discount(rank);
        above.push(item);
    }
    sum
}

/// Tolerance for equal gains, which rounding may separate.
const ALIKE: f64 = 1e-9;

/// Orders the relevant items that are in the catalogue: each is the one with the largest next gain. If gains are equal, the
/// larger id in byte order comes first.
pub fn greedy<'a>(relevant: BTreeSet<&'a str>, items: &Items, alpha: f64) -> Vec<&'a str> {
    let mut left: Vec<&str> = relevant.into_iter().filter(|item| items.lists(item)).collect();
    let mut ordered = Vec::new();
    while !left.is_empty() {
        let gains: Vec<f64> = left
            .iter()
            .map(|item| gain(item, &ordered, items, alpha))
            .collect();
        let most = gains.iter().copied().fold(0.0, f64::max);
        let alike = (0..left.len()).filter(|place| gains[*place] > most - ALIKE);
        // The candidates come from a set, so they are in byte order.
        let best = alike.max().expect("something is left");
        ordered.push(left.remove(best));
    }
    ordered
}

/// Returns the sum over the aspects of an item of (1 − α)^(items above with the aspect).
fn gain(item: &str, above: &[&str], items: &Items, alpha: f64) -> f64 {
    let of_aspect = |aspect: &&str| {
        let n = above.iter().filter(|other| items.has(other, aspect)).count();
        (1.0 - alpha).powi(n as i32)
    };
    items.aspects(item).iter().map(of_aspect).sum()
}
