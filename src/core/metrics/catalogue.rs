//! The items that exist, as the operator lists them: their aspects and how many users touched them.
//!
//! An item has a *place*, dense from 0, which it keeps for the life of the process: a catalogue that succeeds another
//! gives known items their places again, and new ones the next. So state that speaks of places outlives a reload.

use std::collections::HashMap;
use std::ops::Range;

use super::{CatalogueData, METRICS, Metric};

/// The place of an item that the catalogue does not know.
pub const UNKNOWN: u32 = u32::MAX;
/// Entries of the table for each item at least: three of four look-ups or more find theirs at once.
const ENTRIES_PER_ITEM: usize = 2;

/// One line of a catalogue.
#[derive(Debug, Clone, PartialEq)]
pub struct NewItem {
    /// The item as clicks and lists spell it; decides ties by its bytes.
    pub id: String,
    /// Seeded hash of `id`, the same as in events.
    pub hash: u64,
    pub aspects: Vec<String>,
    /// Users who touched it; 0 makes it unseen.
    pub users: u64,
}

/// Properties of items that metrics need, by item.
///
/// ```text
/// hash ──▶ table │ hash, shares, place │ … ──▶ by place: aspects, order
/// ```
/// Ten items are looked up per list, so everything a lookup needs fits in half a cache line of the table.
#[derive(Debug, Clone)]
pub struct Catalogue {
    /// Listed items, each at its hash's home or in the next free entry, and [empty entries](TableEntry::place). Its length is a
    /// power of two.
    table: Vec<TableEntry>,
    items: Vec<Item>,
    aspects: Vec<u32>,
    n_aspects: usize,
    /// Shares of items that are not listed.
    unknown: Shares,
    n_items: usize,
    n_users: u64,
}

/// A place in the table.
#[derive(Debug, Clone, Copy)]
#[repr(align(32))]
struct TableEntry {
    hash: u64,
    /// In an empty entry: the shares of an unknown item.
    shares: Shares,
    /// [`UNKNOWN`] in an empty entry.
    place: u32,
}

/// Item by its place.
#[derive(Debug, Clone)]
struct Item {
    hash: u64,
    /// Rank by the bytes of its id.
    order: u32,
    /// False if only an earlier catalogue listed it.
    listed: bool,
    /// Same as in the table.
    shares: Shares,
    /// Range of its aspects in `aspects`.
    aspects: Range<u32>,
}

/// Values derived from the users of an item.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Shares {
    /// Share of users who touched the item; 0 for an unknown one.
    pub popularity: f64,
    /// −log2 of the share of users who touched the item; of one that none touched, log2 of the number of users.
    pub surprisal: f64,
}

impl Catalogue {
    /// Builds the catalogue of these items, whose ids differ. Shares are fractions of `n_users`. Items of `previous` keep their
    /// places.
    pub fn new(items: Vec<NewItem>, n_users: u64, previous: Option<&Catalogue>) -> Catalogue {
        let unknown = Shares {
            popularity: 0.0,
            surprisal: libm::log2(n_users.max(1) as f64),
        };
        let before = previous.map_or(&[][..], |previous| &previous.items);
        let unlisted = |hash: u64| Item {
            hash,
            order: 0,
            listed: false,
            shares: unknown,
            aspects: 0..0,
        };
        let nothing = TableEntry {
            hash: 0,
            shares: unknown,
            place: UNKNOWN,
        };
        let n_entries = (ENTRIES_PER_ITEM * items.len()).next_power_of_two();
        let mut catalogue = Catalogue {
            unknown,
            table: vec![nothing; n_entries],
            // Each earlier item keeps its place, even if it is not listed again.
            items: before.iter().map(|item| unlisted(item.hash)).collect(),
            aspects: Vec::new(),
            n_aspects: 0,
            n_items: items.len(),
            n_users,
        };
        let places_before: HashMap<u64, u32> = before.iter().map(|item| item.hash).zip(0..).collect();
        let mut by_bytes: Vec<&str> = items.iter().map(|item| item.id.as_str()).collect();
        by_bytes.sort_unstable();
        let mut aspects: HashMap<&str, u32> = HashMap::new();
        for item in &items {
            let start = catalogue.aspects.len() as u32;
            for aspect in &item.aspects {
                let next = aspects.len() as u32;
                let aspect = *aspects.entry(aspect).or_insert(next);
                // An aspect that is named twice is one.
                if !catalogue.aspects[start as usize..].contains(&aspect) {
                    catalogue.aspects.push(aspect);
                }
            }
            let share = item.users as f64 / n_users.max(1) as f64;
            let shares = Shares {
                popularity: share,
                surprisal: match item.users {
                    0 => unknown.surprisal,
                    _ => -libm::log2(share),
                },
            };
            let listed = Item {
                hash: item.hash,
                // Ids differ, so the number of smaller ids is the rank.
                order: by_bytes.partition_point(|id| *id < item.id.as_str()) as u32,
                listed: true,
                shares,
                aspects: start..catalogue.aspects.len() as u32,
            };
            catalogue.list(listed, places_before.get(&item.hash));
        }
        catalogue.n_aspects = aspects.len();
        catalogue
    }

    /// Lists an item at the place that it had before, else at the next one.
    fn list(&mut self, item: Item, before: Option<&u32>) {
        let place = before.map_or(self.items.len(), |place| *place as usize);
        let (hash, shares) = (item.hash, item.shares);
        match self.items.get_mut(place) {
            Some(before) => *before = item,
            None => self.items.push(item),
        }
        let mut at = self.home(hash);
        // At least half of the entries are empty, so the search ends.
        while self.table[at].place != UNKNOWN {
            at = self.next(at);
        }
        self.table[at] = TableEntry {
            hash,
            shares,
            place: place as u32,
        };
    }

    fn home(&self, hash: u64) -> usize {
        hash as usize & (self.table.len() - 1)
    }

    fn next(&self, at: usize) -> usize {
        (at + 1) & (self.table.len() - 1)
    }

    /// Returns the place of a listed item, or [`UNKNOWN`], and its shares.
    pub fn look_up(&self, hash: u64) -> (u32, Shares) {
        let mut at = self.home(hash);
        loop {
            let entry = &self.table[at];
            // An empty entry holds the shares of an unknown item, so both cases return the same fields.
            if entry.hash == hash || entry.place == UNKNOWN {
                return (entry.place, entry.shares);
            }
            at = self.next(at);
        }
    }

    /// Items listed.
    pub fn len(&self) -> usize {
        self.n_items
    }

    pub fn is_empty(&self) -> bool {
        self.n_items == 0
    }

    /// Places given so far, to items of earlier catalogues too.
    pub fn n_places(&self) -> usize {
        self.items.len()
    }

    pub fn n_aspects(&self) -> usize {
        self.n_aspects
    }

    /// Returns the number of users that shares are fractions of; 0 if the catalogue does not have it.
    pub fn n_users(&self) -> u64 {
        self.n_users
    }

    /// Returns a sentence for each reason why some of these metrics are meaningless with this catalogue.
    pub fn lacks(&self, metrics: &[&str]) -> Vec<String> {
        let all = [
            (self.n_aspects == 0, CatalogueData::Aspects, "no item has aspects"),
            (
                self.n_users == 0,
                CatalogueData::Shares,
                "no item has shares of users",
            ),
        ];
        let lacking = all.into_iter().filter_map(|(is_lacking, data, why)| {
            let is_needing = |metric: &&Metric| metric.needs == Some(data) && metrics.contains(&metric.id);
            let needing = METRICS.iter().filter(is_needing);
            let ids: Vec<&str> = needing.map(|metric| metric.id).collect();
            let is_reported = is_lacking && !ids.is_empty();
            is_reported.then(|| {
                format!(
                    "{why} in the catalogue: there is nothing for {}",
                    ids.join(" and ")
                )
            })
        });
        lacking.collect()
    }

    /// The place of a listed item, or [`UNKNOWN`].
    pub fn place(&self, hash: u64) -> u32 {
        self.look_up(hash).0
    }

    /// Returns whether the item at this place is listed.
    pub fn lists(&self, place: u32) -> bool {
        self.items.get(place as usize).is_some_and(|item| item.listed)
    }

    /// Returns the shares of the item at this place, or those for unknown items if it is [`UNKNOWN`].
    pub fn shares(&self, place: u32) -> Shares {
        let item = self.items.get(place as usize);
        item.map_or(self.unknown, |item| item.shares)
    }

    /// Aspects of an item, numbered from 0 to [`Self::n_aspects`].
    pub fn aspects(&self, place: u32) -> &[u32] {
        let item = self.items.get(place as usize);
        item.map_or(&[], |item| {
            &self.aspects[item.aspects.start as usize..item.aspects.end as usize]
        })
    }

    /// Returns the rank of the item among the listed ones by the bytes of their ids.
    pub fn order(&self, place: u32) -> u32 {
        self.items.get(place as usize).map_or(0, |item| item.order)
    }
}

#[cfg(test)]
pub(crate) fn item(id: &str, aspects: &[&str], users: u64) -> NewItem {
    NewItem {
        id: id.to_owned(),
        hash: hash(id),
        aspects: aspects.iter().map(|aspect| (*aspect).to_owned()).collect(),
        users,
    }
}

#[cfg(test)]
pub(super) fn hash(id: &str) -> u64 {
    id.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_up_shares_aspects_and_the_order_of_ids() {
        let items = vec![item("b", &["y", "x", "y"], 50), item("a", &["x"], 0)];
        let catalogue = Catalogue::new(items, 200, None);
        let [b, a] = ["b", "a"].map(|id| catalogue.place(hash(id)));
        assert_eq!([b, a], [0, 1]);
        let shares = |id: &str| {
            let (place, shares) = catalogue.look_up(hash(id));
            let of_place = catalogue.shares(place);
            assert_eq!(of_place, shares);
            [shares.popularity, shares.surprisal]
        };
        assert_eq!(shares("b"), [0.25, 2.0]);
        assert_eq!(shares("a"), [0.0, libm::log2(200.0)], "nobody touched it");
        assert_eq!(shares("c"), [0.0, libm::log2(200.0)]);
        assert_eq!(
            (catalogue.aspects(b), catalogue.aspects(a)),
            (&[0, 1][..], &[1][..])
        );
        assert!(catalogue.order(b) > catalogue.order(a));
        assert_eq!(catalogue.place(hash("c")), UNKNOWN);
    }

    #[test]
    fn a_successor_keeps_places_and_drops_unlisted_items() {
        let first = Catalogue::new(vec![item("a", &[], 1), item("b", &[], 2)], 10, None);
        let second = Catalogue::new(vec![item("c", &[], 3), item("b", &[], 4)], 10, Some(&first));
        assert_eq!(second.place(hash("b")), first.place(hash("b")));
        assert_eq!(second.place(hash("c")), 2);
        assert_eq!(second.place(hash("a")), UNKNOWN);
        assert_eq!(
            (second.lists(0), second.lists(1), second.lists(2)),
            (false, true, true)
        );
        assert_eq!((second.len(), second.n_places()), (2, 3));
        let third = Catalogue::new(vec![item("a", &[], 1)], 10, Some(&second));
        assert_eq!(
            third.place(hash("a")),
            0,
            "an item that comes back has its old place"
        );
    }

    /// Hashes whose low bits are alike are displaced in the table, beyond its end too.
    #[test]
    fn finds_items_that_collide_in_the_table() {
        for n_items in [0_u64, 1, 2, 5, 64, 100] {
            let hash_of = |n: u64| n << 40 | 0xff_ffff;
            let items = (0..n_items).map(|n| NewItem {
                hash: hash_of(n),
                ..item(&n.to_string(), &[], n)
            });
            let catalogue = Catalogue::new(items.collect(), 1000, None);
            for n in 0..n_items {
                let (place, shares) = catalogue.look_up(hash_of(n));
                assert_eq!((u64::from(place), shares.popularity), (n, n as f64 / 1000.0));
            }
            assert_eq!(catalogue.place(hash_of(n_items)), UNKNOWN);
        }
    }
}
