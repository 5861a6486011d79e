//! One open list as words of 32 bits.
//!
//! ```text
//! [ id, 4 words │ kind, time │ user │ folded │ sizes ][ (arms) │ arms │ tags │ (places) │ mask ┆ – ]
//! ```
//! Places of items in a catalogue are present only if the list's slot uses one. The number of arms follows the sizes if it is
//! too large for them.

use std::num::NonZeroU32;
use std::ops::Range;

use super::arms::ArmId;
use super::chunks::UNIT;
use super::store::{ID, IndexedKind, KIND};

const TIME: usize = KIND;
/// Bits of the time in the slot.
const TIME_MASK: u32 = (1 << IndexedKind::SHIFT) - 1;
/// Half of the hash of its user; 0 is none.
const USER: usize = 5;
/// Distinguishes lists that are equal except for names that fold into one arm.
const FOLDED: usize = 6;
const SIZES: usize = 7;
/// Words before the arms.
const HEAD: usize = 8;
/// Bits of the sizes word that hold the number of items; the rest holds the number of arms.
const ITEMS_BITS: u32 = 17;
/// Marks a number of arms that needs its own word.
const MANY_ARMS: usize = (u32::MAX >> ITEMS_BITS) as usize;

/// A list as the engine reads it.
#[derive(Debug, Clone, Copy)]
pub struct NewList<'a> {
    pub id: u128,
    pub user: Option<u64>,
    pub ts_ms: i64,
    /// Distinct arms.
    pub arms: &'a [ArmId],
    /// Distinguishes the names that fold into one arm.
    pub folded: u32,
    pub items: &'a [u64],
}

/// The id as stored, and other facts that are not part of the event.
#[derive(Debug, Clone, Copy)]
pub struct Stamp {
    pub id: [u32; ID],
    pub kind: IndexedKind,
    pub ts_in_slot_ms: u32,
}

/// A stored list. The slice may extend past its end.
#[derive(Debug, Clone, Copy)]
pub struct OpenList<'a> {
    words: &'a [u32],
    n_places: usize,
}

/// Parts of a list.
#[derive(Debug, Clone, Copy)]
pub struct ListParts<'a> {
    pub n_items: u32,
    pub arms: &'a [ArmId],
    pub tags: &'a [u32],
    pub places: &'a [u32],
    pub mask: &'a [u32],
    /// Words that it takes, in whole units.
    pub n_words: usize,
}

impl NewList<'_> {
    /// Words that the list will take, in whole units.
    pub fn n_words(&self, has_places: bool) -> usize {
        n_words(self.items.len(), self.arms.len(), has_places)
    }

    /// Writes it into the first of these words, all 0 and [`Self::n_words`] of them, with the places of its items where these
    /// are kept.
    #[inline(always)]
    pub fn write(&self, stamp: Stamp, places: &[u32], words: &mut [u32]) {
        let (n_items, n_arms) = (self.items.len(), self.arms.len());
        debug_assert!(n_items < 1 << ITEMS_BITS, "the configuration bounds lists");
        debug_assert!(stamp.ts_in_slot_ms <= TIME_MASK, "the configuration bounds slots");
        let (head, mut rest) = words.split_at_mut(HEAD);
        head[..ID].copy_from_slice(&stamp.id);
        head[KIND] = stamp.kind.to_bits() | stamp.ts_in_slot_ms;
        head[USER] = self.user.map_or(0, half_of_user);
        head[FOLDED] = self.folded;
        head[SIZES] = (n_arms.min(MANY_ARMS) << ITEMS_BITS | n_items) as u32;
        if n_arms >= MANY_ARMS {
            rest[0] = n_arms as u32;
            rest = &mut rest[1..];
        }
        let (arms, rest) = rest.split_at_mut(n_arms);
        match self.arms {
            // Usually there is one arm, for which a call would cost more than the copy.
            [arm] => arms[0] = *arm,
            all => arms.copy_from_slice(all),
        }
        let (tags, rest) = rest.split_at_mut(n_items);
        let items = self.items.iter();
        tags.iter_mut()
            .zip(items)
            .for_each(|(word, item)| *word = tag(*item));
        if !places.is_empty() {
            rest[..places.len()].copy_from_slice(places);
        }
    }
}

/// Words of a list in whole units.
pub fn n_words(n_items: usize, n_arms: usize, has_places: bool) -> usize {
    let n_places = if has_places { n_items } else { 0 };
    let head = HEAD + usize::from(n_arms >= MANY_ARMS);
    (head + n_arms + n_items + n_places + mask_words(n_items)).next_multiple_of(UNIT)
}

impl<'a> OpenList<'a> {
    pub fn at(words: &'a [u32], has_places: bool) -> OpenList<'a> {
        let mut list = OpenList { words, n_places: 0 };
        if has_places {
            list.n_places = list.n_items();
        }
        list
    }

    /// Returns all parts together, to walk from list to list.
    pub fn parts(self) -> ListParts<'a> {
        let (arms, tags) = (self.arms_at(), self.tags_at());
        let places = tags.end..tags.end + self.n_places;
        let mask = places.end..places.end + mask_words(tags.len());
        ListParts {
            n_items: tags.len() as u32,
            arms: &self.words[arms],
            tags: &self.words[tags.clone()],
            places: &self.words[places],
            mask: &self.words[mask.clone()],
            n_words: mask.end.next_multiple_of(UNIT),
        }
    }

    /// Half of the hash of its user.
    pub fn user(self) -> Option<NonZeroU32> {
        NonZeroU32::new(self.words[USER])
    }

    pub fn ts_in_slot_ms(self) -> u32 {
        self.words[TIME] & TIME_MASK
    }

    pub fn n_items(self) -> usize {
        self.words[SIZES] as usize & ((1 << ITEMS_BITS) - 1)
    }

    fn arms_at(self) -> Range<usize> {
        match (self.words[SIZES] >> ITEMS_BITS) as usize {
            MANY_ARMS => HEAD + 1..HEAD + 1 + self.words[HEAD] as usize,
            n_arms => HEAD..HEAD + n_arms,
        }
    }

    fn tags_at(self) -> Range<usize> {
        let start = self.arms_at().end;
        start..start + self.n_items()
    }

    /// Returns the range of the words, counted from its start, that hold the click mask.
    pub fn mask_at(self) -> Range<usize> {
        let start = self.tags_at().end + self.n_places;
        start..start + mask_words(self.n_items())
    }

    pub fn arms(self) -> &'a [ArmId] {
        &self.words[self.arms_at()]
    }

    /// The places of its items in the catalogue, in rank order.
    pub fn places(self) -> &'a [u32] {
        &self.words[self.tags_at().end..][..self.n_places]
    }

    /// Returns the click mask: bit r − 1 is set if the item at rank r was clicked.
    pub fn mask(self) -> &'a [u32] {
        &self.words[self.mask_at()]
    }

    /// The first position of an item.
    pub fn position(self, item: u64) -> Option<usize> {
        let tag = tag(item);
        // Further copies of an item are never clicked.
        self.words[self.tags_at()].iter().position(|other| *other == tag)
    }

    /// Returns whether another list shows the same items in the same arms.
    pub fn has_content_of(self, other: &NewList) -> bool {
        let tags = &self.words[self.tags_at()];
        self.words[FOLDED] == other.folded
            && self.arms() == other.arms
            && tags.len() == other.items.len()
            && tags
                .iter()
                .zip(other.items)
                .all(|(ours, item)| *ours == tag(*item))
    }
}

/// Distinguishes the items of one list: two in a list of 10 coincide once in 10^8 lists.
fn tag(item: u64) -> u32 {
    item as u32
}

/// Returns the stored part of the keyed hash of a user: its upper 32 bits, with 0 counted as 1.
pub fn half_of_user(user: u64) -> u32 {
    ((user >> 32) as u32).max(1)
}

fn mask_words(n_items: usize) -> usize {
    n_items.div_ceil(u32::BITS as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(n_items: usize, n_arms: usize, words: &mut Vec<u32>) {
        let arms: Vec<ArmId> = (0..n_arms as u32).collect();
        let items: Vec<u64> = (0..n_items as u64)
            .map(|item| (item << 40) | (item + 7))
            .collect();
        let new = NewList {
            id: 1,
            user: Some(0),
            ts_ms: 0,
            arms: &arms,
            folded: 0,
            items: &items,
        };
        let stamp = Stamp {
            id: [1, 2, 3, 4],
            kind: IndexedKind::FurtherList,
            ts_in_slot_ms: 5,
        };
        let start = words.len();
        words.resize(start + new.n_words(false), 0);
        new.write(stamp, &[], &mut words[start..]);
        let list = OpenList::at(&words[start..], false);
        assert!(list.has_content_of(&new));
        assert!(list.has_content_of(&NewList {
            user: None,
            ts_ms: 1,
            ..new
        }));
        assert!(!list.has_content_of(&NewList { folded: 5, ..new }));
        assert_eq!(list.ts_in_slot_ms(), 5);
        assert_eq!(list.mask(), vec![0; n_items.div_ceil(32)]);
        for (position, item) in items.iter().enumerate().rev().take(3) {
            assert_eq!(list.position(*item), Some(position));
        }
        assert_eq!(list.position(3), None);
    }

    #[test]
    fn lists_of_any_length_and_number_of_arms_round_trip() {
        let mut words = Vec::new();
        let sizes = [
            (0, 0),
            (10, 1),
            (33, 2),
            (100_000, 3),
            (1, 32_766),
            (2, 32_767),
            (3, 70_000),
        ];
        for (n_items, n_arms) in sizes {
            check(n_items, n_arms, &mut words);
        }
        let mut rest = &words[..];
        for size in sizes {
            let list = OpenList::at(rest, false);
            assert_eq!((list.n_items(), list.arms().len()), size);
            rest = &rest[list.parts().n_words..];
        }
        assert!(rest.is_empty());
    }

    #[test]
    fn a_typical_list_takes_eighty_bytes() {
        assert_eq!(n_words(10, 1, false) * 4, 80);
    }
}
