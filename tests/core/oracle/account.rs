//! Account of a pair at one moment and the steps that led there, for comparing the engine with its twin.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use abgauge_core::engine::event::Side;
use abgauge_core::engine::outcome::Counts;
use abgauge_core::metrics::{CLICKS, ITEMS_SHOWN, LISTS, Ranking};

use crate::oracle::world::{Record, T0};

/// Step in the history of an engine.
#[derive(Clone, Copy)]
pub enum Step<'a> {
    Read(&'a Record),
    /// Record for which there was no room.
    Shed(&'a Record),
    /// End of a batch: the engine settles as much as it may.
    BatchEnd,
    Idle(Side, Option<i64>),
    SettleAll,
    /// Move to another process. It continues from here without the time that idle moves lent to the watermarks.
    Cut,
    /// Change to the world's catalogue with this number.
    Catalogue(usize),
}

impl fmt::Debug for Step<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Read(record) => write!(out, "read {record:?}"),
            Step::Shed(record) => write!(out, "shed {record:?}"),
            Step::BatchEnd => write!(out, "batch end"),
            Step::Idle(side, live_end_ms) => {
                write!(out, "idle {side:?} {:?}", live_end_ms.map(|end| end - T0))
            }
            Step::SettleAll => write!(out, "settle all"),
            Step::Cut => write!(out, "cut"),
            Step::Catalogue(number) => write!(out, "catalogue {number}"),
        }
    }
}

/// Names of an experiment and an arm.
pub type ArmName = (String, String);
/// Sums of lists by start of the slot, then arm.
pub type Sums<N> = BTreeMap<i64, BTreeMap<ArmName, Vec<N>>>;
/// Items of each list in rank order, as far as the catalogue contains them, by start of the slot and arm; sorted.
pub type Shown = BTreeMap<(i64, ArmName), Vec<Vec<Option<String>>>>;

/// Numbers that an engine shows at one moment, with its hand-overs added up. The engine's sums are whole tallies of
/// integers, and the twin's are [rows](row) of plain numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Account<N> {
    pub counts: Counts,
    pub live: Sums<N>,
    pub settled: Sums<N>,
    pub shown: Shown,
    pub settled_shown: Shown,
    /// Refused clicks on lists of settled slots, by start of the slot, arm, and half of the hash of the user.
    pub refused: BTreeMap<(i64, ArmName, Option<u32>), u64>,
    /// Start times of the slots that left the engine, including slots of lists without an arm.
    pub settled_slots: BTreeSet<i64>,
    /// Largest time of a list, by arm.
    pub last_lists: BTreeMap<ArmName, i64>,
    pub n_waiting: u64,
    pub n_open_lists: u64,
    pub n_folded_arms: u64,
    pub newest_ms: [Option<i64>; 2],
    pub accepted_ms: Option<(i64, i64)>,
    /// Frontier: start(F).
    pub frontier_ms: Option<i64>,
}

impl<N> Default for Account<N> {
    fn default() -> Account<N> {
        Account {
            counts: Counts::default(),
            live: Sums::new(),
            settled: Sums::new(),
            shown: Shown::new(),
            settled_shown: Shown::new(),
            refused: BTreeMap::new(),
            settled_slots: BTreeSet::new(),
            last_lists: BTreeMap::new(),
            n_waiting: 0,
            n_open_lists: 0,
            n_folded_arms: 0,
            newest_ms: [None; 2],
            accepted_ms: None,
            frontier_ms: None,
        }
    }
}

impl Account<i64> {
    /// Compares part by part, so that a failure shows only the difference.
    pub fn assert_is(&self, twin: &Account<f64>, ranking: &Ranking, history: &[Step]) {
        assert_eq!(
            self.counts, twin.counts,
            "counts of the engine and the twin after {history:#?}"
        );
        assert_eq!(
            self.state(),
            twin.state(),
            "state of the engine and the twin after {history:#?}"
        );
        for (view, ours, theirs) in [
            ("live", &self.live, &twin.live),
            ("settled", &self.settled, &twin.settled),
        ] {
            if let Some(difference) = difference(ours, theirs, ranking) {
                panic!("{view} sums of the engine and the twin: {difference} after {history:#?}");
            }
        }
        assert_eq!(
            (&self.shown, &self.settled_shown),
            (&twin.shown, &twin.settled_shown),
            "items shown by the engine and the twin after {history:#?}"
        );
        assert_eq!(
            self.refused, twin.refused,
            "refused clicks of the engine and the twin after {history:#?}"
        );
        assert_eq!(
            self.settled_slots, twin.settled_slots,
            "settled slots of the engine and the twin after {history:#?}"
        );
        assert_eq!(
            self.last_lists, twin.last_lists,
            "last lists of the engine and the twin after {history:#?}"
        );
    }
}

impl<N> Account<N> {
    /// Formats the numbers and times that belong to no arm. Times are relative to [`T0`].
    fn state(&self) -> String {
        let of_log = [self.n_waiting, self.n_open_lists, self.n_folded_arms];
        let frontier = self.frontier_ms.map(|ms| ms - T0);
        let newest = self.newest_ms.map(|ms| Some(ms? - T0));
        let accepted = self.accepted_ms.map(|(first, last)| (first - T0, last - T0));
        format!("waiting, open, folded {of_log:?}, F {frontier:?}, M {newest:?}, accepted {accepted:?}")
    }
}

/// Converts a tally to numbers: lists, items shown and clicks, then numerator and denominator of each column. A constant
/// factor belongs to the column, so the numerator is divided by it here.
pub fn row(ranking: &Ranking, tally: &[i64]) -> Vec<f64> {
    let sums: Vec<i128> = tally.iter().map(|sum| i128::from(*sum)).collect();
    let bases = [LISTS, ITEMS_SHOWN, CLICKS].map(|base| tally[base] as f64);
    let columns = ranking.columns().iter().flat_map(|column| {
        let numerator = column.numerator(&sums) / f64::from(column.factor);
        [numerator, tally[column.denominator] as f64]
    });
    bases.into_iter().chain(columns).collect()
}

/// Returns a description of the first sum that differs from the twin's. The term of each list may be rounded by 2^-33.
fn difference(ours: &Sums<i64>, theirs: &Sums<f64>, ranking: &Ranking) -> Option<String> {
    let (our_rows, their_rows) = (keys(ours), keys(theirs));
    if our_rows != their_rows {
        return Some(format!("there are {our_rows:?}, twin {their_rows:?}"));
    }
    for ((slot, ours), theirs) in ours.iter().zip(theirs.values()) {
        for ((arm, tally), theirs) in ours.iter().zip(theirs.values()) {
            let tolerance = tally[LISTS] as f64 * 2_f64.powi(-33) + 1e-12;
            let ours = row(ranking, tally);
            let differs = |place: &usize| (ours[*place] - theirs[*place]).abs() > tolerance;
            if let Some(place) = (0..ours.len()).find(differs) {
                let what = name(ranking, place);
                let at = slot - T0;
                return Some(format!(
                    "{what} of {arm:?} at {at:+} is {}, twin {}",
                    ours[place], theirs[place]
                ));
            }
        }
    }
    None
}

fn keys<N>(sums: &Sums<N>) -> Vec<(i64, &ArmName)> {
    let slots = sums.iter();
    slots
        .flat_map(|(slot, arms)| arms.keys().map(move |arm| (*slot, arm)))
        .collect()
}

/// Returns the name of a number in a [`row`].
fn name(ranking: &Ranking, place: usize) -> String {
    let Some(place) = place.checked_sub(3) else {
        return format!("base {place}");
    };
    let column = &ranking.columns()[place / 2];
    let part = ["numerator", "denominator"][place % 2];
    let profile = &ranking.profiles()[column.profile];
    format!("{part} of {} under {profile:?}", column.key())
}
