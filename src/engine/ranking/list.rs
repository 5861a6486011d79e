//! What is known of one served list: all that a metric may ask.

use super::OffList;
use super::term::WHOLE;

/// The outcome of one list, from which every metric without a catalogue follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListOutcome<'a> {
    /// L: positions of the list, copies included.
    pub n_items: u32,
    /// Bit r−1 says that the item at rank r was clicked; ranks of later copies of an item are never set.
    pub clicked: &'a [u32],
    /// Distinct items clicked that the list does not show, as far as they are remembered.
    pub n_off_list: u32,
}

impl<'a> ListOutcome<'a> {
    /// min(k, L): positions shown in the top k.
    pub fn shown(&self, k: u32) -> u32 {
        self.n_items.min(k)
    }

    /// What k stands for: L over the whole list.
    pub fn cut(&self, k: u32) -> u32 {
        if k == WHOLE { self.n_items } else { k }
    }

    /// H_k: clicked items in the top k.
    pub fn hits(&self, k: u32) -> u32 {
        let mut hits = 0;
        let mut left = k;
        for word in self.clicked {
            if left < 32 {
                return hits + (word & ((1 << left) - 1)).count_ones();
            }
            hits += word.count_ones();
            left -= 32;
        }
        hits
    }

    /// The clicked ranks up to k, ascending, counted from 1.
    pub fn ranks(&self, k: u32) -> impl Iterator<Item = u32> + use<'a> {
        let words = self.clicked.iter().zip((0..).step_by(32));
        words
            .flat_map(|(word, before)| bits(*word).map(move |bit| before + bit + 1))
            .take_while(move |rank| *rank <= k)
    }

    /// |G|: relevant items, off-list clicks included where the profile has them relevant.
    pub fn relevant(&self, off_list: OffList) -> u32 {
        let off_list = match off_list {
            OffList::Relevant => self.n_off_list,
            OffList::Ignore => 0,
        };
        self.hits(u32::MAX) + off_list
    }
}

/// The bits that are set, from the lowest.
fn bits(mut word: u32) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let bit = (word != 0).then(|| word.trailing_zeros())?;
        word &= word - 1;
        Some(bit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_and_hits_go_on_beyond_one_word_of_the_mask() {
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
