//! The lists of the slots that are not settled, found by request id.
//!
//! ```text
//! slots  ──▶ OpenSlot { lists: [OpenList …], words: [ arms │ tags │ (places) │ mask ┆ arms │ … ], tallies }
//! index  ──▶ hash of the id ─▶ (place of the slot, place in the slot)
//! ```
//! A list of 10 items in one arm takes 48 + 48 bytes and some 25 in the index, and 40 more where the places of its
//! items in a catalogue are kept. A slot leaves as a whole.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::ops::Range;
use std::sync::Arc;

use hashbrown::{HashMap, HashTable};

use super::arms::ArmId;
use super::catalogue::Catalogue;
use super::hashed::Hashed;
use super::ranking::ListOutcome;
use super::shown::ShownLists;
use super::tally::Tallies;

/// Where an open list stands. Valid until its slot leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handle {
    place: u32,
    index: u32,
}

#[derive(Debug)]
struct Entry {
    hash: u64,
    list: Handle,
}

#[derive(Debug)]
struct OpenList {
    id: u128,
    user: u64,
    offset: i64,
    /// Of the slot's words.
    start: u32,
    ts_in_slot_ms: u32,
    n_items: u32,
    n_arms: u16,
    has_user: bool,
}

/// The lists of one slot that a partition has open.
#[derive(Debug)]
pub struct OpenSlot {
    /// Slot number: epoch ms ÷ slot length.
    pub number: i64,
    /// The catalogue by which its lists count, whatever comes later: so that what they added can be taken away again.
    catalogue: Option<Arc<Catalogue>>,
    lists: Vec<OpenList>,
    words: Vec<u32>,
    /// Distinct off-list items clicked, by list, in the order of offsets.
    off_list: HashMap<u32, Vec<u64>, Hashed>,
    /// What the slot's lists add up to so far, by arm.
    pub tallies: Tallies<ArmId>,
    bytes: u64,
}

/// What a click did to a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hit {
    /// The first click on this item of the list: its bit is set now.
    First,
    Repeat,
    OffList,
}

/// A list as the engine reads it.
#[derive(Debug, Clone, Copy)]
pub struct NewList<'a> {
    pub id: u128,
    pub user: Option<u64>,
    pub offset: i64,
    pub ts_ms: i64,
    pub arms: &'a [ArmId],
    pub items: &'a [u64],
}

/// What the index costs for each list, at its usual load.
const INDEX_BYTES: u64 = 28;
/// What remembering an off-list item costs at most: the item, and the place of its list in the map.
pub const OFF_LIST_BYTES: u64 = 72;
/// What an arm's row in a slot costs beside its sums.
const ROW_BYTES: u64 = 20;

#[derive(Debug)]
pub struct OpenLists {
    slot_ms: i64,
    max_off_list: usize,
    /// Columns of a slot's sums.
    width: usize,
    /// What slots that open from now on count by.
    catalogue: Option<Arc<Catalogue>>,
    index: HashTable<Entry>,
    by_number: BTreeMap<i64, u32>,
    places: Vec<Option<OpenSlot>>,
    free: Vec<u32>,
    n_lists: u64,
    bytes: u64,
}

impl OpenLists {
    pub fn new(slot_ms: i64, max_off_list: u32, width: usize) -> OpenLists {
        OpenLists {
            slot_ms,
            max_off_list: max_off_list as usize,
            width,
            catalogue: None,
            index: HashTable::new(),
            by_number: BTreeMap::new(),
            places: Vec::new(),
            free: Vec::new(),
            n_lists: 0,
            bytes: 0,
        }
    }

    pub fn len(&self) -> u64 {
        self.n_lists
    }

    /// Bytes of open lists and their index.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Counts the lists of slots that open from now on by this catalogue.
    pub fn set_catalogue(&mut self, catalogue: Arc<Catalogue>) {
        self.catalogue = Some(catalogue);
    }

    /// What a list adds to [`Self::bytes`] at most: itself, and a row of sums for each of its arms.
    pub fn cost(&self, n_items: usize, n_arms: usize) -> u64 {
        let with_places = self.catalogue.is_some();
        list_bytes(n_items, n_arms, with_places) + n_arms as u64 * row_bytes(self.width)
    }

    fn slot(&self, handle: Handle) -> &OpenSlot {
        let slot = self.places[handle.place as usize].as_ref();
        slot.expect("a handle lives no longer than its slot")
    }

    fn slot_mut(&mut self, handle: Handle) -> &mut OpenSlot {
        let slot = self.places[handle.place as usize].as_mut();
        slot.expect("a handle lives no longer than its slot")
    }

    /// Loads what a look-up of this id will read.
    pub fn touch(&self, id: u128) {
        let found = self.index.find(id as u64, |entry| entry.hash == id as u64);
        black_box(found.map(|entry| self.slot(entry.list).list(entry.list).id));
    }

    /// Lists of this id, one for each slot that has one.
    pub fn find(&self, id: u128) -> impl Iterator<Item = Handle> {
        let hash = id as u64;
        let same =
            move |entry: &&Entry| entry.hash == hash && self.slot(entry.list).list(entry.list).id == id;
        self.index.iter_hash(hash).filter(same).map(|entry| entry.list)
    }

    /// The list of this id in the slot of `ts_ms`.
    pub fn find_in_slot(&self, id: u128, ts_ms: i64) -> Option<Handle> {
        let place = *self.by_number.get(&ts_ms.div_euclid(self.slot_ms))?;
        let hash = id as u64;
        let entry = self.index.find(hash, |entry| {
            entry.list.place == place && entry.hash == hash && self.slot(entry.list).list(entry.list).id == id
        })?;
        Some(entry.list)
    }

    /// Opens a list that [`Self::find_in_slot`] did not find.
    pub fn insert(&mut self, list: &NewList) -> Handle {
        let number = list.ts_ms.div_euclid(self.slot_ms);
        let place = match self.by_number.get(&number) {
            Some(place) => *place,
            None => self.open(number),
        };
        let ts_in_slot_ms = list.ts_ms.rem_euclid(self.slot_ms) as u32;
        let slot = self.places[place as usize].as_mut();
        let slot = slot.expect("a numbered slot has its place");
        let cost = list_bytes(list.items.len(), list.arms.len(), slot.catalogue.is_some());
        let handle = Handle {
            place,
            index: slot.lists.len() as u32,
        };
        slot.push(list, ts_in_slot_ms);
        slot.bytes += cost;
        self.bytes += cost;
        self.n_lists += 1;
        let hash = list.id as u64;
        self.index
            .insert_unique(hash, Entry { hash, list: handle }, |entry| entry.hash);
        handle
    }

    fn open(&mut self, number: i64) -> u32 {
        let slot = OpenSlot {
            number,
            catalogue: self.catalogue.clone(),
            lists: Vec::new(),
            words: Vec::new(),
            off_list: HashMap::default(),
            tallies: Tallies::new(self.width),
            bytes: 0,
        };
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            (self.places.len() - 1) as u32
        });
        self.places[place as usize] = Some(slot);
        self.by_number.insert(number, place);
        place
    }

    /// Records a click on `item`, and tells what it did; `remember` an item that is not in the list.
    pub fn click(&mut self, handle: Handle, item: u64) -> Hit {
        let slot = self.places[handle.place as usize].as_mut();
        let slot = slot.expect("a handle lives no longer than its slot");
        let list = &slot.lists[handle.index as usize];
        let tags = list.tags_at();
        let tag = tag(item);
        let Some(position) = slot.words[tags.clone()].iter().position(|other| *other == tag) else {
            let before = slot.bytes;
            let hit = slot.click_off_list(handle.index, item, self.max_off_list);
            self.bytes += slot.bytes - before;
            return hit;
        };
        let mask = slot.mask_at(&slot.lists[handle.index as usize]);
        let word = &mut slot.words[mask.start + position / 32];
        let bit = 1 << (position % 32);
        if *word & bit != 0 {
            return Hit::Repeat;
        }
        *word |= bit;
        Hit::First
    }

    /// Whether a click on this item would be a repeat.
    pub fn has_click(&self, handle: Handle, item: u64) -> bool {
        let slot = self.slot(handle);
        let list = slot.list(handle);
        let tag = tag(item);
        match slot.words[list.tags_at()].iter().position(|other| *other == tag) {
            Some(position) => {
                let mask = slot.mask_at(list);
                slot.words[mask.start + position / 32] >> (position % 32) & 1 != 0
            }
            None => slot.off_list(handle).contains(&item),
        }
    }

    pub fn ts_ms(&self, handle: Handle) -> i64 {
        let slot = self.slot(handle);
        slot.number * self.slot_ms + i64::from(slot.list(handle).ts_in_slot_ms)
    }

    pub fn offset(&self, handle: Handle) -> i64 {
        self.slot(handle).list(handle).offset
    }

    pub fn slot_number(&self, handle: Handle) -> i64 {
        self.slot(handle).number
    }

    pub fn arms(&self, handle: Handle) -> &[ArmId] {
        let slot = self.slot(handle);
        let list = slot.list(handle);
        &slot.words[list.start as usize..][..list.n_arms as usize]
    }

    pub fn outcome(&self, handle: Handle) -> ListOutcome<'_> {
        let slot = self.slot(handle);
        let list = slot.list(handle);
        ListOutcome {
            n_items: list.n_items,
            clicked: &slot.words[slot.mask_at(list)],
            n_off_list: slot.off_list(handle).len() as u32,
        }
    }

    /// Distinct off-list items clicked, as far as they are remembered.
    pub fn off_list(&self, handle: Handle) -> &[u64] {
        self.slot(handle).off_list(handle)
    }

    /// The catalogue that a list counts by, and the places in it of the list's items in rank order.
    pub fn places(&self, handle: Handle) -> Option<(&Catalogue, &[u32])> {
        let slot = self.slot(handle);
        let catalogue = slot.catalogue.as_deref()?;
        Some((catalogue, &slot.words[slot.places_at(slot.list(handle))]))
    }

    /// Adds what a list contributes, or a change of it, to its slot.
    pub fn add(&mut self, handle: Handle, arm: ArmId, contribution: &[i64]) {
        let width = self.width;
        let slot = self.slot_mut(handle);
        if slot.tallies.add(arm, contribution) {
            let bytes = row_bytes(width);
            slot.bytes += bytes;
            self.bytes += bytes;
        }
    }

    /// Whether the list that stands says the same as one that came again.
    pub fn same_content(&self, handle: Handle, other: &NewList) -> bool {
        let slot = self.slot(handle);
        let list = slot.list(handle);
        let tags = &slot.words[list.tags_at()];
        list.has_user == other.user.is_some()
            && list.user == other.user.unwrap_or(0)
            && self.ts_ms(handle) == other.ts_ms
            && self.arms(handle) == other.arms
            && tags.len() == other.items.len()
            && tags
                .iter()
                .zip(other.items)
                .all(|(ours, item)| *ours == tag(*item))
    }

    /// Takes out the first slot before `frontier`, in the order of time.
    pub fn take_before(&mut self, frontier: i64) -> Option<OpenSlot> {
        let (number, place) = self.by_number.first_key_value()?;
        if *number >= frontier {
            return None;
        }
        let place = *place;
        // Where every slot leaves, the index is emptied once for all of them.
        if self
            .by_number
            .last_key_value()
            .is_some_and(|(last, _)| *last < frontier)
            && !self.index.is_empty()
        {
            self.index.clear();
        }
        self.by_number.pop_first();
        let slot = self.places[place as usize].take();
        self.free.push(place);
        let slot = slot.expect("a numbered slot has its place");
        if !self.index.is_empty() {
            self.forget(place, &slot);
        }
        self.n_lists -= slot.lists.len() as u64;
        self.bytes -= slot.bytes;
        Some(slot)
    }

    /// Takes the lists of a slot out of the index.
    fn forget(&mut self, place: u32, slot: &OpenSlot) {
        for (index, list) in slot.lists.iter().enumerate() {
            let index = index as u32;
            let handle = Handle { place, index };
            let entry = self
                .index
                .find_entry(list.id as u64, |entry| entry.list == handle);
            if let Ok(entry) = entry {
                entry.remove();
            }
        }
    }

    /// Gives back the spare capacity of slot `number`, once no list can join it any more.
    pub fn close(&mut self, number: i64) {
        if let Some(place) = self.by_number.get(&number) {
            let slot = self.places[*place as usize].as_mut();
            let slot = slot.expect("a numbered slot has its place");
            slot.lists.shrink_to_fit();
            slot.words.shrink_to_fit();
        }
    }
}

impl OpenSlot {
    fn list(&self, handle: Handle) -> &OpenList {
        &self.lists[handle.index as usize]
    }

    fn push(&mut self, list: &NewList, ts_in_slot_ms: u32) {
        self.lists.push(OpenList {
            id: list.id,
            user: list.user.unwrap_or(0),
            offset: list.offset,
            start: self.words.len() as u32,
            ts_in_slot_ms,
            n_items: list.items.len() as u32,
            n_arms: list.arms.len() as u16,
            has_user: list.user.is_some(),
        });
        self.words.extend_from_slice(list.arms);
        self.words.extend(list.items.iter().map(|item| tag(*item)));
        if let Some(catalogue) = &self.catalogue {
            self.words
                .extend(list.items.iter().map(|item| catalogue.place(*item)));
        }
        self.words
            .resize(self.words.len() + mask_words(list.items.len()), 0);
    }

    /// Where the words of a list hold the places of its items.
    fn places_at(&self, list: &OpenList) -> Range<usize> {
        let start = list.tags_at().end;
        let n_places = self.catalogue.as_ref().map_or(0, |_| list.n_items as usize);
        start..start + n_places
    }

    fn mask_at(&self, list: &OpenList) -> Range<usize> {
        let start = self.places_at(list).end;
        start..start + mask_words(list.n_items as usize)
    }

    fn off_list(&self, handle: Handle) -> &[u64] {
        if self.off_list.is_empty() {
            return &[];
        }
        self.off_list.get(&handle.index).map_or(&[], Vec::as_slice)
    }

    /// The places of the items that its lists have shown, where a catalogue knows them.
    pub fn into_shown(self, start_ms: i64) -> ShownLists {
        if self.catalogue.is_none() {
            return ShownLists::default();
        }
        let ranges: Vec<(Range<usize>, Range<usize>)> = self
            .lists
            .iter()
            .map(|list| {
                let arms = list.start as usize..list.tags_at().start;
                (arms, self.places_at(list))
            })
            .collect();
        let mut shown = ShownLists::in_arena(self.words);
        for (arms, places) in ranges {
            for word in arms {
                shown.refer(shown.word(word), start_ms, places.clone());
            }
        }
        shown
    }

    fn click_off_list(&mut self, index: u32, item: u64, max: usize) -> Hit {
        let seen = self.off_list.entry(index).or_default();
        if seen.contains(&item) {
            return Hit::Repeat;
        }
        if seen.len() < max {
            seen.push(item);
            self.bytes += OFF_LIST_BYTES;
        }
        Hit::OffList
    }
}

impl OpenList {
    fn tags_at(&self) -> Range<usize> {
        let start = self.start as usize + self.n_arms as usize;
        start..start + self.n_items as usize
    }
}

/// What tells items of one list apart: two of a list of 10 coincide once in 10^8 lists.
fn tag(item: u64) -> u32 {
    item as u32
}

fn row_bytes(width: usize) -> u64 {
    width as u64 * 8 + ROW_BYTES
}

fn mask_words(n_items: usize) -> usize {
    n_items.div_ceil(32)
}

fn list_bytes(n_items: usize, n_arms: usize, with_places: bool) -> u64 {
    let n_places = if with_places { n_items } else { 0 };
    let n_words = n_arms + n_items + n_places + mask_words(n_items);
    size_of::<OpenList>() as u64 + n_words as u64 * 4 + INDEX_BYTES
}
