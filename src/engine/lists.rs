//! The lists of the slots that are not settled, found by request id.
//!
//! ```text
//! slots  ──▶ OpenSlot { chunks ──▶ [ list │ list │ … ] [ list │ … ], tally }
//! index  ──▶ tag of the id ─▶ handle of the list: chunk and place
//! ```
//! A list of 10 items in one arm takes 80 bytes and some 16 in the index, and 40 more where the places of its items in a
//! catalogue are kept. A slot leaves as a whole: its chunks die, and with them all handles into them. Nothing is copied or
//! moved when there come to be more lists.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use hashbrown::HashMap;

use super::arms::ArmId;
use super::catalogue::Catalogue;
use super::chunks::Chunks;
use super::hashed::Hashed;
use super::index::Index;
use super::open_list::{self, OpenList, Stamp};
use super::ranking::ListOutcome;
use super::shown::ShownLists;
use super::tally::SlotTally;

pub use super::chunks::Handle;
pub use super::open_list::NewList;

/// The lists of one slot that a partition has open.
#[derive(Debug)]
pub struct OpenSlot {
    /// Slot number: epoch ms ÷ slot length.
    pub number: i64,
    /// The catalogue by which its lists count, whatever comes later: so that what they added can be taken away again.
    catalogue: Option<Arc<Catalogue>>,
    /// Numbers of its chunks; lists are appended to the last one.
    chunks: Vec<u32>,
    n_lists: u64,
    /// Distinct off-list items clicked, by list, in the order of offsets.
    off_list: HashMap<Handle, Vec<u64>, Hashed>,
    /// Ids of lists that the index does not hold.
    crowded: Vec<u128>,
    /// What the slot's lists add up to so far, by arm.
    pub tally: SlotTally,
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

/// Where a list of an id is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// In the slot that was asked for.
    InSlot(Handle),
    InOtherSlot,
    Nowhere,
}

/// What the index costs for each list at most: just after its segments were split.
const INDEX_BYTES: u64 = 23;
/// What remembering an off-list item costs at most: the item, and the place of its list in the map.
pub const OFF_LIST_BYTES: u64 = 72;
/// What a list costs that has the id of another open one.
const CROWDED_BYTES: u64 = 64;
const NO_SLOT: (i64, u32) = (i64::MIN, 0);

#[derive(Debug)]
pub struct OpenLists {
    slot_ms: i64,
    max_off_list: usize,
    /// Columns of a slot's sums.
    width: usize,
    /// What slots that open from now on count by.
    catalogue: Option<Arc<Catalogue>>,
    /// Added to the ids that stand in chunks, so that nobody can send items that look like one.
    secret: u128,
    chunks: Chunks,
    /// At most one living list of each id.
    index: Index,
    /// Further lists of an id, in other slots.
    crowded: HashMap<u128, Vec<Handle>, Hashed>,
    by_number: BTreeMap<i64, u32>,
    /// Place and number of the slot that was asked for last: most lists join it.
    last: (i64, u32),
    places: Vec<Option<OpenSlot>>,
    free: Vec<u32>,
    /// Slots with sums that were not handed over.
    fresh: Vec<u32>,
    n_lists: u64,
    n_arrived: u32,
    bytes: u64,
}

impl OpenLists {
    pub fn new(slot_ms: i64, max_off_list: u32, width: usize) -> OpenLists {
        let random = RandomState::new();
        let [low, high] = [0_u8, 1].map(|n| u128::from(random.hash_one(n)));
        OpenLists {
            slot_ms,
            max_off_list: max_off_list as usize,
            width,
            catalogue: None,
            secret: high << 64 | low,
            chunks: Chunks::new(),
            index: Index::new(),
            crowded: HashMap::default(),
            by_number: BTreeMap::new(),
            last: NO_SLOT,
            places: Vec::new(),
            free: Vec::new(),
            fresh: Vec::new(),
            n_lists: 0,
            n_arrived: 0,
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

    /// Whether no further list can be numbered, whatever room there is: beyond some 60 GiB.
    pub fn is_full(&self) -> bool {
        self.chunks.is_full()
    }

    /// Counts the lists of slots that open from now on by this catalogue.
    pub fn set_catalogue(&mut self, catalogue: Arc<Catalogue>) {
        self.catalogue = Some(catalogue);
    }

    /// What a list adds to [`Self::bytes`] at most: itself, and a row of sums for each of its arms.
    pub fn cost(&self, n_items: usize, n_arms: usize) -> u64 {
        let n_words = open_list::n_words(n_items, n_arms, self.catalogue.is_some());
        list_bytes(n_words) + CROWDED_BYTES + n_arms as u64 * SlotTally::row_bytes(self.width)
    }

    fn slot(&self, handle: Handle) -> &OpenSlot {
        let slot = self.places[self.chunks.owner(handle) as usize].as_ref();
        slot.expect("a handle lives no longer than its slot")
    }

    fn slot_mut(&mut self, handle: Handle) -> &mut OpenSlot {
        let slot = self.places[self.chunks.owner(handle) as usize].as_mut();
        slot.expect("a handle lives no longer than its slot")
    }

    fn list(&self, handle: Handle) -> OpenList<'_> {
        OpenList::at(self.chunks.words(handle), self.slot(handle).catalogue.is_some())
    }

    /// Loads what the index knows of an id.
    pub fn touch(&self, id: u128) {
        self.index.touch(self.index.tag(id));
    }

    fn is(&self, handle: Handle, stored_id: [u32; 4]) -> bool {
        let words = self.chunks.get(handle);
        words.and_then(<[u32]>::first_chunk) == Some(&stored_id)
    }

    /// A list of this id: the only one, but for an id that came again in another slot.
    fn find_one(&self, id: u128) -> Option<Handle> {
        let stored_id = self.stored(id);
        self.index
            .find(self.index.tag(id), |handle| self.is(handle, stored_id))
    }

    /// Lists of this id, one for each slot that has one.
    pub fn find(&self, id: u128) -> impl Iterator<Item = Handle> {
        let crowded = match self.crowded.is_empty() {
            true => &[],
            false => self.crowded.get(&id).map_or(&[][..], Vec::as_slice),
        };
        self.find_one(id).into_iter().chain(crowded.iter().copied())
    }

    /// Whether a list of this id is open, in the slot of `ts_ms` or elsewhere.
    pub fn look_up(&self, id: u128, ts_ms: i64) -> Found {
        let mut found = Found::Nowhere;
        for list in self.find(id) {
            if self.slot_number(list) == ts_ms.div_euclid(self.slot_ms) {
                return Found::InSlot(list);
            }
            found = Found::InOtherSlot;
        }
        found
    }

    /// How an id stands in a chunk.
    fn stored(&self, id: u128) -> [u32; 4] {
        let id = id.wrapping_add(self.secret);
        [0, 32, 64, 96].map(|shift| (id >> shift) as u32)
    }

    /// Opens a list that [`Self::look_up`] did not find in its slot; says whether it found one `in_other_slot`.
    pub fn insert(&mut self, list: &NewList, in_other_slot: bool) -> Handle {
        let number = list.ts_ms.div_euclid(self.slot_ms);
        let place = self.place_of(number);
        let is_crowded = in_other_slot && self.find_one(list.id).is_some();
        let stored_id = self.stored(list.id);
        let slot = self.places[place as usize].as_mut();
        let slot = slot.expect("a numbered slot has its place");
        let n_words = list.n_words(slot.catalogue.is_some());
        let mut cost = list_bytes(n_words);
        let chunk = match slot.chunks.last() {
            Some(chunk) if self.chunks.has_room(*chunk, n_words) => *chunk,
            last => {
                cost += last.map_or(0, |chunk| self.chunks.n_unused(*chunk) as u64 * 4);
                let chunk = self.chunks.open(place, n_words, last.is_none());
                slot.chunks.push(chunk);
                chunk
            }
        };
        let stamp = Stamp {
            id: stored_id,
            ts_in_slot_ms: list.ts_ms.rem_euclid(self.slot_ms) as u32,
            arrival: self.n_arrived,
        };
        let handle = self.chunks.append(chunk, n_words, |words| {
            list.write(stamp, slot.catalogue.as_deref(), words);
        });
        if is_crowded {
            cost += CROWDED_BYTES;
            slot.crowded.push(list.id);
            self.crowded.entry(list.id).or_default().push(handle);
        } else {
            let chunks = &self.chunks;
            self.index
                .insert(self.index.tag(list.id), handle, &|other| chunks.may_live(other));
        }
        slot.bytes += cost;
        slot.n_lists += 1;
        self.bytes += cost;
        self.n_lists += 1;
        self.n_arrived = self.n_arrived.wrapping_add(1);
        handle
    }

    /// The place of a slot, which is opened if need be.
    fn place_of(&mut self, number: i64) -> u32 {
        if self.last.0 != number {
            let place = match self.by_number.get(&number) {
                Some(place) => *place,
                None => self.open(number),
            };
            self.last = (number, place);
        }
        self.last.1
    }

    fn open(&mut self, number: i64) -> u32 {
        let slot = OpenSlot {
            number,
            catalogue: self.catalogue.clone(),
            chunks: Vec::new(),
            n_lists: 0,
            off_list: HashMap::default(),
            crowded: Vec::new(),
            tally: SlotTally::new(self.width),
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

    /// Records a click on `item`, and tells what it did; an item that is not in the list is remembered.
    pub fn click(&mut self, handle: Handle, item: u64) -> Hit {
        let list = self.list(handle);
        let (position, mask) = (list.position(item), list.mask_at());
        let Some(position) = position else {
            let max = self.max_off_list;
            let slot = self.slot_mut(handle);
            let before = slot.bytes;
            let hit = slot.click_off_list(handle, item, max);
            self.bytes += self.slot(handle).bytes - before;
            return hit;
        };
        let word = &mut self.chunks.words_mut(handle)[mask.start + position / 32];
        let bit = 1 << (position % 32);
        if *word & bit != 0 {
            return Hit::Repeat;
        }
        *word |= bit;
        Hit::First
    }

    /// Whether a click on this item would be a repeat.
    pub fn has_click(&self, handle: Handle, item: u64) -> bool {
        let list = self.list(handle);
        match list.position(item) {
            Some(position) => list.mask()[position / 32] >> (position % 32) & 1 != 0,
            None => self.off_list(handle).contains(&item),
        }
    }

    pub fn ts_ms(&self, handle: Handle) -> i64 {
        let list = self.list(handle);
        self.slot_number(handle) * self.slot_ms + i64::from(list.ts_in_slot_ms())
    }

    /// The order in which two open lists came, which is that of their offsets.
    pub fn order(&self, one: Handle, other: Handle) -> Ordering {
        let [one, other] = [one, other].map(|handle| self.list(handle).arrival());
        // No two open lists are 2^31 arrivals apart.
        one.wrapping_sub(other).cast_signed().cmp(&0)
    }

    pub fn slot_number(&self, handle: Handle) -> i64 {
        self.slot(handle).number
    }

    pub fn arms(&self, handle: Handle) -> &[ArmId] {
        self.list(handle).arms()
    }

    pub fn outcome(&self, handle: Handle) -> ListOutcome<'_> {
        let list = self.list(handle);
        ListOutcome {
            n_items: list.n_items() as u32,
            clicked: list.mask(),
            n_off_list: self.off_list(handle).len() as u32,
        }
    }

    /// Distinct off-list items clicked, as far as they are remembered.
    pub fn off_list(&self, handle: Handle) -> &[u64] {
        let off_list = &self.slot(handle).off_list;
        if off_list.is_empty() {
            return &[];
        }
        off_list.get(&handle).map_or(&[], Vec::as_slice)
    }

    /// The catalogue that a list counts by, and the places in it of the list's items in rank order.
    pub fn places(&self, handle: Handle) -> Option<(&Catalogue, &[u32])> {
        let catalogue = self.slot(handle).catalogue.as_deref()?;
        Some((catalogue, self.list(handle).places()))
    }

    /// Adds to the first columns of a list's arms in its slot; notes the time of the list, where it is a new one.
    pub fn add(&mut self, handle: Handle, contribution: &[i64], is_new_list: bool) {
        let (place, words) = self.chunks.owned(handle);
        let slot = self.places[place as usize].as_mut();
        let slot = slot.expect("a handle lives no longer than its slot");
        if !slot.tally.has_fresh() {
            self.fresh.push(place);
        }
        // Its places do not matter here.
        let list = OpenList::at(words, false);
        for arm in list.arms() {
            let (row, is_new) = slot.tally.row(*arm);
            let list_ms = is_new_list.then(|| list.ts_in_slot_ms());
            slot.tally.add(row, contribution, list_ms);
            if is_new {
                let bytes = SlotTally::row_bytes(self.width);
                slot.bytes += bytes;
                self.bytes += bytes;
            }
        }
    }

    /// Hands over what is fresh in every slot: begin of the slot, arm, largest time of a fresh list, sums. Says whether
    /// a sum has run over.
    pub fn hand_over(&mut self, mut to: impl FnMut(i64, ArmId, Option<i64>, &[i64])) -> bool {
        let mut overflowed = false;
        for place in self.fresh.drain(..) {
            if let Some(slot) = &mut self.places[place as usize] {
                slot.hand_over(self.slot_ms, &mut to);
                overflowed |= slot.tally.overflowed();
            }
        }
        overflowed
    }

    /// Whether the list that stands says the same as one that came again.
    pub fn same_content(&self, handle: Handle, other: &NewList) -> bool {
        self.ts_ms(handle) == other.ts_ms && self.list(handle).is_same(other)
    }

    /// Takes out the first slot before `frontier`, in the order of time.
    pub fn take_before(&mut self, frontier: i64) -> Option<OpenSlot> {
        let (number, place) = self.by_number.first_key_value()?;
        if *number >= frontier {
            return None;
        }
        let place = *place;
        self.by_number.pop_first();
        self.last = NO_SLOT;
        let slot = self.places[place as usize].take();
        self.free.push(place);
        let slot = slot.expect("a numbered slot has its place");
        self.n_lists -= slot.n_lists;
        self.bytes -= slot.bytes;
        Some(slot)
    }

    /// Ends a slot that was taken out; tells what its lists have shown, where a catalogue is known.
    pub fn bury(&mut self, slot: OpenSlot) -> ShownLists {
        let mut shown = ShownLists::default();
        if slot.catalogue.is_some() {
            let start_ms = slot.number * self.slot_ms;
            let lists = slot.chunks.iter().map(|chunk| self.chunks.all(*chunk));
            lists
                .flat_map(|words| OpenList::all(words, true))
                .for_each(|list| shown.push(list.arms(), start_ms, list.places()));
        }
        slot.chunks.iter().for_each(|chunk| self.chunks.close(*chunk));
        for id in &slot.crowded {
            if let Some(lists) = self.crowded.get_mut(id) {
                lists.retain(|list| self.chunks.may_live(*list));
                if lists.is_empty() {
                    self.crowded.remove(id);
                }
            }
        }
        if self.n_lists == 0 {
            self.index.clear();
        }
        shown
    }

    /// Gives back the spare capacity of slot `number`, once no list can join it any more.
    pub fn close(&mut self, number: i64) {
        if let Some(place) = self.by_number.get(&number) {
            let slot = self.places[*place as usize].as_ref();
            let slot = slot.expect("a numbered slot has its place");
            if let Some(chunk) = slot.chunks.last() {
                self.chunks.shrink(*chunk);
            }
        }
    }

    /// Gives some of the memory back that a spike has left. Takes a bounded time.
    pub fn tidy(&mut self) {
        self.chunks.tidy();
        let chunks = &self.chunks;
        self.index
            .tidy(self.n_lists as usize, &|list| chunks.may_live(list));
    }
}

impl OpenSlot {
    /// Hands over what is fresh: begin of the slot, arm, largest time of a fresh list, sums.
    pub fn hand_over(&mut self, slot_ms: i64, mut to: impl FnMut(i64, ArmId, Option<i64>, &[i64])) {
        let start_ms = self.number * slot_ms;
        self.tally.hand_over(|arm, last_ms, sums| {
            to(start_ms, arm, last_ms.map(|ms| start_ms + i64::from(ms)), sums);
        });
    }

    fn click_off_list(&mut self, list: Handle, item: u64, max: usize) -> Hit {
        let seen = self.off_list.entry(list).or_default();
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

fn list_bytes(n_words: usize) -> u64 {
    n_words as u64 * 4 + INDEX_BYTES
}
