//! A pair that is cut, stored and restored, however often, against one that was never interrupted.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use abgauge_core::engine::event::{Batch, Position, Reason, Side};
use abgauge_core::engine::outcome::{ClickResult, Counts, Outcome};
use abgauge_core::engine::{ArmId, Checkpoint, GatherCheckpoint, Replayed, Rules};
use abgauge_core::ledger::{Cell, EncodedLedger, Epochs, Keep, Ledger, PairTracker, Users};
use abgauge_core::metrics::catalogue::Catalogue;
use proptest::bool;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::oracle::account::Step;
use crate::oracle::drive::{catalogue, push};
use crate::oracle::gathered::GATHER;
use crate::oracle::pair::{RULES, list};
use crate::oracle::read::{Accepted, read};
use crate::oracle::recount::Twin;
use crate::oracle::world::{
    Click, IdleMove, Reading, Record, Says, Shelf, T0, World, any_world, conflicting_world, idle_reading,
    usual,
};
use crate::twin::Items;

const ROOM: u64 = u64::MAX;

/// Points at which a reading is cut, and how logs are replayed. Each pattern repeats.
#[derive(Debug, Clone)]
pub struct Cuts {
    /// Cuts in a row after each batch.
    cuts: Vec<usize>,
    /// Number of records of the other topic that are replayed before the next one of a topic.
    lags: Vec<usize>,
    batches: Vec<usize>,
    /// Number of records replayed before the process dies again; `None` if it survives.
    deaths: Vec<Option<usize>>,
    of_users_only: bool,
}

fn cuts() -> impl Strategy<Value = Cuts> {
    let n_cuts = prop_oneof![4 => Just(0_usize), 3 => Just(1_usize), 1 => Just(2_usize)];
    let deaths = vec(proptest::option::weighted(0.2, 0..9_usize), 1..4);
    let parts = (vec(n_cuts, 1..12), vec(0..4_usize, 1..6), vec(1..9_usize, 1..4));
    (parts, deaths, bool::ANY).prop_map(|((cuts, lags, batches), deaths, of_users_only)| Cuts {
        cuts,
        lags,
        batches,
        deaths,
        of_users_only,
    })
}

/// Worlds without the bound on the lists of a click, which a restored pair does not keep, in one catalogue.
fn worlds() -> impl Strategy<Value = World> {
    let worlds = prop_oneof![2 => any_world().boxed(), 1 => conflicting_world().boxed()];
    worlds.prop_map(|mut world| {
        world.rules.max_lists_per_click = 1000;
        world
    })
}

/// Sums without trailing zeros and the largest time of a list, by slot and arm.
type Live = BTreeMap<(i64, ArmId), (Vec<i64>, Option<i64>)>;
/// Sorted places of the items of each list, by slot and arm.
type Shown = BTreeMap<(i64, ArmId), Vec<Vec<u32>>>;

/// Output of a tracker.
#[derive(Default)]
struct Told {
    /// Counts since the last cut.
    counts: Counts,
    live: Live,
    shown: Shown,
    /// Settled sums since the start.
    settled: Live,
    settled_shown: Shown,
    cells: Vec<(i64, Cell)>,
}

struct Pair {
    tracker: PairTracker,
    reported: Told,
}

impl Pair {
    fn take_delta(&mut self) {
        let delta = self.tracker.take_delta();
        let reported = &mut self.reported;
        reported.counts.add(&delta.counts);
        for (of, sums) in delta.live.iter() {
            let (live, last_ms) = reported.live.entry((of.start_ms, of.arm)).or_default();
            add(live, sums);
            *last_ms = (*last_ms).max(of.last_list_ms);
        }
        show(&mut reported.shown, &delta.shown);
        for slot in delta.settled {
            for (arm, sums) in slot.tallies.iter() {
                let row = reported.settled.entry((slot.start_ms, arm)).or_default();
                assert!(row.0.is_empty(), "it settles twice");
                add(&mut row.0, sums);
            }
            show(&mut reported.settled_shown, &slot.shown);
        }
        reported.cells.extend(delta.cells);
    }

    fn apply(&mut self, records: &[&Record]) {
        let mut batch = Batch::default();
        records.iter().for_each(|record| push(&mut batch, record));
        self.tracker.apply(&batch, ROOM);
    }

    /// Forgets unsettled output: the next process has none yet.
    fn forget(&mut self) {
        self.reported.counts = Counts::default();
        self.reported.live.clear();
        self.reported.shown.clear();
    }
}

fn add(sums: &mut Vec<i64>, terms: &[i64]) {
    sums.resize(sums.len().max(terms.len()), 0);
    sums.iter_mut().zip(terms).for_each(|(sum, term)| *sum += term);
    let n = sums.iter().rposition(|sum| *sum != 0).map_or(0, |last| last + 1);
    sums.truncate(n);
}

fn show(shown: &mut Shown, lists: &abgauge_core::engine::ShownLists) {
    for (arm, lists) in lists.by_arm() {
        for (start_ms, places) in lists {
            let of_arm = shown.entry((start_ms, arm)).or_default();
            of_arm.push(places.to_vec());
            of_arm.sort();
        }
    }
}

/// Returns the outcomes of records except `replayed`, and the other counts of lists.
fn outcomes(counts: &Counts) -> Vec<u64> {
    let mut all = vec![
        counts.conflicting_lists,
        counts.repeated_items,
        counts.shared_id_lists,
    ];
    for side in Side::BOTH {
        let others = Outcome::OF_EVENTS
            .iter()
            .filter(|outcome| **outcome != Outcome::Replayed);
        all.extend(others.map(|outcome| counts.outcome(side, *outcome)));
        all.extend(Reason::ALL.iter().map(|reason| counts.invalid(side, *reason)));
    }
    all
}

/// An uninterrupted pair and one that is cut, which read the same.
struct Both<'a> {
    world: &'a World,
    keep: Keep,
    catalogue: Option<Arc<Catalogue>>,
    whole: Pair,
    cut: Pair,
    history: Vec<Step<'a>>,
    /// The step after the last cut.
    cut_at: usize,
    /// start(F) at the last cut.
    cut_ms: i64,
    positions: [i64; 2],
    /// Records still to be replayed, by side.
    again: [VecDeque<&'a Record>; 2],
    n_again: [u64; 2],
}

impl<'a> Both<'a> {
    fn new(world: &'a World, keep: Keep) -> Both<'a> {
        let catalogue = world
            .measures
            .catalogue
            .then(|| Arc::new(catalogue(&world.catalogues[0], None)));
        let pair = || {
            let tracker = PairTracker::new(world.rules.clone(), world.ranking(), world.begin_ms, &keep);
            let reported = Told::default();
            with_catalogue(Pair { tracker, reported }, catalogue.as_ref())
        };
        Both {
            world,
            whole: pair(),
            cut: pair(),
            keep,
            catalogue,
            history: vec![Step::Catalogue(0)],
            cut_at: 0,
            cut_ms: i64::MIN,
            positions: [0; 2],
            again: [VecDeque::new(), VecDeque::new()],
            n_again: [0; 2],
        }
    }

    fn n_topics(&self) -> usize {
        if self.world.rules.one_topic { 1 } else { 2 }
    }

    /// Reads new records. The cut pair first replays the remaining records of their topic, and some of the other topic.
    fn read(&mut self, records: &[&'a Record], cuts: &Cuts, lags: &mut impl Iterator<Item = usize>) {
        self.whole.apply(records);
        let mut all = Vec::new();
        for record in records {
            let side = record.at.side;
            all.extend(self.again[side as usize].drain(..));
            let twin = &mut self.again[side.twin() as usize];
            let lag = twin.len().min(lags.next().unwrap_or_default());
            all.extend(twin.drain(..lag));
            all.push(*record);
            self.positions[side as usize] = record.at.offset + 1;
            self.history.push(Step::Read(record));
        }
        self.history.push(Step::BatchEnd);
        self.apply_in_batches(&all, cuts);
    }

    fn apply_in_batches(&mut self, records: &[&Record], cuts: &Cuts) {
        let mut rest = records;
        // Otherwise idle moves hold to the end of a batch.
        let splits = self.cut.tracker.engine().is_replaying();
        let whole = [rest.len()];
        let sizes = if splits { &cuts.batches[..] } else { &whole };
        for size in sizes.iter().cycle() {
            let (batch, later) = rest.split_at(rest.len().min(*size));
            self.cut.apply(batch);
            rest = later;
            if rest.is_empty() {
                break;
            }
        }
    }

    /// Replays the rest; after it, everything must be as if there had been no cut.
    fn catch_up(&mut self, cuts: &Cuts, lags: &mut impl Iterator<Item = usize>) {
        let mut all = Vec::new();
        while self.again.iter().any(|rest| !rest.is_empty()) {
            for rest in &mut self.again {
                let n = rest.len().min(1 + lags.next().unwrap_or_default());
                all.extend(rest.drain(..n));
            }
        }
        self.apply_in_batches(&all, cuts);
        let is_resumed = self.cut_at > 0;
        for side in Side::BOTH.into_iter().take(self.n_topics()) {
            self.cut.tracker.reached(side, self.positions[side as usize]);
            let replayed = self.cut.tracker.engine().replayed(side);
            assert_eq!(
                replayed,
                is_resumed.then_some(Replayed::Same),
                "{:?}",
                self.history
            );
        }
        assert!(!self.cut.tracker.engine().is_replaying());
        self.compare();
    }

    fn compare(&mut self) {
        for pair in [&mut self.whole, &mut self.cut] {
            pair.tracker.settle(usize::MAX);
            pair.take_delta();
        }
        let Both { whole, cut, .. } = self;
        let (engines, reported) = ([&whole.tracker, &cut.tracker], [&whole.reported, &cut.reported]);
        let [whole_state, cut_state] = engines.map(|tracker| {
            let engine = tracker.engine();
            let newest_ms = Side::BOTH.map(|side| engine.newest_ms(side));
            let settled = (engine.frontier_ms(), tracker.ledger().until_ms());
            let unlisted = tracker.ledger().unlisted();
            let unlisted: Vec<_> = unlisted.map(|(arm, n)| (arm.clone(), n)).collect();
            let accepted = (engine.accepted_ms(), engine.last_accepted());
            (
                newest_ms,
                settled,
                engine.n_open_lists(),
                accepted,
                (engine.arms().to_vec(), unlisted),
            )
        });
        assert_eq!(whole_state, cut_state, "{:?}", self.history);
        let [whole_outcomes, cut_outcomes] = reported.map(|reported| outcomes(&reported.counts));
        assert_eq!(whole_outcomes, cut_outcomes, "{:?}", self.history);
        let replayed =
            |reported: &Told| Side::BOTH.map(|side| reported.counts.outcome(side, Outcome::Replayed));
        let [expected, found] = reported.map(replayed);
        let expected = [0, 1].map(|side| expected[side] + self.n_again[side]);
        assert_eq!(expected, found);
        let since = |(slot_ms, _): &(i64, ArmId)| *slot_ms >= self.cut_ms;
        let live = whole.reported.live.iter().filter(|(key, _)| since(key));
        assert!(live.eq(cut.reported.live.iter()), "live: {:?}", self.history);
        let shown = whole.reported.shown.iter().filter(|(key, _)| since(key));
        assert!(shown.eq(cut.reported.shown.iter()), "shown: {:?}", self.history);
        let [whole_settled, cut_settled] =
            reported.map(|reported| (&reported.settled, &reported.settled_shown, &reported.cells));
        assert_eq!(whole_settled, cut_settled);
    }

    /// Compares the results of clicks read since the last cut.
    fn compare_results(&self) {
        let is_new = |click: &Accepted<&Click>| click.step >= self.cut_at;
        let twin = Twin::new(self.world);
        let (recount, _) = twin.recount_with(&self.history, is_new);
        let results = |counts: &Counts| ClickResult::ALL.map(|result| counts.result(result));
        assert_eq!(
            results(&self.cut.reported.counts),
            results(&recount.counts),
            "{:?}",
            self.history
        );
        let engine = self.cut.tracker.engine();
        assert_eq!(engine.n_own_waiting(), recount.n_waiting);
        // A settled list, which is not read again, may have taken an earlier click.
        let attribution_ms = self.world.rules.attribution_ms;
        let is_known =
            |click: &Accepted<&Click>| is_new(click) || click.event.ts_ms - attribution_ms >= self.cut_ms;
        let (recount, _) = twin.recount_with(&self.history, is_known);
        assert_eq!(engine.n_waiting(), recount.n_waiting, "{:?}", self.history);
        assert_eq!(engine.n_folded_arms(), recount.n_folded_arms);
    }

    fn checkpoint(&mut self) -> Checkpoint {
        let sides = Side::BOTH.into_iter().take(self.n_topics());
        let positions: Vec<(Side, i64)> = sides.map(|side| (side, self.positions[side as usize])).collect();
        let [whole, cut] = [&mut self.whole, &mut self.cut].map(|pair| pair.tracker.checkpoint(&positions));
        let without_gathered = |checkpoint: &Option<Checkpoint>| {
            let gathered = GatherCheckpoint::default();
            checkpoint.clone().map(|checkpoint| Checkpoint {
                gathered,
                ..checkpoint
            })
        };
        // Heads and silences may be kept that no longer matter.
        let [whole, same] = [&whole, &cut].map(without_gathered);
        assert_eq!(whole, same, "{:?}", self.history);
        cut.expect("it has caught up")
    }

    fn cut(&mut self, died_after: Option<usize>) {
        self.compare_results();
        let from = self.checkpoint();
        let parts = self.cut.tracker.encode_ledger();
        self.again = Side::BOTH.map(|side| records_again(self.world, &from, side));
        self.n_again = [0, 1].map(|side| self.again[side].len() as u64);
        // These have the outcome of their list later.
        self.n_again[0] -= self.cut.tracker.engine().n_waiting_rows()[0];
        if let Some(n) = died_after {
            self.restore(&from, &parts);
            let again: Vec<&Record> = self.again.iter().flatten().copied().collect();
            self.cut.apply(&again[..again.len().min(n)]);
        }
        self.restore(&from, &parts);
        if self.cut.tracker.engine().is_replaying() {
            self.cut.tracker.idle(Side::Served, Some(T0 + 100_000), i64::MAX);
            self.cut.tracker.idle(Side::Clicks, Some(T0 + 100_000), i64::MAX);
            assert_eq!(self.cut.tracker.checkpoint(&[]), None);
        }
        // An idle move does not carry the watermarks past the cut.
        let marks = self.whole.tracker.watermarks_mut();
        Side::BOTH.into_iter().for_each(|side| marks.busy(side));
        self.history.push(Step::Cut);
        self.cut_at = self.history.len();
        self.cut_ms = from.until_ms.unwrap_or(i64::MIN);
        self.whole.reported.counts = Counts::default();
        self.cut.forget();
    }

    /// Puts another process in the place of the one that was cut.
    fn restore(&mut self, from: &Checkpoint, parts: &EncodedLedger) {
        let (rules, ranking) = (self.world.rules.clone(), self.world.ranking());
        let ledger = Ledger::decode(parts, &ranking, &self.keep).expect("it was encoded");
        let tracker = PairTracker::resume(rules, ranking, &self.keep, from, ledger).expect("the same rules");
        let reported = std::mem::take(&mut self.cut.reported);
        self.cut = with_catalogue(Pair { tracker, reported }, self.catalogue.as_ref());
    }

    fn idle(&mut self, side: Side, live_end_ms: Option<i64>) {
        for pair in [&mut self.whole, &mut self.cut] {
            pair.tracker.idle(side, live_end_ms, i64::MAX);
        }
        self.history.push(Step::Idle(side, live_end_ms));
    }

    /// Settles all, and compares to the byte.
    fn end(mut self) {
        self.compare_results();
        self.checkpoint();
        for pair in [&mut self.whole, &mut self.cut] {
            pair.tracker.close_all();
        }
        self.compare();
        let bytes = [&mut self.whole, &mut self.cut].map(|pair| pair.tracker.encode_ledger());
        let differ: Vec<String> = bytes[0]
            .keys()
            .filter(|part| bytes[0].get(part) != bytes[1].get(part))
            .map(|part| format!("{part}: {:?} {:?}", bytes[0].get(part), bytes[1].get(part)))
            .collect();
        assert!(
            bytes[0] == bytes[1],
            "the ledgers differ in {differ:?}: {:?}",
            self.history
        );
    }
}

fn with_catalogue(mut pair: Pair, catalogue: Option<&Arc<Catalogue>>) -> Pair {
    let catalogue = catalogue.into_iter().cloned();
    catalogue.for_each(|catalogue| pair.tracker.set_catalogue(catalogue));
    pair
}

/// The records of a topic from its resume point to its position.
fn records_again<'a>(world: &'a World, from: &Checkpoint, side: Side) -> VecDeque<&'a Record> {
    let log = from.logs_for_copies().find(|log| log.side == side);
    let records = world.logs[side as usize].iter();
    let offsets = log.map_or(0..0, |log| log.resume.offset..log.position.offset);
    records
        .filter(|record| offsets.contains(&record.at.offset))
        .collect()
}

/// Returns what the ledger keeps. If it keeps users only, cells leave with the changes.
fn keep(world: &World, cuts: &Cuts) -> Keep {
    match cuts.of_users_only {
        true => Keep::of_users(Users::Everybody(Epochs::default()), 3 * world.rules.slot_ms),
        false => world.keep(),
    }
}

/// Reads a world to its end, with cuts. Returns how many records were read again.
fn follow(world: &World, reading: &Reading, cuts: &Cuts) -> u64 {
    let mut both = Both::new(world, keep(world, cuts));
    let records = reading.merge(&world.logs);
    let mut rest = records.as_slice();
    let mut idles = reading.idles.iter().cycle();
    let mut n_cuts = cuts.cuts.iter().cycle();
    let mut deaths = cuts.deaths.iter().cycle();
    let mut lags = cuts.lags.iter().copied().chain([1]).cycle();
    let mut n_again = 0;
    for size in reading.batches.iter().cycle() {
        let (batch, later) = rest.split_at(rest.len().min(*size));
        rest = later;
        both.read(batch, cuts, &mut lags);
        let (idle, n_cuts) = (
            idles.next().copied().flatten(),
            n_cuts.next().copied().unwrap_or_default(),
        );
        if idle.is_some() || n_cuts > 0 || rest.is_empty() {
            both.catch_up(cuts, &mut lags);
        }
        if let Some(idle) = idle {
            let engine = both.whole.tracker.engine();
            let newest_ms = Side::BOTH.map(|side| engine.newest_ms(side)).into_iter().max();
            let live_end = |ahead_ms| newest_ms.flatten().unwrap_or(T0) + ahead_ms;
            both.idle(idle.side, idle.ahead_ms.map(live_end));
            both.compare();
        }
        for n in 0..n_cuts {
            if n > 0 {
                both.catch_up(cuts, &mut lags);
            }
            both.cut(deaths.next().copied().flatten());
            n_again += both.n_again.iter().sum::<u64>();
        }
        if rest.is_empty() {
            break;
        }
    }
    both.catch_up(cuts, &mut lags);
    both.end();
    n_again
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(1000), ..ProptestConfig::default() })]

    #[test]
    fn a_restored_pair_continues_as_if_never_interrupted(
        (world, reading, cuts) in (worlds(), idle_reading(), cuts())
    ) {
        follow(&world, &reading, &cuts);
    }
}

proptest! {
    // One world in ten has no open event: with many cases, more of them than the limit would be left out.
    #![proptest_config(ProptestConfig { max_global_rejects: ProptestConfig::default().cases.max(1024), ..ProptestConfig::default() })]

    /// Any counted event that is open is replaced by another one.
    #[test]
    fn a_different_log_is_detected_by_one_open_event(
        (world, reading) in (worlds(), idle_reading()),
        which in any::<prop::sample::Index>(),
        how in 0..4_u8,
    ) {
        let cuts = Cuts { cuts: vec![0], lags: vec![1], batches: vec![3], deaths: vec![None], of_users_only: false };
        let mut both = Both::new(&world, world.keep());
        let records = reading.merge(&world.logs);
        let n = 1 + which.index(records.len().max(1));
        both.read(&records[..n.min(records.len())], &cuts, &mut [1].into_iter().cycle());
        both.catch_up(&cuts, &mut [1].into_iter().cycle());
        both.cut(None);
        let cut_ms = both.cut_ms;
        let seen = read(&world, &both.history);
        let reaches = |ms: i64| ms >= cut_ms;
        let lists = seen.held().into_iter().filter(|list| reaches(list.event)).map(|list| list.step);
        let skew_ms = world.rules.click_skew_ms;
        let clicks = seen.clicks.iter().filter(|click| reaches(click.event.ts_ms + skew_ms)).map(|click| click.step);
        let open: Vec<usize> = lists.chain(clicks).collect();
        prop_assume!(!open.is_empty());
        let Step::Read(changed) = both.history[open[which.index(open.len())]] else { unreachable!("it was read") };
        let other = differs(changed, how);
        let again = std::mem::take(&mut both.again);
        for record in again.iter().flatten() {
            let is_changed = record.at == changed.at;
            let record = if is_changed { other.as_ref() } else { Some(*record) };
            both.cut.apply(record.as_slice());
        }
        let side = changed.at.side;
        both.cut.tracker.reached(side, both.positions[side as usize]);
        prop_assert_eq!(both.cut.tracker.engine().replayed(side), Some(Replayed::Other));
    }
}

/// A world of slots of 10, in which lists no more than 20 apart are copies: lists by id and time, and clicks by time.
fn world_of(lists: &[(u8, i64)], clicks: &[i64]) -> World {
    let lists = lists
        .iter()
        .map(|(id, ts)| Says::List(list(&[(0, 0)], *id, *ts, &[5])));
    let clicks = clicks.iter().map(|ts| {
        let ts_ms = T0 + ts;
        Says::Click(Click {
            id: 9,
            shelf: Shelf::Without,
            ts_ms,
            item: 5,
        })
    });
    let log = |side, says: Vec<Says>| {
        let records = (0..).zip(says).map(|(offset, says)| Record {
            at: Position {
                side,
                offset,
                record_ts_ms: T0 + 1000,
            },
            says,
        });
        records.collect()
    };
    World {
        rules: Rules {
            same_list_ms: 20,
            ..RULES
        },
        begin_ms: None,
        logs: [
            log(Side::Served, lists.collect()),
            log(Side::Clicks, clicks.collect()),
        ],
        measures: usual(),
        catalogues: vec![Items {
            known: BTreeMap::new(),
            n_users: 1,
        }],
    }
}

/// Follows it one record at a time, a click after each of these runs of lists. Served lists are silent after this record, and
/// there is a cut after another.
fn follow_by_hand(world: &World, runs: &[usize], silent_after: Option<usize>, cut_after: usize) -> u64 {
    let n = world.logs.iter().map(Vec::len).sum::<usize>();
    let silence = IdleMove {
        side: Side::Served,
        ahead_ms: None,
    };
    let reading = Reading {
        runs: runs.iter().flat_map(|run| [*run, 1]).collect(),
        batches: vec![1],
        hand_overs: vec![true],
        idles: (0..n)
            .map(|step| (Some(step) == silent_after).then_some(silence))
            .collect(),
        reloads: vec![None],
    };
    let cuts = Cuts {
        cuts: (0..n).map(|step| usize::from(step == cut_after)).collect(),
        lags: vec![1],
        batches: vec![1],
        deaths: vec![None],
        of_users_only: false,
    };
    follow(world, &reading, &cuts)
}

#[test]
fn copies_of_lists_settled_by_silence_are_detected_after_a_restore() {
    // The click lets silence settle the list at 57. Its copy comes after the cut.
    let world = world_of(&[(1, 57), (1, 70)], &[96]);
    assert_eq!(
        follow_by_hand(&world, &[1], Some(1), 1),
        1 + 1,
        "the list is read again, and the click"
    );
}

#[test]
fn a_copy_reread_without_its_original_is_a_duplicate() {
    // The list at 12 and the copy at 14 are read again; the list at 4 is settled.
    let world = world_of(&[(1, 4), (2, 12), (1, 14), (3, 40)], &[45]);
    assert_eq!(follow_by_hand(&world, &[4], None, 4), 3 + 1);
}

#[test]
fn lists_refused_after_silence_have_no_copies_after_a_restore() {
    // Silence settles up to 60 with the click. The list at 55 comes too late, so the list at 61 is not a copy of it.
    let world = world_of(&[(2, 57), (1, 55), (1, 61)], &[96]);
    assert_eq!(follow_by_hand(&world, &[1, 9], Some(1), 2), 2 + 1);
}

/// The same world, whose records are rows.
fn rows_of(rows: &[(u8, i64)], clicks: &[i64]) -> World {
    let mut world = world_of(rows, clicks);
    world.rules.gather = Some(GATHER);
    // Else the rows of a list would repeat each other.
    for (position, record) in (0..).zip(&mut world.logs[0]) {
        if let Says::List(list) = &mut record.says {
            list.position = position;
        }
    }
    world
}

#[test]
fn a_row_reread_without_its_head_opens_no_list() {
    // The list at 8 is settled. Its row at 12 is read again, as the list at 11 is open.
    let world = rows_of(&[(1, 8), (2, 11), (1, 12), (3, 41)], &[45]);
    assert_eq!(
        follow_by_hand(&world, &[4], None, 4),
        2 + 1,
        "and the row at 41, which waits"
    );
}

#[test]
fn a_row_of_a_settled_head_joins_no_later_list_after_a_restore() {
    // The row at 9 is in the span of both lists, and belongs to the settled one, whose head comes first.
    let world = rows_of(&[(1, 6), (1, 13), (1, 9), (3, 41)], &[45]);
    assert_eq!(follow_by_hand(&world, &[4], None, 4), 2 + 1);
}

#[test]
fn a_list_completed_by_silence_stays_complete_after_a_restore() {
    let world = rows_of(&[(1, 57), (1, 60)], &[96]);
    assert_eq!(follow_by_hand(&world, &[1], Some(1), 1), 1 + 1);
}

/// Another record in its place, or none.
fn differs(record: &Record, how: u8) -> Option<Record> {
    let mut other = record.clone();
    match (&mut other.says, how) {
        (Says::List(list), 0) => list.id += 100,
        (Says::List(list), _) => list.items.insert(0, 4000),
        (Says::Click(click), 0) => click.id += 100,
        (Says::Click(click), 1) => click.item += 4000,
        (Says::Click(click), 2) => click.ts_ms += 1,
        _ => return None,
    }
    Some(other)
}
