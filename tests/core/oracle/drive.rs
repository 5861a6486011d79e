//! Driver that feeds the records of a world to the real engine, and checks the invariants at every hand-over.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;

use abgauge_core::engine::event::{self, Batch, Body, Event, RefusedClick, Served, Side, Unreadable};
use abgauge_core::engine::outcome::{ClickResult, Counts, Outcome};
use abgauge_core::engine::settling::Settled;
use abgauge_core::engine::{Arm, ArmId, Engine, ShownLists};
use abgauge_core::ledger::{Keep, Ledger, SettledSlot};
use abgauge_core::metrics::Ranking;
use abgauge_core::metrics::catalogue::{Catalogue, NewItem};

use crate::oracle::account::{Account, ArmName, Shown, Step};
use crate::oracle::read::UNREADABLE;
use crate::oracle::recount::{arm_name, experiment_name};
use crate::oracle::world::{List, Reading, Record, Says, Shelf, T0, World};
use crate::twin::Items;

/// Engine with the sum of its hand-overs and its history.
pub struct Driver<'a> {
    pub engine: Engine,
    ledger: Ledger,
    settled: Vec<SettledSlot>,
    pub ranking: Ranking,
    pub history: Vec<Step<'a>>,
    world: &'a World,
    catalogue: Option<Arc<Catalogue>>,
    /// Names of items by all places so far.
    places: HashMap<u32, String>,
    room_bytes: u64,
    taken: Account<i64>,
    /// Frontier start(F) at the last hand-over.
    frontier_ms: Option<i64>,
    settled_all: bool,
}

impl<'a> Driver<'a> {
    pub fn new(world: &'a World, room_bytes: u64) -> Driver<'a> {
        let engine = Engine::new(world.rules.clone(), world.ranking(), world.begin_ms);
        let mut driver = Driver {
            frontier_ms: engine.frontier_ms(),
            ledger: Ledger::new(&world.ranking(), &world.keep()),
            settled: Vec::new(),
            engine,
            ranking: world.ranking(),
            history: Vec::new(),
            world,
            catalogue: None,
            places: HashMap::new(),
            room_bytes,
            taken: Account::default(),
            settled_all: false,
        };
        driver.load(0);
        driver
    }

    /// Reads a world to its end, and calls `at_hand_over` after each hand-over.
    pub fn read_all(&mut self, reading: &Reading, mut at_hand_over: impl FnMut(&Self, Account<i64>)) {
        let records = reading.merge(&self.world.logs);
        let mut rest = records.as_slice();
        let mut batches = reading.batches.iter().cycle();
        let mut hand_overs = reading.hand_overs.iter().cycle();
        let mut idles = reading.idles.iter().cycle();
        let mut reloads = reading.reloads.iter().cycle();
        while !rest.is_empty() {
            let size = batches.next().map_or(1, |size| rest.len().min(*size));
            let (batch, later) = rest.split_at(size);
            rest = later;
            self.apply(batch);
            if let Some(Some(idle)) = idles.next() {
                let newest = Side::BOTH
                    .map(|side| self.engine.newest_ms(side))
                    .into_iter()
                    .max();
                let live_end = |ahead_ms| newest.flatten().unwrap_or(T0) + ahead_ms;
                self.idle(idle.side, idle.ahead_ms.map(live_end));
            }
            if let Some(Some(number)) = reloads.next() {
                self.load(number % self.world.catalogues.len());
            }
            if hand_overs.next() == Some(&true) {
                let account = self.hand_over();
                at_hand_over(self, account);
            }
        }
    }

    /// Replaces the current catalogue with another one of the world.
    fn load(&mut self, number: usize) {
        self.history.push(Step::Catalogue(number));
        if !self.world.measures.catalogue {
            return;
        }
        let items = &self.world.catalogues[number];
        let catalogue = Arc::new(catalogue(items, self.catalogue.as_deref()));
        let places = items
            .known
            .keys()
            .map(|name| (catalogue.place(item_hash(name)), name.clone()));
        self.places.extend(places);
        self.engine.set_catalogue(Arc::clone(&catalogue));
        self.catalogue = Some(catalogue);
    }

    pub fn apply(&mut self, records: &[&'a Record]) {
        let mut batch = Batch::default();
        for record in records {
            push(&mut batch, record);
        }
        let before = self.engine.counts().clone();
        self.engine.apply(&batch, self.room_bytes);
        // This may be fewer lists than have settled, or more.
        self.settle(records.len() / 2);
        let held = self.engine.state_bytes();
        assert!(
            held <= self.room_bytes,
            "{held} bytes in a room of {}",
            self.room_bytes
        );
        let shed = |counts: &Counts| Side::BOTH.map(|side| counts.outcome(side, Outcome::Shed));
        let was_shed = shed(&before) != shed(self.engine.counts());
        for record in records {
            // In a longer batch, the shed record cannot be identified.
            let shed = was_shed && records.len() == 1;
            self.history.push(if shed {
                Step::Shed(record)
            } else {
                Step::Read(record)
            });
        }
        self.history.push(Step::BatchEnd);
    }

    pub fn idle(&mut self, side: Side, live_end_ms: Option<i64>) {
        let newest = Side::BOTH.map(|side| self.engine.newest_ms(side));
        self.engine.idle(side, live_end_ms, i64::MAX);
        assert_eq!(
            newest,
            Side::BOTH.map(|side| self.engine.newest_ms(side)),
            "an idle move has moved M"
        );
        self.history.push(Step::Idle(side, live_end_ms));
    }

    pub fn settle_all(&mut self) {
        self.engine.close_all();
        self.settled_all = true;
        self.history.push(Step::SettleAll);
    }

    /// Lets the ledger take up to `n` settled lists.
    fn settle(&mut self, n: usize) {
        let Driver {
            engine,
            ledger,
            settled,
            taken,
            ..
        } = self;
        let arms = engine.arms().to_vec();
        ledger.admit(&arms[ledger.arms().len()..]);
        engine.visit_settled(n, |reported| {
            if let Settled::Refused { start_ms, click } = &reported {
                let Arm { experiment, arm } = &arms[click.arm as usize];
                let arm = (experiment.to_string(), arm.to_string());
                let key = (*start_ms, arm, click.user.map(NonZeroU32::get));
                *taken.refused.entry(key).or_default() += 1;
            }
            settled.extend(ledger.take(reported));
        });
    }

    /// Returns what the ledger keeps.
    pub fn keep(&self) -> Keep {
        self.world.keep()
    }

    /// Returns the ledger, with everything that has settled.
    pub fn into_ledger(mut self) -> Ledger {
        self.settle(usize::MAX);
        self.ledger
    }

    /// Takes the changes and returns the account so far.
    pub fn hand_over(&mut self) -> Account<i64> {
        self.settle(usize::MAX);
        let frontier_ms = self.engine.frontier_ms();
        assert_eq!(self.engine.settled_until_ms(), frontier_ms, "all was told");
        assert!(
            self.frontier_ms <= frontier_ms,
            "F fell from {:?} to {frontier_ms:?}",
            self.frontier_ms
        );
        let changes = self.engine.take_changes();
        let taken = &mut self.taken;
        let width = self.ranking.width();
        taken.counts.add(&changes.counts);
        for (of, tally) in changes.live.iter() {
            let slot_ms = of.start_ms;
            assert!(
                Some(slot_ms) >= self.frontier_ms,
                "live sums of slot {slot_ms}, which was settled before"
            );
            let live = taken
                .live
                .entry(slot_ms)
                .or_default()
                .entry(name(&self.engine, of.arm))
                .or_default();
            add(live, tally, width);
            if let Some(ts_ms) = of.last_list_ms {
                let arm = name(&self.engine, of.arm);
                let last = taken.last_lists.entry(arm).or_insert(ts_ms);
                *last = (*last).max(ts_ms);
            }
        }
        let named = |arm| name(&self.engine, arm);
        show(&mut taken.shown, &changes.shown, &self.places, named);
        for slot in std::mem::take(&mut self.settled) {
            let start_ms = slot.start_ms;
            assert!(
                taken.settled_slots.insert(start_ms),
                "slot {start_ms} is settled twice"
            );
            assert!(
                self.settled_all || Some(start_ms) < frontier_ms,
                "slot {start_ms} is settled, but not before F = {frontier_ms:?}"
            );
            for (arm, tally) in slot.tallies.iter() {
                let arms = taken.settled.entry(start_ms).or_default();
                let mut sums = Vec::new();
                add(&mut sums, tally, width);
                assert!(
                    arms.insert(named(arm), sums).is_none(),
                    "an arm stands twice in a slot"
                );
            }
            show(&mut taken.settled_shown, &slot.shown, &self.places, named);
        }
        self.frontier_ms = frontier_ms;
        self.account()
    }

    fn account(&self) -> Account<i64> {
        let account = Account {
            n_waiting: self.engine.n_waiting(),
            n_open_lists: self.engine.n_open_lists(),
            n_folded_arms: self.engine.n_folded_arms(),
            newest_ms: Side::BOTH.map(|side| self.engine.newest_ms(side)),
            accepted_ms: self.engine.accepted_ms(),
            // At the end of a file, a frontier separates nothing.
            frontier_ms: self.engine.frontier_ms().filter(|_| !self.settled_all),
            ..self.taken.clone()
        };
        let read = |side| {
            let steps = self.history.iter();
            steps
                .filter(|step| matches!(step, Step::Read(r) | Step::Shed(r) if r.at.side == side))
                .count()
        };
        let n_waiting_rows = [self.engine.n_waiting_rows()[0], 0];
        for side in Side::BOTH {
            assert_eq!(
                account.counts.records(side) + n_waiting_rows[side as usize],
                read(side) as u64,
                "{side:?}: outcomes do not add up"
            );
        }
        account
    }
}

/// Returns the number of accepted clicks that have a result.
pub fn n_results(counts: &Counts) -> u64 {
    ClickResult::ALL.iter().map(|result| counts.result(*result)).sum()
}

fn name(engine: &Engine, id: ArmId) -> ArmName {
    let arm = engine.arm(id);
    (arm.experiment.to_string(), arm.arm.to_string())
}

/// Adds lists by the names of their items.
fn show(shown: &mut Shown, lists: &ShownLists, names: &HashMap<u32, String>, arm: impl Fn(ArmId) -> ArmName) {
    for (id, lists) in lists.by_arm() {
        for (start_ms, places) in lists {
            let items = places.iter().map(|place| names.get(place).cloned());
            let of_arm = shown.entry((start_ms, arm(id))).or_default();
            of_arm.push(items.collect());
            of_arm.sort();
        }
    }
}

/// Adds a row to a whole tally. The last columns of the row may be missing.
fn add(sums: &mut Vec<i64>, terms: &[i64], width: usize) {
    sums.resize(width, 0);
    for (sum, term) in sums.iter_mut().zip(terms) {
        *sum += term;
    }
}

/// Adds a record to a batch, like the decoder.
pub fn push(batch: &mut Batch, record: &Record) {
    let body = match &record.says {
        Says::List(list) => Body::Served(push_list(batch, list)),
        Says::Click(click) => {
            let event = event::Click {
                id: id_hash(click.id, click.shelf),
                user: None,
                ts_ms: click.ts_ms,
                item: item_hash(&click.item.to_string()),
            };
            match click.shelf {
                Shelf::Any => Body::PartialClick(event),
                Shelf::Without | Shelf::Named(_) => Body::Click(event),
            }
        }
        Says::Unreadable(click) => {
            let refused = RefusedClick {
                id: id_hash(click.id, click.shelf),
                is_partial: click.shelf == Shelf::Any,
                user: click.user.map(user_hash),
                ts_ms: click.ts_ms,
            };
            Body::Invalid(
                UNREADABLE,
                Some(batch.push_unreadable(Unreadable::Click(refused))),
            )
        }
        Says::Invalid(reason) => Body::Invalid(*reason, None),
        Says::Ignored => Body::Ignored,
    };
    batch.events.push(Event::new(record.at, body));
}

fn push_list(batch: &mut Batch, list: &List) -> Served {
    let items_from = batch.items.len() as u32;
    batch
        .items
        .extend(list.items.iter().map(|item| item_hash(&item.to_string())));
    batch.positions.resize(items_from as usize, 0);
    batch.positions.resize(batch.items.len(), list.position);
    let arms_from = batch.arms.len() as u32;
    for (experiment, arm) in &list.arms {
        let mut text = |name: String| {
            let from = batch.text.len() as u32;
            batch.text.push_str(&name);
            from..batch.text.len() as u32
        };
        let (experiment_text, arm_text) = (text(experiment_name(*experiment)), text(arm_name(*arm)));
        batch.arms.push(event::ArmName {
            hash: hash(b'a', u64::from(*experiment) << 8 | u64::from(*arm)),
            experiment: experiment_text,
            arm: arm_text,
        });
    }
    let id = id_hash(list.id, list.shelf);
    if list.shelf != Shelf::Without {
        batch.partial_ids.insert(id, vec![id_hash(list.id, Shelf::Any)]);
    }
    Served {
        id,
        user: list.user.map(user_hash),
        ts_ms: list.ts_ms,
        items: items_from..batch.items.len() as u32,
        arms: arms_from..batch.arms.len() as u32,
    }
}

/// Makes a catalogue as if from an operator's file.
pub fn catalogue(items: &Items, previous: Option<&Catalogue>) -> Catalogue {
    let new = items.known.iter().map(|(name, known)| NewItem {
        id: name.clone(),
        hash: item_hash(name),
        aspects: known.aspects.iter().map(|aspect| (*aspect).to_owned()).collect(),
        users: known.users,
    });
    Catalogue::new(new.collect(), items.n_users, previous)
}

fn id_hash(id: u8, shelf: Shelf) -> u128 {
    let shelf = match shelf {
        Shelf::Without => 0,
        Shelf::Any => 1,
        Shelf::Named(shelf) => 2 + u64::from(shelf),
    };
    hash(b'r', shelf << 8 | u64::from(id))
}

fn user_hash(user: u8) -> u64 {
    hash(b'u', user.into()) as u64
}

/// The part of the hash of a user that an open list keeps.
pub fn half_of_user(user: u8) -> u32 {
    ((user_hash(user) >> 32) as u32).max(1)
}

fn item_hash(name: &str) -> u64 {
    hash(b'i', name.parse().expect("items are numbers")) as u64
}

/// Spreads a small number over all bits, like the seeded hashes of the decoder (SplitMix64, twice).
fn hash(salt: u8, n: u64) -> u128 {
    let mix = |n: u64| {
        let n = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        n ^ (n >> 31)
    };
    let low = mix(n << 8 | u64::from(salt));
    u128::from(mix(low)) << 64 | u128::from(low)
}
