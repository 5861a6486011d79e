//! Outcome of one served list: everything that a metric may use.

use super::OffList;

/// Cut-off of a sum over whole lists.
pub const WHOLE: u32 = u32::MAX;

/// Outcome of one list. Every metric without a catalogue follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListOutcome<'a> {
    /// L: positions of the list, copies included.
    pub n_items: u32,
    /// Bit mask of clicked ranks: bit r−1 for rank r. Ranks of later copies of an item are never set.
    pub clicked: &'a [u32],
    /// Number of distinct clicked items that the list does not show, as far as they are remembered.
    pub n_off_list: u32,
}

impl<'a> ListOutcome<'a> {
    /// Returns min(k, L): positions shown in the top k.
    pub fn shown(&self, k: u32) -> u32 {
        self.n_items.min(k)
    }

    /// Returns the effective cut-off: L for the whole list, else k.
    pub fn cut(&self, k: u32) -> u32 {
        if k == WHOLE { self.n_items } else { k }
    }

    /// Returns H_k: clicked items in the top k.
    pub fn hits(&self, k: u32) -> u32 {
        let mut hits = 0;
        let mut left = k;
        for word in self.clicked {
            if left < 32 {
                // k ends within this word, so later ranks are masked out.
                return hits + (word & ((1 << left) - 1)).count_ones();
            }
            hits += word.count_ones();
            left -= 32;
        }
        hits
    }

    /// Returns the clicked ranks up to k, ascending, counted from 1.
    pub fn ranks(&self, k: u32) -> impl Iterator<Item = u32> + use<'a> {
        let words = self.clicked.iter().zip((0..).step_by(32));
        words
            .flat_map(|(word, before)| bits(*word).map(move |bit| before + bit + 1))
            .take_while(move |rank| *rank <= k)
    }

    /// Returns |G|: relevant items, including off-list clicks if the profile counts them as relevant.
    pub fn relevant(&self, off_list: OffList) -> u32 {
        let off_list = match off_list {
            OffList::Relevant => self.n_off_list,
            OffList::Ignore => 0,
        };
        self.hits(u32::MAX) + off_list
    }
}

/// Returns the indexes of the set bits, from the lowest.
fn bits(mut word: u32) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let bit = (word != 0).then(|| word.trailing_zeros())?;
        word &= word - 1;
        Some(bit)
    })
}

/// Returns numerator ÷ denominator, or 0 if both are 0: a list that shows nothing has no hit.
pub(super) fn ratio(numerator: f64, denominator: u32) -> f64 {
    match denominator {
        0 => 0.0,
        _ => numerator / f64::from(denominator),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_and_hits_extend_beyond_one_word_of_the_mask() {
        let list = ListOutcome {
            n_items: 70,
            clicked: &[1 << 31, 1, 1 << 5],
            n_off_list: 2,
        };
        let hits = [31, 32, 33, 69, 70].map(|k| list.hits(k));
        assert_eq!(hits, [0, 1, 2, 2, 3]);
        assert_eq!(list.ranks(u32::MAX).collect::<Vec<_>>(), [32, 33, 70]);
        assert_eq!(list.ranks(69).collect::<Vec<_>>(), [32, 33]);
        assert_eq!(list.relevant(OffList::Relevant), 5);
        assert_eq!(list.relevant(OffList::Ignore), 3);
    }
}
