//! α-NDCG: NDCG in which an aspect counts less each time it is shown again.
//!
//! α-DCG@k = Σ_{r≤k} h(r) · Σ_a rel(r,a)·(1−α)^c(a,r) ÷ log2(r+1), where c(a,r) is the number of relevant items with aspect
//! a above rank r. The ideal is the greedy ordering of the relevant items that the catalogue contains; a tie goes to the id
//! that is larger in byte order. The value is 0 if no relevant item has a known aspect. Over the whole list, k is L.
//! Source: Clarke et al., Novelty and diversity in information retrieval evaluation, SIGIR 2008; ndeval computes the same
//! with off-list clicks relevant and a clicked population. Greedy is not always best, so a value can exceed 1.

use super::list::ListOutcome;
use super::list::WHOLE;
use super::ndcg::Discounts;
use super::{CatalogueData, Metric, MetricUnit, OffList, Ratio, Term};
use crate::metrics::catalogue::{Catalogue, UNKNOWN};

pub const ALPHA_NDCG: Metric = Metric {
    id: "alpha_ndcg",
    name: "α-NDCG",
    gauge: "alpha_ndcg",
    help: "Mean over served lists of alpha-NDCG in the top k: an aspect counts less each time it is shown again.",
    meaning: "NDCG in which an aspect counts less each time the list shows it again.",
    unit: MetricUnit::Score,
    is_usual: false,
    needs: Some(CatalogueData::Aspects),
    is_additive: true,
    counts_clicks: true,
    is_bounded: |_| false,
    ratio: |profile, k| {
        let term = Term::AlphaNdcg(profile.off_list);
        Some(Ratio::mean(term, k, profile.population, profile))
    },
};

/// Bound below which two gains are equal: adding the same powers in another order changes the last bit.
const ALIKE: f64 = 1e-12;

/// Relevant items of one list.
#[derive(Debug, Default, Clone)]
pub struct Relevant {
    /// L: positions of the list.
    pub n_items: u32,
    /// Clicked ranks ascending, counted from 1, each with its item's place in the catalogue.
    pub shown: Vec<(u32, u32)>,
    /// Places of clicked items that the list does not show.
    pub off_list: Vec<u32>,
}

impl Relevant {
    /// Sets the relevant items of a list with this outcome. `places` belong to its items; `off_list` are hashes of
    /// clicked items that it does not show.
    pub fn set(&mut self, list: &ListOutcome, places: &[u32], off_list: &[u64], catalogue: &Catalogue) {
        self.n_items = list.n_items;
        self.shown.clear();
        let ranks = list.ranks(u32::MAX);
        self.shown
            .extend(ranks.map(|rank| (rank, places[rank as usize - 1])));
        self.off_list.clear();
        self.off_list
            .extend(off_list.iter().map(|item| catalogue.place(*item)));
    }

    /// Returns whether relevant items are missing from the list.
    fn has_off_list(&self, off_list: OffList) -> bool {
        off_list == OffList::Relevant && !self.off_list.is_empty()
    }
}

/// Returns the α-NDCG of a list with one relevant item, the usual case of a clicked list. It computes in the same order as
/// the general case, so the bits are equal.
fn alone((rank, place): (u32, u32), catalogue: &Catalogue, discounts: &Discounts) -> f64 {
    // Each aspect is shown for the first time, so it gains 1.
    let gain = catalogue.aspects(place).len() as f64;
    let ideal = gain * discounts.of(1);
    if ideal > 0.0 {
        gain * discounts.of(rank) / ideal
    } else {
        0.0
    }
}

/// Computation of α-NDCG with buffers that are reused.
#[derive(Debug, Clone)]
pub struct AlphaNdcg {
    /// Powers (1−α)^n, as far as they were needed.
    powers: Vec<f64>,
    /// Number of relevant items above that have the aspect, by aspect.
    above: Vec<u32>,
    /// Aspects of the relevant items above.
    touched: Vec<u32>,
    left: Vec<u32>,
    /// α-DCG at each k.
    gains: Vec<f64>,
    /// α-DCG of the first n items of the greedy ordering, starting with n = 0.
    ideals: Vec<f64>,
}

impl AlphaNdcg {
    /// Makes buffers for an `alpha` from 0 to 1: the part that an aspect loses each time it is shown again.
    pub fn new(alpha: f64) -> AlphaNdcg {
        AlphaNdcg {
            powers: vec![1.0, 1.0 - alpha],
            above: Vec::new(),
            touched: Vec::new(),
            left: Vec::new(),
            gains: Vec::new(),
            ideals: Vec::new(),
        }
    }

    /// Computes α-NDCG at each of `ks`, which ascend.
    pub fn at(
        &mut self,
        ks: &[u32],
        relevant: &Relevant,
        off_list: OffList,
        catalogue: &Catalogue,
        discounts: &Discounts,
        mut value: impl FnMut(usize, f64),
    ) {
        if let ([shown], true) = (&relevant.shown[..], !relevant.has_off_list(off_list)) {
            let alone = alone(*shown, catalogue, discounts);
            for (index, k) in ks.iter().enumerate() {
                value(index, if *k < shown.0 { 0.0 } else { alone });
            }
            return;
        }
        let cut = |k: u32| if k == WHOLE { relevant.n_items } else { k } as usize;
        let longest = ks.iter().map(|k| cut(*k)).max().unwrap_or(0);
        self.work_out_gains(ks, relevant, catalogue, discounts);
        self.work_out_ideals(longest, relevant, off_list, catalogue, discounts);
        for (index, (k, gain)) in ks.iter().zip(&self.gains).enumerate() {
            // With fewer relevant items than k, the ideal stops growing.
            let ideal = self.ideals[cut(*k).min(self.ideals.len() - 1)];
            value(index, if ideal > 0.0 { gain / ideal } else { 0.0 });
        }
    }

    fn work_out_gains(
        &mut self,
        ks: &[u32],
        relevant: &Relevant,
        catalogue: &Catalogue,
        discounts: &Discounts,
    ) {
        self.forget(catalogue);
        self.gains.clear();
        let mut sum = 0.0;
        // Ranks and cut-offs ascend, so one pass serves all cut-offs.
        let mut shown = relevant.shown.iter().peekable();
        for k in ks {
            while let Some((rank, place)) = shown.next_if(|(rank, _)| rank <= k) {
                sum += self.gain(*place, catalogue) * discounts.of(*rank);
                self.show(*place, catalogue);
            }
            self.gains.push(sum);
        }
    }

    /// Computes the ideals of the greedy ordering, for up to `longest` items.
    fn work_out_ideals(
        &mut self,
        longest: usize,
        relevant: &Relevant,
        off_list: OffList,
        catalogue: &Catalogue,
        discounts: &Discounts,
    ) {
        self.forget(catalogue);
        let mut left = std::mem::take(&mut self.left);
        left.clear();
        left.extend(relevant.shown.iter().map(|(_, place)| *place));
        if relevant.has_off_list(off_list) {
            left.extend_from_slice(&relevant.off_list);
        }
        // The ideal has only items of the catalogue.
        left.retain(|place| *place != UNKNOWN);
        self.ideals.clear();
        let mut sum = 0.0;
        self.ideals.push(sum);
        while self.ideals.len() <= longest && !left.is_empty() {
            let best = self.best(&left, catalogue);
            // The order of the others does not matter, because ties are decided by id.
            let place = left.swap_remove(best);
            sum += self.gain(place, catalogue) * discounts.of(self.ideals.len() as u32);
            self.show(place, catalogue);
            self.ideals.push(sum);
        }
        self.left = left;
    }

    /// Returns the index of the item with the largest next gain. Of items that gain [alike](ALIKE) the largest id wins.
    fn best(&self, left: &[u32], catalogue: &Catalogue) -> usize {
        let mut best = 0;
        let mut best_gain = self.gain(left[0], catalogue);
        for (index, place) in left.iter().enumerate().skip(1) {
            let gain = self.gain(*place, catalogue);
            let wins_tie =
                || gain > best_gain - ALIKE && catalogue.order(*place) > catalogue.order(left[best]);
            if gain > best_gain + ALIKE || wins_tie() {
                (best, best_gain) = (index, gain);
            }
        }
        best
    }

    fn gain(&self, place: u32, catalogue: &Catalogue) -> f64 {
        let aspects = catalogue.aspects(place).iter();
        aspects
            .map(|aspect| self.powers[self.above[*aspect as usize] as usize])
            .sum()
    }

    fn show(&mut self, place: u32, catalogue: &Catalogue) {
        for aspect in catalogue.aspects(place) {
            let above = &mut self.above[*aspect as usize];
            if *above == 0 {
                self.touched.push(*aspect);
            }
            *above += 1;
            // The highest count grows by one at a time, so one more power is always enough.
            if *above as usize == self.powers.len() {
                self.powers
                    .push(self.powers[self.powers.len() - 1] * self.powers[1]);
            }
        }
    }

    fn forget(&mut self, catalogue: &Catalogue) {
        // Resets only what this list touched, since a catalogue may have many aspects.
        for aspect in self.touched.drain(..) {
            self.above[aspect as usize] = 0;
        }
        if self.above.len() < catalogue.n_aspects() {
            self.above.resize(catalogue.n_aspects(), 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::catalogue::{hash, item};

    /// Returns α-NDCG of a list of two items.
    fn at(ks: &[u32], shown: &[(u32, &str)], off_list: &[&str]) -> Vec<f64> {
        let catalogue = Catalogue::new(
            vec![
                item("both", &["x", "y"], 0),
                item("x1", &["x"], 0),
                item("x2", &["x"], 0),
                item("none", &[], 0),
            ],
            1,
            None,
        );
        let place = |id: &str| catalogue.place(hash(id));
        let relevant = Relevant {
            n_items: 2,
            shown: shown.iter().map(|(rank, id)| (*rank, place(id))).collect(),
            off_list: off_list.iter().map(|id| place(id)).collect(),
        };
        let mut values = Vec::new();
        AlphaNdcg::new(0.5).at(
            ks,
            &relevant,
            OffList::Relevant,
            &catalogue,
            &Discounts::new(0),
            |_, value| values.push(value),
        );
        values
    }

    #[test]
    fn an_aspect_shown_again_counts_half() {
        let second = 1.0 / libm::log2(3.0);
        // Greedy order: `both` gains 2, and then either of the others gains a half.
        let ideal = 2.0 + 0.5 * second;
        assert_eq!(at(&[1, 2], &[(1, "both"), (2, "x1")], &[]), [1.0, 1.0]);
        let swapped = 1.0 + 1.5 * second;
        assert_eq!(
            at(&[1, 2], &[(1, "x1"), (2, "both")], &[]),
            [1.0 / 2.0, swapped / ideal]
        );
    }

    /// A second relevant item without an aspect only selects the general computation.
    #[test]
    fn a_single_relevant_item_scores_the_same_bits_as_the_general_case() {
        for rank in 1..=20 {
            for item in ["both", "x1", "none", "stranger"] {
                let ks = [1, 3, 5, 10, 20, WHOLE];
                let alone = at(&ks, &[(rank, item)], &[]);
                let beside = at(&ks, &[(rank, item), (rank + 1, "none")], &[]);
                assert_eq!(alone, beside, "{item} at {rank}");
            }
        }
    }

    #[test]
    fn the_ideal_includes_relevant_items_off_the_list() {
        assert_eq!(at(&[1], &[(1, "x1")], &["both"]), [0.5]);
    }

    /// d gains 4. Then a, b and c tie with 2·1 + 2·0.7 each, added in different orders, and c wins by its id. Then a gains
    /// 4·0.7.
    #[test]
    fn ties_do_not_depend_on_the_order_of_aspects() {
        let items = vec![
            item("a", &["x", "w", "y", "u"], 0),
            item("b", &["y", "x", "u", "v"], 0),
            item("c", &["z", "x", "v", "u"], 0),
            item("d", &["z", "y", "v", "w"], 0),
        ];
        let catalogue = Catalogue::new(items, 1, None);
        let ranked = (1..).zip(["d", "c", "a", "b"]);
        let relevant = Relevant {
            n_items: 4,
            shown: ranked
                .map(|(rank, id)| (rank, catalogue.place(hash(id))))
                .collect(),
            off_list: Vec::new(),
        };
        AlphaNdcg::new(0.3).at(
            &[1, 2, 3, 4],
            &relevant,
            OffList::Ignore,
            &catalogue,
            &Discounts::new(0),
            |index, value| assert!((value - 1.0).abs() < 1e-12, "{value} at {}", index + 1),
        );
    }

    #[test]
    fn the_ideal_of_a_whole_list_is_as_long_as_the_list() {
        let second = 1.0 / libm::log2(3.0);
        let ideal = 2.0 + 0.5 * second;
        // All three items are relevant. The ideal takes `both` and one of the others; at k = 3 it takes the third, too.
        let values = at(&[1, 3, WHOLE], &[(1, "both"), (2, "x1")], &["x2"]);
        assert_eq!([values[0], values[2]], [1.0, 1.0]);
        assert_eq!(values[1], ideal / (ideal + 0.25 * 0.5));
    }

    #[test]
    fn items_without_a_known_aspect_gain_nothing() {
        assert_eq!(at(&[5], &[(1, "none"), (2, "stranger")], &[]), [0.0]);
        assert_eq!(at(&[5], &[(2, "stranger")], &["x1"]), [0.0]);
        assert_eq!(at(&[5], &[], &[]), [0.0]);
    }
}
