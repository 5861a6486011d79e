//! The items that exist, as the operator lists them: their aspects and how many users touched them.
//!
//! An item has a *place*, dense from 0, which it keeps for the life of the process: a catalogue that succeeds another
//! gives known items their places again, and new ones the next. So state that speaks of places outlives a reload.

use std::collections::HashMap;

use hashbrown::HashTable;

/// The place of an item that the catalogue does not know.
pub const UNKNOWN: u32 = u32::MAX;

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

#[derive(Debug, Clone)]
pub struct Catalogue {
    /// Of listed items.
    places: HashTable<(u64, u32)>,
    /// Of items that were listed before.
    retired: HashTable<(u64, u32)>,
    items: Vec<Item>,
    aspects: Vec<u32>,
    n_aspects: usize,
    n_items: usize,
    n_users: u64,
    /// What an item has that the catalogue does not know.
    unseen_surprisal: f64,
}

#[derive(Debug, Clone)]
struct Item {
    /// Whether it is in this catalogue, or was only in one before.
    listed: bool,
    /// Its rank by the bytes of its id.
    order: u32,
    popularity: f64,
    surprisal: f64,
    /// Into the catalogue's aspects.
    aspects: std::ops::Range<u32>,
}

impl Catalogue {
    /// The catalogue of these items, whose ids differ; `n_users` is what shares are of. Items of `previous` keep
    /// their places.
    pub fn new(items: Vec<NewItem>, n_users: u64, previous: Option<&Catalogue>) -> Catalogue {
        let unseen_surprisal = libm::log2(n_users.max(1) as f64);
        let mut catalogue = Catalogue {
            places: HashTable::with_capacity(items.len()),
            retired: HashTable::new(),
            items: Vec::new(),
            aspects: Vec::new(),
            n_aspects: 0,
            n_items: items.len(),
            n_users,
            unseen_surprisal,
        };
        let unlisted = Item {
            listed: false,
            order: 0,
            popularity: 0.0,
            surprisal: unseen_surprisal,
            aspects: 0..0,
        };
        catalogue.items.resize(
            previous.map_or(0, |previous| previous.items.len()),
            unlisted.clone(),
        );
        let mut by_bytes: Vec<&str> = items.iter().map(|item| item.id.as_str()).collect();
        by_bytes.sort_unstable();
        let mut aspects: HashMap<&str, u32> = HashMap::new();
        for item in &items {
            let known = previous.and_then(|previous| previous.place_ever(item.hash));
            let place = catalogue.admit(item.hash, known, &unlisted);
            let share = item.users as f64 / n_users.max(1) as f64;
            let start = catalogue.aspects.len() as u32;
            for aspect in &item.aspects {
                let next = aspects.len() as u32;
                let aspect = *aspects.entry(aspect).or_insert(next);
                // An aspect that is named twice is one.
                if !catalogue.aspects[start as usize..].contains(&aspect) {
                    catalogue.aspects.push(aspect);
                }
            }
            catalogue.items[place as usize] = Item {
                listed: true,
                order: by_bytes.partition_point(|id| *id < item.id.as_str()) as u32,
                popularity: share,
                surprisal: if item.users == 0 {
                    unseen_surprisal
                } else {
                    -libm::log2(share)
                },
                aspects: start..catalogue.aspects.len() as u32,
            };
        }
        catalogue.n_aspects = aspects.len();
        for (hash, place) in previous
            .iter()
            .flat_map(|previous| previous.places.iter().chain(&previous.retired))
        {
            if !catalogue.lists(*place) {
                catalogue
                    .retired
                    .insert_unique(*hash, (*hash, *place), |(hash, _)| *hash);
            }
        }
        catalogue
    }

    /// Lists an item at the place that it had before, else at the next one.
    fn admit(&mut self, hash: u64, known: Option<u32>, unlisted: &Item) -> u32 {
        let place = known.unwrap_or(self.items.len() as u32);
        if known.is_none() {
            self.items.push(unlisted.clone());
        }
        self.places.insert_unique(hash, (hash, place), |(hash, _)| *hash);
        place
    }

    /// The place of an item that is listed or was.
    fn place_ever(&self, hash: u64) -> Option<u32> {
        let same = |(known, _): &(u64, u32)| *known == hash;
        let found = self
            .places
            .find(hash, same)
            .or_else(|| self.retired.find(hash, same));
        found.map(|(_, place)| *place)
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

    /// What the shares of users are of; 0 where the catalogue tells none.
    pub fn n_users(&self) -> u64 {
        self.n_users
    }

    /// The place of a listed item, or [`UNKNOWN`].
    pub fn place(&self, hash: u64) -> u32 {
        let found = self.places.find(hash, |(known, _)| *known == hash);
        found.map_or(UNKNOWN, |(_, place)| *place)
    }

    /// Whether the item of this place is listed.
    pub fn lists(&self, place: u32) -> bool {
        self.items.get(place as usize).is_some_and(|item| item.listed)
    }

    /// Share of users who touched the item, 0 of an unknown one.
    pub fn popularity(&self, place: u32) -> f64 {
        self.items.get(place as usize).map_or(0.0, |item| item.popularity)
    }

    /// −log2 of the share of users who touched the item; of one that none touched, log2 of the number of users.
    pub fn surprisal(&self, place: u32) -> f64 {
        let item = self.items.get(place as usize);
        item.map_or(self.unseen_surprisal, |item| item.surprisal)
    }

    /// Aspects of an item, numbered from 0 to [`Self::n_aspects`].
    pub fn aspects(&self, place: u32) -> &[u32] {
        self.items.get(place as usize).map_or(&[], |item| {
            &self.aspects[item.aspects.start as usize..item.aspects.end as usize]
        })
    }

    /// Its rank among the listed items by the bytes of their ids.
    pub fn order(&self, place: u32) -> u32 {
        self.items.get(place as usize).map_or(0, |item| item.order)
    }
}

#[cfg(test)]
pub(super) fn item(id: &str, aspects: &[&str], users: u64) -> NewItem {
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
    fn knows_shares_aspects_and_the_order_of_ids() {
        let items = vec![item("b", &["y", "x", "y"], 50), item("a", &["x"], 0)];
        let catalogue = Catalogue::new(items, 200, None);
        let [b, a] = ["b", "a"].map(|id| catalogue.place(hash(id)));
        assert_eq!([b, a], [0, 1]);
        assert_eq!(catalogue.popularity(b), 0.25);
        assert_eq!(catalogue.surprisal(b), 2.0);
        assert_eq!(catalogue.surprisal(a), libm::log2(200.0), "nobody touched it");
        assert_eq!(catalogue.surprisal(UNKNOWN), libm::log2(200.0));
        assert_eq!(
            (catalogue.aspects(b), catalogue.aspects(a)),
            (&[0, 1][..], &[1][..])
        );
        assert!(catalogue.order(b) > catalogue.order(a));
        assert_eq!(catalogue.place(hash("c")), UNKNOWN);
    }

    #[test]
    fn a_successor_keeps_places_and_forgets_what_it_does_not_list() {
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
}
