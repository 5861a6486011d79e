//! What engine and twin are held against: all that shows of a pair at one moment, and the steps that led there.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use abgauge::engine::event::Side;
use abgauge::engine::outcome::Counts;
use abgauge::engine::ranking::{CLICKS, Column, ITEMS_SHOWN, LISTS, Ranking};

use crate::world::{Record, T0};

/// What is done to an engine, in order.
#[derive(Clone, Copy)]
pub enum Step<'a> {
    Read(&'a Record),
    /// A record that found no room.
    Shed(&'a Record),
    /// A batch ends: the engine settles what it may.
    BatchEnd,
    Idle(Side, Option<i64>),
    SettleAll,
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
        }
    }
}

/// Experiment and arm.
pub type ArmName = (String, String);
/// By begin of the slot, then arm: the sums of [`known_sums`].
pub type Sums = BTreeMap<i64, BTreeMap<ArmName, Vec<i64>>>;

/// All that an engine shows at one moment, hand-overs added up.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Account {
    pub counts: Counts,
    pub live: Sums,
    pub settled: Sums,
    /// Begins of the slots that left the engine, those of lists without an arm included.
    pub settled_slots: BTreeSet<i64>,
    /// By arm, the largest time of a list.
    pub last_lists: BTreeMap<ArmName, i64>,
    pub n_waiting: u64,
    pub n_open_lists: u64,
    pub n_folded_arms: u64,
    pub newest_ms: [Option<i64>; 2],
    pub accepted_ms: Option<(i64, i64)>,
    /// start(F).
    pub frontier_ms: Option<i64>,
}

impl Account {
    /// Compares part by part, so that a failure shows what differs and no more.
    pub fn assert_is(&self, twin: &Account, history: &[Step]) {
        let Account {
            counts,
            live,
            settled,
            settled_slots,
            last_lists,
            accepted_ms,
            newest_ms,
            ..
        } = self;
        let rows = |account: &Account| {
            let of_log = [account.n_waiting, account.n_open_lists, account.n_folded_arms];
            format!(
                "waiting, open, folded {of_log:?}, F {:?}",
                account.frontier_ms.map(|ms| ms - T0)
            )
        };
        assert_eq!(
            counts, &twin.counts,
            "counts of the engine and the twin after {history:#?}"
        );
        assert_eq!(
            rows(self),
            rows(twin),
            "state of the engine and the twin after {history:#?}"
        );
        assert_eq!(
            live, &twin.live,
            "live sums of the engine and the twin after {history:#?}"
        );
        assert_eq!(
            settled, &twin.settled,
            "settled sums of the engine and the twin after {history:#?}"
        );
        assert_eq!(
            settled_slots, &twin.settled_slots,
            "settled slots of the engine and the twin after {history:#?}"
        );
        assert_eq!(
            last_lists, &twin.last_lists,
            "last lists of the engine and the twin after {history:#?}"
        );
        assert_eq!(
            (accepted_ms, newest_ms),
            (&twin.accepted_ms, &twin.newest_ms),
            "times after {history:#?}"
        );
    }
}

/// The columns that the twin knows by heart.
pub fn known(ranking: &Ranking) -> impl Iterator<Item = &Column> {
    ranking
        .columns()
        .iter()
        .filter(|column| ["hit_rate", "ctr", "mrr"].contains(&column.metric.id))
}

/// The part of a tally that the twin can recount.
pub fn known_sums(ranking: &Ranking, tally: &[i64]) -> Vec<i64> {
    let bases = [LISTS, ITEMS_SHOWN, CLICKS];
    let columns = known(ranking).flat_map(|column| [column.numerator, column.denominator]);
    bases.into_iter().chain(columns).map(|n| tally[n]).collect()
}
