//! Progress of the pairs, and which of them are shown.

use std::collections::BTreeMap;

use abgauge_core::engine::View;
use abgauge_core::ledger::{CountingProgress, PairId};

use super::Lease;

/// Shown pairs by view, ascending.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct ShownPairs([Vec<PairId>; 2]);

impl ShownPairs {
    pub fn of(&self, view: View) -> &[PairId] {
        &self.0[view as usize]
    }

    /// Returns the pairs shown in any view. Pairs shown in both come twice.
    pub fn all(&self) -> impl Iterator<Item = PairId> {
        self.0.iter().flatten().copied()
    }
}

/// Ends of the windows at one instant.
#[derive(Debug, Clone, Copy)]
pub(super) struct WindowEnds {
    /// Ends by view, Unix ms.
    pub ends_ms: [Option<i64>; 2],
    /// Time by view, Unix ms: slots that start later wait.
    pub until_ms: [i64; 2],
}

#[derive(Debug, Default)]
pub(super) struct BoardProgress {
    live_end_ms: Option<i64>,
    /// Latest settled end of any pair ever shown. Without it, windows would slide back when that pair is removed.
    settled_end_ms: Option<i64>,
    /// Latest end that a window may be shown with, by view.
    until_ms: [Option<i64>; 2],
    /// Furthest ends shown so far, by view.
    shown_ends_ms: [Option<i64>; 2],
    pairs: BTreeMap<PairId, PairProgress>,
}

#[derive(Debug, Clone, Copy, Default)]
struct PairProgress {
    /// Flags by `View as usize`: the pair is complete and owned.
    shown: [bool; 2],
    reach: CountingProgress,
}

impl BoardProgress {
    /// Moves the end of the live windows forward. It never moves back.
    pub fn set_live_end(&mut self, ms: i64) {
        self.live_end_ms = self.live_end_ms.max(Some(ms));
    }

    /// Caps the shown windows at these ends, by view (Unix ms).
    pub fn show_until(&mut self, until_ms: [i64; 2]) {
        self.until_ms = until_ms.map(Some);
    }

    pub fn set_reach(&mut self, pair: PairId, reach: CountingProgress) {
        self.pairs.entry(pair).or_default().reach = reach;
    }

    pub fn show(&mut self, pair: PairId, view: View) {
        self.pairs.entry(pair).or_default().shown[view as usize] = true;
    }

    pub fn hide(&mut self, pair: PairId) {
        // A hidden pair no longer moves the end, so the end that it had reached is kept.
        self.note_settled_end();
        if let Some(progress) = self.pairs.get_mut(&pair) {
            progress.shown = [false; 2];
        }
    }

    pub fn remove(&mut self, pair: PairId) {
        self.note_settled_end();
        self.pairs.remove(&pair);
    }

    /// Returns the pairs shown in each view.
    pub fn shown(&self, lease: Option<&Lease>) -> ShownPairs {
        let mut shown = ShownPairs::default();
        for (number, pair) in &self.pairs {
            // The lease is checked at each scrape: it may have expired since the pair was shown.
            let leased = lease.map_or([true; 2], |lease| lease(*number));
            for view in View::BOTH.map(|view| view as usize) {
                if pair.shown[view] && leased[view] {
                    shown.0[view].push(*number);
                }
            }
        }
        shown
    }

    /// Returns the progress of all shown pairs.
    pub fn reaches(&self) -> impl Iterator<Item = &CountingProgress> {
        let shown = self.pairs.values().filter(|pair| pair.shown.contains(&true));
        shown.map(|pair| &pair.reach)
    }

    /// Saves how far the shown pairs have settled, before one is removed or restarts.
    pub fn note_settled_end(&mut self) {
        let furthest_ms = self.reaches().filter_map(|reach| reach.settled_end_ms).max();
        self.settled_end_ms = self.settled_end_ms.max(furthest_ms);
    }

    /// Returns the latest end that may be shown, by view. Slots that begin later wait.
    pub fn until_ms(&self) -> [i64; 2] {
        self.until_ms.map(|until_ms| until_ms.unwrap_or(i64::MAX))
    }

    /// Returns the ends of the shown windows, which never move back.
    pub fn ends(&mut self) -> WindowEnds {
        self.note_settled_end();
        // The live view is never behind the settled one.
        let ends_ms = [self.live_end_ms.max(self.settled_end_ms), self.settled_end_ms];
        let until_ms = self.until_ms();
        for (shown, (end, until_ms)) in self
            .shown_ends_ms
            .iter_mut()
            .zip(ends_ms.into_iter().zip(until_ms))
        {
            // An end that was shown stays, even if the clock is set back.
            *shown = (*shown).max(end.map(|end| end.min(until_ms)));
        }
        WindowEnds {
            ends_ms: self.shown_ends_ms,
            until_ms,
        }
    }
}
