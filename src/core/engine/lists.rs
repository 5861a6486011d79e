//! Lists of unsettled slots, and lists of which copies may still come, by request id.
//!
//! ```text
//! slots  ──▶ OpenSlot { chunks ──▶ [ list │ list │ … ] [ list │ … ], tally }
//! store  ──▶ handle of the list of an id
//! ```
//! A list of 10 items in one arm takes 80 bytes and about 16 in the index, plus 40 if the places of its items in a catalogue
//! are kept. A slot leaves as a whole: its chunks are freed, which invalidates all handles into them. Growth never copies or
//! moves a list.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::sync::Arc;

use foldhash::HashMap;

use super::arms::ArmId;
use super::chunks::ChunkId;
use super::contributions::Contributions;
use super::open_list::{self, OpenList, Stamp};
use super::outcome::ClickResult;
use super::refused::RefusedInArm;
use super::settling::ClosedSlot;
use super::store::{Handles, IndexedKind, LookupKey, Store};
use super::tally::SlotTally;
use crate::metrics::ListOutcome;
use crate::metrics::catalogue::Catalogue;

pub use super::chunks::ChunkHandle;
pub use super::open_list::NewList;

/// The lists of one slot that a partition has open.
#[derive(Debug)]
pub struct OpenSlot {
    /// Start of the slot, Unix ms.
    pub start_ms: i64,
    /// The catalogue of its lists, kept even after a reload so that their contributions can be subtracted again.
    catalogue: Option<Arc<Catalogue>>,
    /// Lists are appended to the last one.
    chunks: Vec<ChunkId>,
    n_lists: u64,
    /// Distinct off-list items clicked, by list, in the order of offsets.
    off_list: HashMap<ChunkHandle, Vec<u64>>,
    /// Ids of lists that share their id with others.
    crowded: Vec<u128>,
    /// Sums that its lists and clicks have added since the last hand-over, by arm.
    fresh: Option<Box<SlotTally>>,
    bytes: u64,
}

/// The key of a row that is handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArmInSlot {
    pub arm: ArmId,
    /// Start of the slot, Unix ms.
    pub start_ms: i64,
    /// Largest time of a list since the last hand-over, Unix ms.
    pub last_list_ms: Option<i64>,
}

/// Contribution of a list to the sums of its arms before its first click.
#[derive(Debug, Clone, Copy)]
pub struct UnclickedContribution<'a> {
    pub of_length: LengthContribution<'a>,
    /// Places in rank order, if the slot uses a catalogue.
    pub places: &'a [u32],
    /// Terms of the catalogue, for the columns from `first` on.
    pub of_catalogue: &'a [i64],
    pub first: usize,
}

/// Part of a contribution that depends on the list's length.
#[derive(Debug, Clone, Copy)]
pub enum LengthContribution<'a> {
    /// Its contribution is cached, and usually it is only counted.
    Remembered(&'a Contributions),
    /// Terms for the first columns.
    Terms(&'a [i64]),
}

/// Effect of a click on a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hit {
    /// The first click on the item at this position; its bit is now set.
    First(usize),
    Repeat,
    OffList,
}

impl Hit {
    pub fn result(self) -> ClickResult {
        match self {
            Hit::First(_) => ClickResult::Matched,
            Hit::Repeat => ClickResult::Repeat,
            Hit::OffList => ClickResult::OffList,
        }
    }
}

/// Relation of a new list to the others of its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListRelation {
    /// A copy: of the lists near its time, this one has the lowest offset.
    CopyOf(ChunkHandle),
    /// Another list: all others are farther away in time.
    Another,
    /// No other list of its id is known.
    Only,
}

/// Maximum cost of the index for each record: just after its segments were split.
pub const INDEX_BYTES: u64 = 23;
/// Maximum cost of an off-list item: the item, and the entry of its list in the map.
pub const OFF_LIST_BYTES: u64 = 72;
/// Maximum cost of a refused click in an arm: itself, and the entry of its slot in the map.
const REFUSED_BYTES: u64 = 96;
/// Maximum cost of a list that shares its id with others.
const CROWDED_BYTES: u64 = 176;
/// Words of a slot's first chunk at the start, so that a quiet slot stays small.
const FIRST_WORDS: usize = 48;
/// Bytes of a slot besides its lists and rows: itself, its number, and the unused end of its first chunk.
const SLOT_BYTES: u64 = (size_of::<Option<OpenSlot>>() + size_of::<u32>() * FIRST_WORDS + 64) as u64;
/// Number of tallies kept for the next slots, and their maximum size.
const SPARE: usize = 16;
const MAX_SPARE_BYTES: u64 = 64 << 10;
const NO_SLOT: (i64, u32) = (i64::MIN, 0);

/// The lists of one id. No two have the same time: one would be a copy.
#[derive(Debug, Default)]
struct Crowd {
    by_time: BTreeMap<i64, Crowded>,
    n_arrived: u32,
}

/// A list among others of its id.
#[derive(Debug, Clone, Copy)]
pub struct Crowded {
    /// Rank in the order of offsets.
    pub arrival: u32,
    pub list: ChunkHandle,
}

#[derive(Debug)]
pub struct OpenLists {
    slot_ms: i64,
    /// Maximum distance in time between a list and a copy of it.
    same_list_ms: i64,
    max_off_list: usize,
    /// Columns of a slot's sums.
    width: usize,
    /// Slots keep sums of their changes.
    tracks_live: bool,
    /// The catalogue for slots that open from now on.
    catalogue: Option<Arc<Catalogue>>,
    /// Lists of an id, if several were open at the same time.
    crowded: HashMap<u128, Crowd>,
    /// Refused clicks on the lists of a slot, once for each arm of the list, by the place of the slot.
    refused: HashMap<u32, Vec<RefusedInArm>>,
    by_number: BTreeMap<i64, u32>,
    /// Settled slots, by number: copies of their lists may still come.
    settled: BTreeMap<i64, u32>,
    /// Start and place of the last slot that a list joined: most lists join the same one.
    last: (i64, u32),
    places: Vec<Option<OpenSlot>>,
    free: Vec<u32>,
    /// Slots with sums to hand over; some may have been closed since.
    fresh: Vec<u32>,
    /// Tallies without a slot, at most [`SPARE`].
    #[expect(clippy::vec_box, reason = "slots hold them in boxes, and these go to and fro")]
    spare: Vec<Box<SlotTally>>,
    n_lists: u64,
    n_settled: u64,
    bytes: u64,
}

impl OpenLists {
    pub fn new(slot_ms: i64, same_list_ms: i64, max_off_list: u32, width: usize) -> OpenLists {
        OpenLists {
            slot_ms,
            same_list_ms,
            max_off_list: max_off_list as usize,
            width,
            tracks_live: true,
            catalogue: None,
            crowded: HashMap::default(),
            refused: HashMap::default(),
            by_number: BTreeMap::new(),
            settled: BTreeMap::new(),
            last: NO_SLOT,
            places: Vec::new(),
            free: Vec::new(),
            fresh: Vec::new(),
            spare: Vec::new(),
            n_lists: 0,
            n_settled: 0,
            bytes: 0,
        }
    }

    /// The same, without sums of changes.
    pub fn without_live(self) -> OpenLists {
        OpenLists {
            tracks_live: false,
            ..self
        }
    }

    pub fn tracks_live(&self) -> bool {
        self.tracks_live
    }

    pub fn len(&self) -> u64 {
        self.n_lists
    }

    /// Lists of settled slots that are kept for copies of them.
    pub fn n_settled(&self) -> u64 {
        self.n_settled
    }

    /// Bytes of open lists and of those that are kept for copies, with their index.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Counts lists with this catalogue in slots that open from now on.
    pub fn set_catalogue(&mut self, catalogue: Arc<Catalogue>) {
        self.catalogue = Some(catalogue);
    }

    /// Returns the maximum that a list adds to [`Self::bytes`]: itself, its slot, the unused end of a chunk that it does not
    /// fit in, two entries among the lists of its id, and a row for each of its arms.
    pub fn cost(&self, n_items: usize, n_arms: usize) -> u64 {
        let n_words = open_list::n_words(n_items, n_arms, self.catalogue.is_some());
        list_bytes(n_words) + SLOT_BYTES + n_words as u64 * 4 + 2 * CROWDED_BYTES + self.cost_of_rows(n_arms)
    }

    /// Returns the maximum that a click on a list adds to [`Self::bytes`].
    pub fn cost_of_click(&self, store: &Store, handle: ChunkHandle) -> u64 {
        let list = OpenList::at(store.chunks.words(handle), false);
        OFF_LIST_BYTES + self.cost_of_rows(list.arms().len())
    }

    fn cost_of_rows(&self, n_arms: usize) -> u64 {
        n_arms as u64 * SlotTally::max_row_bytes(self.width)
    }

    fn slot(&self, store: &Store, handle: ChunkHandle) -> &OpenSlot {
        let slot = self.places[store.chunks.owned(handle).0 as usize].as_ref();
        slot.expect("a handle lives no longer than its slot")
    }

    fn slot_mut(&mut self, store: &Store, handle: ChunkHandle) -> &mut OpenSlot {
        let slot = self.places[store.chunks.owned(handle).0 as usize].as_mut();
        slot.expect("a handle lives no longer than its slot")
    }

    fn list<'a>(&self, store: &'a Store, handle: ChunkHandle) -> OpenList<'a> {
        let (place, words) = store.chunks.owned(handle);
        let slot = self.places[place as usize].as_ref();
        OpenList::at(words, slot.is_some_and(|slot| slot.catalogue.is_some()))
    }

    /// Adds the lists of this id with such a time. `found` is the store's result for the id. Any two are farther apart than
    /// copies.
    pub fn add_of_times(
        &self,
        store: &Store,
        id: u128,
        found: Handles,
        times_ms: RangeInclusive<i64>,
        lists: &mut Vec<Crowded>,
    ) {
        if let Some(crowd) = self.crowd_of(id) {
            lists.extend(crowd.by_time.range(times_ms).map(|(_, other)| *other));
        } else if !found.list.is_none() && times_ms.contains(&self.ts_ms(store, found.list)) {
            let (arrival, list) = (0, found.list);
            lists.push(Crowded { arrival, list });
        }
    }

    /// The lists of an id, if there are several.
    fn crowd_of(&self, id: u128) -> Option<&Crowd> {
        // The common case.
        if self.crowded.is_empty() {
            return None;
        }
        self.crowded.get(&id)
    }

    /// Returns the relation of a list with this id and time to the known ones.
    pub fn look_up(&self, store: &Store, id: u128, found: Handles, ts_ms: i64) -> ListRelation {
        let crowd = self.crowd_of(id);
        // The common case.
        if found.list.is_none() && crowd.is_none() {
            return ListRelation::Only;
        }
        let near_ms = ts_ms - self.same_list_ms..=ts_ms + self.same_list_ms;
        let original = match crowd {
            Some(crowd) => {
                let near = crowd.by_time.range(near_ms).map(|(_, other)| other);
                near.min_by_key(|other| other.arrival).map(|other| other.list)
            }
            None => Some(found.list).filter(|list| near_ms.contains(&self.ts_ms(store, *list))),
        };
        original.map_or(ListRelation::Another, ListRelation::CopyOf)
    }

    /// The latest time of a list that one of this id and time is a copy of. Unlike [`Self::look_up`] it does not depend on their
    /// order.
    pub fn latest_original_ms(&self, store: &Store, id: u128, found: Handles, ts_ms: i64) -> Option<i64> {
        let near_ms = ts_ms - self.same_list_ms..=ts_ms + self.same_list_ms;
        match self.crowd_of(id) {
            Some(crowd) => crowd.by_time.range(near_ms).next_back().map(|(ms, _)| *ms),
            None if found.list.is_none() => None,
            None => Some(self.ts_ms(store, found.list)).filter(|ms| near_ms.contains(ms)),
        }
    }

    /// Opens the slot of a time if necessary. Returns its start, Unix ms, and its catalogue.
    pub fn slot_at(&mut self, ts_ms: i64) -> (i64, Option<&Catalogue>) {
        let (start_ms, place) = self.slot_of(ts_ms);
        let slot = self.places[place as usize].as_ref();
        let slot = slot.expect("a numbered slot has its place");
        (start_ms, slot.catalogue.as_deref())
    }

    /// Opens a list that [`Self::look_up`] does not find to be a copy, and adds its contribution to the rows of its arms.
    // Inlined into its one caller, so the arguments stay in registers.
    #[inline(always)]
    pub fn insert(
        &mut self,
        store: &mut Store,
        key: &LookupKey,
        found: Handles,
        standing: ListRelation,
        list: &NewList,
        worth: &UnclickedContribution,
    ) -> ChunkHandle {
        let slot = self.slot_of(list.ts_ms);
        let handle = self.append(store, key, found, standing, slot, list, worth.places);
        self.n_lists += 1;
        let (start_ms, place) = slot;
        let list_ms = (list.ts_ms - start_ms) as u32;
        self.add_to_rows(place, list.arms, |tally, row| {
            tally.note_time(row, list_ms);
            match worth.of_length {
                LengthContribution::Remembered(contributions) => {
                    tally.count(row, list.items.len() as u32, contributions);
                }
                LengthContribution::Terms(terms) => tally.add(row, 0, terms),
            }
            // A row that is only counted has no sums.
            if !worth.of_catalogue.is_empty() {
                tally.add(row, worth.first, worth.of_catalogue);
            }
        });
        handle
    }

    /// Keeps a list of a settled slot, so that copies of it are found. It adds nothing to the sums, and clicks do not match it.
    pub fn insert_settled(
        &mut self,
        store: &mut Store,
        key: &LookupKey,
        found: Handles,
        standing: ListRelation,
        list: &NewList,
    ) {
        let number = list.ts_ms.div_euclid(self.slot_ms);
        let place = match self.settled.get(&number) {
            Some(place) => *place,
            None => {
                // Without a catalogue, because the list adds to no sums.
                let place = self.new_slot(number, None);
                self.settled.insert(number, place);
                place
            }
        };
        let slot = (number * self.slot_ms, place);
        self.append(store, key, found, standing, slot, list, &[]);
        self.n_settled += 1;
    }

    /// Appends a list to the slot with this start and place, and indexes it.
    #[inline(always)]
    #[expect(
        clippy::too_many_arguments,
        reason = "inlined into two callers, so they stay in registers"
    )]
    fn append(
        &mut self,
        store: &mut Store,
        key: &LookupKey,
        found: Handles,
        standing: ListRelation,
        (start_ms, place): (i64, u32),
        list: &NewList,
        places: &[u32],
    ) -> ChunkHandle {
        let slot = self.places[place as usize].as_mut();
        let slot = slot.expect("a numbered slot has its place");
        debug_assert_eq!(
            places.len(),
            slot.catalogue.as_ref().map_or(0, |_| list.items.len())
        );
        let n_words = list.n_words(slot.catalogue.is_some());
        let mut cost = list_bytes(n_words);
        let chunk = match slot.chunks.last() {
            Some(chunk) if store.chunks.has_room(*chunk, n_words) => *chunk,
            last => {
                cost += last.map_or(0, |chunk| store.chunks.n_unused(*chunk) as u64 * 4);
                let chunk = store.chunks.open(place, &slot.chunks, n_words, FIRST_WORDS);
                slot.chunks.push(chunk);
                chunk
            }
        };
        // The index holds one list for each id. Further ones are found through the crowd of the id.
        let is_only = found.list.is_none();
        let stamp = Stamp {
            id: key.id,
            kind: if is_only {
                IndexedKind::List
            } else {
                IndexedKind::FurtherList
            },
            ts_in_slot_ms: (list.ts_ms - start_ms) as u32,
        };
        let (handle, words) = store.chunks.append(chunk, n_words);
        list.write(stamp, places, words);
        if is_only {
            store.index(key, handle);
        }
        slot.bytes += cost;
        slot.n_lists += 1;
        self.bytes += cost;
        if standing != ListRelation::Only {
            self.join_crowd(store, list.id, found, (list.ts_ms, handle));
        }
        handle
    }

    /// Adds a list and its time to the others of its id: those already grouped, or else the one that was found.
    #[cold]
    #[inline(never)]
    fn join_crowd(&mut self, store: &Store, id: u128, found: Handles, list: (i64, ChunkHandle)) {
        let is_new = self.crowd_of(id).is_none();
        // A crowd exists only once an id has a second list. The first one arrived earlier, so it gets the lower rank.
        let first = is_new.then(|| (self.ts_ms(store, found.list), found.list));
        for (ts_ms, list) in first.into_iter().chain([list]) {
            let crowd = self.crowded.entry(id).or_default();
            let arrival = crowd.n_arrived;
            crowd.by_time.insert(ts_ms, Crowded { arrival, list });
            crowd.n_arrived += 1;
            let slot = self.slot_mut(store, list);
            slot.crowded.push(id);
            slot.bytes += CROWDED_BYTES;
            self.bytes += CROWDED_BYTES;
        }
    }

    /// Calls `add` with the row of each of these arms in the slot at `place`.
    #[inline(always)]
    fn add_to_rows(&mut self, place: u32, arms: &[ArmId], mut add: impl FnMut(&mut SlotTally, usize)) {
        let slot = self.places[place as usize].as_mut();
        let slot = slot.expect("a numbered slot has its place");
        if arms.is_empty() || !self.tracks_live {
            return;
        }
        let tally = match &mut slot.fresh {
            Some(tally) => tally,
            none => {
                self.fresh.push(place);
                let spare = self.spare.pop();
                none.insert(spare.unwrap_or_else(|| Box::new(SlotTally::new(self.width))))
            }
        };
        let before = tally.bytes();
        for arm in arms {
            let row = tally.row(*arm);
            add(tally, row);
        }
        let more = tally.bytes() - before;
        slot.bytes += more;
        self.bytes += more;
    }

    /// Opens the slot of a time if necessary. Returns its start and place.
    #[inline(always)]
    fn slot_of(&mut self, ts_ms: i64) -> (i64, u32) {
        // One unsigned comparison covers both ends of the slot: times before it wrap around. A division would cost more than
        // all the rest.
        if ts_ms.wrapping_sub(self.last.0) as u64 >= self.slot_ms as u64 {
            self.select_slot_of(ts_ms);
        }
        self.last
    }

    #[inline(never)]
    fn select_slot_of(&mut self, ts_ms: i64) {
        let number = ts_ms.div_euclid(self.slot_ms);
        let place = match self.by_number.get(&number) {
            Some(place) => *place,
            None => self.open(number),
        };
        self.last = (number * self.slot_ms, place);
    }

    fn open(&mut self, number: i64) -> u32 {
        let place = self.new_slot(number, self.catalogue.clone());
        self.by_number.insert(number, place);
        place
    }

    /// Adds a slot and returns its place.
    fn new_slot(&mut self, number: i64, catalogue: Option<Arc<Catalogue>>) -> u32 {
        let slot = OpenSlot {
            start_ms: number * self.slot_ms,
            catalogue,
            chunks: Vec::new(),
            n_lists: 0,
            off_list: HashMap::default(),
            crowded: Vec::new(),
            fresh: None,
            bytes: SLOT_BYTES,
        };
        self.bytes += SLOT_BYTES;
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            (self.places.len() - 1) as u32
        });
        self.places[place as usize] = Some(slot);
        place
    }

    /// Records a click on `item` and returns its effect. An item that is not in the list is remembered.
    pub fn click(&mut self, store: &mut Store, handle: ChunkHandle, item: u64) -> Hit {
        let list = self.list(store, handle);
        let Some(position) = list.position(item) else {
            let max = self.max_off_list;
            let slot = self.slot_mut(store, handle);
            let before = slot.bytes;
            let hit = slot.click_off_list(handle, item, max);
            let more = slot.bytes - before;
            self.bytes += more;
            return hit;
        };
        let at = list.mask_at().start + position / 32;
        let word = &mut store.chunks.words_mut(handle)[at];
        let bit = 1 << (position % 32);
        if *word & bit != 0 {
            return Hit::Repeat;
        }
        *word |= bit;
        Hit::First(position)
    }

    /// Returns the arms of a list in which a refused click counts, with half of the hash of the list's user or, without one, of
    /// the click's.
    pub fn refused_in<'a>(
        &self,
        store: &'a Store,
        handle: ChunkHandle,
        user: Option<NonZeroU32>,
    ) -> impl Iterator<Item = RefusedInArm> + use<'a> {
        // Its places do not matter here.
        let list = OpenList::at(store.chunks.words(handle), false);
        let user = list.user().or(user);
        list.arms()
            .iter()
            .map(move |arm| RefusedInArm { arm: *arm, user })
    }

    /// Returns the maximum that a refused click on a list adds to [`Self::bytes`].
    pub fn cost_of_refused(&self, store: &Store, handle: ChunkHandle) -> u64 {
        let list = OpenList::at(store.chunks.words(handle), false);
        list.arms().len() as u64 * REFUSED_BYTES
    }

    /// Counts a refused click on a list. It settles with the list.
    pub fn refuse(&mut self, store: &Store, handle: ChunkHandle, user: Option<NonZeroU32>) {
        let (place, _) = store.chunks.owned(handle);
        let refused = self.refused_in(store, handle, user);
        self.refused.entry(place).or_default().extend(refused);
        let more = self.cost_of_refused(store, handle);
        self.slot_mut(store, handle).bytes += more;
        self.bytes += more;
    }

    /// Returns whether a click on this item would be a repeat.
    pub fn has_click(&self, store: &Store, handle: ChunkHandle, item: u64) -> bool {
        let list = self.list(store, handle);
        match list.position(item) {
            Some(position) => list.mask()[position / 32] >> (position % 32) & 1 != 0,
            None => self.off_list(store, handle).contains(&item),
        }
    }

    pub fn shows(&self, store: &Store, handle: ChunkHandle, item: u64) -> bool {
        // Its places do not matter here.
        let list = OpenList::at(store.chunks.words(handle), false);
        list.position(item).is_some()
    }

    pub fn ts_ms(&self, store: &Store, handle: ChunkHandle) -> i64 {
        let list = OpenList::at(store.chunks.words(handle), false);
        self.start_ms(store, handle) + i64::from(list.ts_in_slot_ms())
    }

    /// Returns the start of a list's slot, Unix ms.
    pub fn start_ms(&self, store: &Store, handle: ChunkHandle) -> i64 {
        self.slot(store, handle).start_ms
    }

    pub fn outcome<'a>(&self, store: &'a Store, handle: ChunkHandle) -> ListOutcome<'a> {
        let (place, words) = store.chunks.owned(handle);
        let slot = self.places[place as usize].as_ref();
        let slot = slot.expect("a handle lives no longer than its slot");
        let list = OpenList::at(words, slot.catalogue.is_some());
        ListOutcome {
            n_items: list.n_items() as u32,
            clicked: list.mask(),
            n_off_list: slot.off_list(handle).len() as u32,
        }
    }

    /// Distinct off-list items clicked, as far as they are remembered.
    pub fn off_list(&self, store: &Store, handle: ChunkHandle) -> &[u64] {
        self.slot(store, handle).off_list(handle)
    }

    /// The catalogue that a list counts by, and the places in it of the list's items in rank order.
    pub fn places<'a>(&'a self, store: &'a Store, handle: ChunkHandle) -> Option<(&'a Catalogue, &'a [u32])> {
        let catalogue = self.slot(store, handle).catalogue.as_deref()?;
        Some((catalogue, self.list(store, handle).places()))
    }

    /// Adds these terms to the columns from `first` on, of a list's arms in its slot.
    pub fn add(&mut self, store: &Store, handle: ChunkHandle, first: usize, terms: &[i64]) {
        let (place, words) = store.chunks.owned(handle);
        // Its places do not matter here.
        let list = OpenList::at(words, false);
        self.add_to_rows(place, list.arms(), |tally, row| tally.add(row, first, terms));
    }

    /// Counts the first click on a list of this length, in the rows of its arms.
    pub fn count_click(
        &mut self,
        store: &Store,
        handle: ChunkHandle,
        n_items: usize,
        position: usize,
        contributions: &Contributions,
    ) {
        let (place, words) = store.chunks.owned(handle);
        // Its places do not matter here.
        let list = OpenList::at(words, false);
        self.add_to_rows(place, list.arms(), |tally, row| {
            tally.count_click(row, n_items, position, contributions);
        });
    }

    /// Hands over the sums of all slots; returns whether one has overflowed.
    pub fn hand_over(
        &mut self,
        contributions: &Contributions,
        room: &mut Vec<i64>,
        mut to: impl FnMut(ArmInSlot, &[i64]),
    ) -> bool {
        let mut overflowed = false;
        for place in std::mem::take(&mut self.fresh) {
            // The slot may have been closed since, and its place may hold one without anything to hand over.
            if let Some(mut slot) = self.places[place as usize].take() {
                overflowed |= self.hand_over_slot(&mut slot, contributions, room, &mut to);
                self.places[place as usize] = Some(slot);
            }
        }
        overflowed
    }

    /// Hands over the sums of a slot; returns whether one has overflowed.
    pub fn hand_over_slot(
        &mut self,
        slot: &mut OpenSlot,
        contributions: &Contributions,
        room: &mut Vec<i64>,
        mut to: impl FnMut(ArmInSlot, &[i64]),
    ) -> bool {
        let Some(mut tally) = slot.fresh.take() else {
            return false;
        };
        let (start_ms, bytes) = (slot.start_ms, tally.bytes());
        let overflowed = tally.hand_over(contributions, room, |arm, last_ms, sums| {
            let last_list_ms = last_ms.map(|ms| start_ms + i64::from(ms));
            let of = ArmInSlot {
                arm,
                start_ms,
                last_list_ms,
            };
            to(of, sums);
        });
        slot.bytes -= bytes;
        self.bytes -= bytes;
        // Reuse tallies, except large ones that a spike has left.
        if self.spare.len() < SPARE && bytes <= MAX_SPARE_BYTES {
            self.spare.push(tally);
        }
        overflowed
    }

    /// Returns whether a list shows the same items in the same arms as its copy.
    pub fn same_content(&self, store: &Store, handle: ChunkHandle, copy: &NewList) -> bool {
        self.list(store, handle).has_content_of(copy)
    }

    /// Takes out the first slot before `frontier`, in the order of time, and its place. It counts as open until it is
    /// [closed](Self::close) or [kept](Self::keep).
    pub fn take_before(&mut self, frontier: i64) -> Option<(u32, OpenSlot)> {
        let (number, place) = self.by_number.first_key_value()?;
        if *number >= frontier {
            return None;
        }
        let place = *place;
        self.by_number.pop_first();
        // The cached slot may be this one.
        self.last = NO_SLOT;
        let slot = self.places[place as usize].take();
        Some((place, slot.expect("a numbered slot has its place")))
    }

    /// End of a slot, Unix ms.
    pub fn end_ms(&self, slot: &OpenSlot) -> i64 {
        slot.start_ms + self.slot_ms
    }

    /// Ends a slot that was taken out and handed over: its lists are final and no longer reachable.
    pub fn close(&mut self, store: &mut Store, (place, slot): (u32, OpenSlot)) -> ClosedSlot {
        debug_assert!(slot.fresh.is_none(), "it was handed over");
        self.free.push(place);
        self.n_lists -= slot.n_lists;
        self.bytes -= slot.bytes;
        self.leave_crowds(&slot);
        let chunks = slot
            .chunks
            .iter()
            .map(|chunk| (*chunk, Some(store.chunks.take(*chunk))));
        ClosedSlot {
            start_ms: slot.start_ms,
            end_ms: slot.start_ms + self.slot_ms,
            catalogue: slot.catalogue,
            chunks: chunks.collect(),
            off_list: slot.off_list,
            refused: self.refused.remove(&place).unwrap_or_default(),
            bytes: slot.bytes,
        }
    }

    /// Ends a slot likewise, but keeps its lists where they are until [`Self::forget_before`]: copies of them may still come.
    pub fn keep(&mut self, store: &mut Store, (place, mut slot): (u32, OpenSlot)) -> ClosedSlot {
        debug_assert!(slot.fresh.is_none(), "it was handed over");
        self.n_lists -= slot.n_lists;
        self.n_settled += slot.n_lists;
        if let Some(chunk) = slot.chunks.last() {
            store.chunks.shrink(*chunk);
        }
        // Copies are compared by items and arms alone, so other clicks leave with the closed slot.
        let off_list = std::mem::take(&mut slot.off_list);
        let refused = self.refused.remove(&place).unwrap_or_default();
        let n_off_list: usize = off_list.values().map(Vec::len).sum();
        let bytes = n_off_list as u64 * OFF_LIST_BYTES + refused.len() as u64 * REFUSED_BYTES;
        slot.bytes -= bytes;
        self.bytes -= bytes;
        let closed = ClosedSlot {
            start_ms: slot.start_ms,
            end_ms: slot.start_ms + self.slot_ms,
            catalogue: slot.catalogue.clone(),
            chunks: slot.chunks.iter().map(|chunk| (*chunk, None)).collect(),
            off_list,
            refused,
            bytes,
        };
        self.settled.insert(slot.start_ms.div_euclid(self.slot_ms), place);
        self.places[place as usize] = Some(slot);
        closed
    }

    /// Forgets the lists of settled slots that end by this time, Unix ms.
    pub fn forget_before(&mut self, store: &mut Store, until_ms: i64) {
        while let Some(first) = self.settled.first_entry()
            && *first.key() < until_ms.div_euclid(self.slot_ms)
        {
            let place = first.remove();
            self.free.push(place);
            let slot = self.places[place as usize].take();
            let slot = slot.expect("a numbered slot has its place");
            self.n_settled -= slot.n_lists;
            self.bytes -= slot.bytes;
            self.leave_crowds(&slot);
            for chunk in &slot.chunks {
                store.chunks.close(*chunk);
            }
        }
    }

    /// Takes the lists of a slot out of the lists of their ids.
    fn leave_crowds(&mut self, slot: &OpenSlot) {
        // An id may be noted several times. The first time removes all its lists of this slot, and the others find none.
        let times_ms = slot.start_ms..slot.start_ms + self.slot_ms;
        for id in &slot.crowded {
            if let Some(crowd) = self.crowded.get_mut(id) {
                while let Some((ts_ms, _)) = crowd.by_time.range(times_ms.clone()).next() {
                    let ts_ms = *ts_ms;
                    crowd.by_time.remove(&ts_ms);
                }
                if crowd.by_time.is_empty() {
                    self.crowded.remove(id);
                }
            }
        }
    }

    /// Gives back the spare capacity of slot `number`, once no list can join it.
    pub fn trim(&mut self, store: &mut Store, number: i64) {
        if let Some(place) = self.by_number.get(&number) {
            let slot = self.places[*place as usize].as_ref();
            let slot = slot.expect("a numbered slot has its place");
            if let Some(chunk) = slot.chunks.last() {
                store.chunks.shrink(*chunk);
            }
        }
    }
}

impl OpenSlot {
    fn off_list(&self, list: ChunkHandle) -> &[u64] {
        if self.off_list.is_empty() {
            return &[];
        }
        self.off_list.get(&list).map_or(&[], Vec::as_slice)
    }

    fn click_off_list(&mut self, list: ChunkHandle, item: u64, max: usize) -> Hit {
        if max == 0 {
            return Hit::OffList; // The bound is reached: it is not remembered.
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slot_size_matches_the_sizing_chapter() {
        let sizing = include_str!("../../../docs/sizing.md");
        let expected = format!("P × *s*/slot × {SLOT_BYTES} |");
        assert!(sizing.contains(&expected), "{expected}");
    }
}
