//! The numbers of a set of files: of all of it, and of each span of time where that was asked for.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::Unreadable;
use crate::engine::catalogue::Catalogue;
use crate::engine::coverage::{Coverage, PartId};
use crate::engine::event::Reason;
use crate::engine::outcome::Counts;
use crate::engine::ranking::Ranking;
use crate::engine::{Arm, ArmId, SettledSlot};

/// Sums by arm, as wide as the ranking.
pub type Totals = BTreeMap<Arm, Box<[i128]>>;

/// The numbers of a set of files.
pub struct Evaluation {
    pub ranking: Ranking,
    pub total: Totals,
    /// Length of a span, where a series was asked for.
    pub span_ms: Option<i64>,
    /// By begin of the span, epoch ms; those without a list are absent.
    pub spans: BTreeMap<i64, Totals>,
    /// What became of each line.
    pub counts: Counts,
    /// Served lists that could be read.
    pub n_lists: u64,
    /// Those of them that name no experiment, and so count in no arm.
    pub n_lists_without_arm: u64,
    /// Whether no sum has run over.
    pub exact: bool,
    pub unreadable: BTreeMap<Reason, Unreadable>,
}

impl Evaluation {
    /// A metric of the first profile by its key, such as `hit_rate@5`; none where the arm has no list, or the metric
    /// divides by 0.
    pub fn value(&self, experiment: &str, arm: &str, key: &str) -> Option<f64> {
        let first = self.ranking.profiles().first()?;
        self.value_of(&first.name, experiment, arm, key)
    }

    /// The same of any of its profiles.
    pub fn value_of(&self, profile: &str, experiment: &str, arm: &str, key: &str) -> Option<f64> {
        let mut profiles = self.ranking.profiles().iter();
        let profile = profiles.position(|other| other.name == profile)?;
        let is_named = |named: &Arm| &*named.experiment == experiment && &*named.arm == arm;
        let (_, sums) = self.total.iter().find(|(named, _)| is_named(named))?;
        let mut columns = self.ranking.columns().iter();
        let column = columns.find(|column| column.profile == profile && column.key() == key)?;
        column.value(sums)
    }

    pub fn is_empty(&self) -> bool {
        self.total.is_empty()
    }
}

/// Adds settled slots up, oldest first.
pub(super) struct Adder<'a> {
    ranking: &'a Ranking,
    catalogue: Option<Arc<Catalogue>>,
    span_ms: Option<i64>,
    total: Span,
    /// The span that is being added up.
    open: Option<(i64, Span)>,
    spans: BTreeMap<i64, HashMap<ArmId, Box<[i128]>>>,
}

/// One span's sums and distinct counts, by arm.
#[derive(Default)]
struct Span {
    sums: HashMap<ArmId, Box<[i128]>>,
    coverage: HashMap<ArmId, Coverage>,
}

/// A file is one part.
const FILE: PartId = 0;

impl<'a> Adder<'a> {
    pub fn new(ranking: &'a Ranking, catalogue: Option<Arc<Catalogue>>, span_ms: Option<i64>) -> Adder<'a> {
        Adder {
            ranking,
            catalogue,
            span_ms,
            total: Span::default(),
            open: None,
            spans: BTreeMap::new(),
        }
    }

    pub fn add(&mut self, slot: &SettledSlot) {
        if let Some(span_ms) = self.span_ms {
            let begin_ms = slot.start_ms.div_euclid(span_ms) * span_ms;
            if self.open.as_ref().is_none_or(|(open, _)| *open != begin_ms) {
                self.close();
                self.open = Some((begin_ms, Span::default()));
            }
        }
        let open = self.open.iter_mut().map(|(_, span)| span);
        for span in open.chain([&mut self.total]) {
            span.add(slot, self.ranking, self.catalogue.as_deref());
        }
    }

    fn close(&mut self) {
        if let Some((begin_ms, span)) = self.open.take() {
            self.spans
                .insert(begin_ms, span.finish(self.ranking, self.catalogue.as_deref()));
        }
    }

    /// The sums of everything, and of each span by its begin.
    pub fn finish(mut self, name: impl Fn(ArmId) -> Arm) -> (Totals, BTreeMap<i64, Totals>) {
        self.close();
        let named = |sums: HashMap<ArmId, Box<[i128]>>| -> Totals {
            sums.into_iter().map(|(arm, sums)| (name(arm), sums)).collect()
        };
        let total = named(self.total.finish(self.ranking, self.catalogue.as_deref()));
        let spans = self
            .spans
            .into_iter()
            .map(|(begin_ms, sums)| (begin_ms, named(sums)));
        (total, spans.collect())
    }
}

impl Span {
    fn add(&mut self, slot: &SettledSlot, ranking: &Ranking, catalogue: Option<&Catalogue>) {
        for (arm, sums) in slot.tallies.iter() {
            let zeros = || vec![0; ranking.width()].into_boxed_slice();
            let total = self.sums.entry(arm).or_insert_with(zeros).iter_mut();
            total
                .zip(sums)
                .for_each(|(total, term)| *total += i128::from(*term));
        }
        let Some((catalogue, columns)) = catalogue.zip(ranking.coverage()) else {
            return;
        };
        for (arm, lists) in slot.shown.by_arm() {
            let coverage = self.coverage.entry(arm).or_insert_with(|| {
                // All of it is counted, so the length of slots does not matter.
                let mut coverage = Coverage::new(columns.ks.clone(), 1000);
                coverage.add_part(FILE);
                coverage
            });
            coverage.see(FILE, lists, catalogue);
        }
    }

    fn finish(mut self, ranking: &Ranking, catalogue: Option<&Catalogue>) -> HashMap<ArmId, Box<[i128]>> {
        let mut sums = self.sums;
        if let Some((catalogue, columns)) = catalogue.zip(ranking.coverage()) {
            for (arm, sums) in &mut sums {
                sums[columns.size] = catalogue.len() as i128;
                let Some(coverage) = self.coverage.get_mut(arm) else {
                    continue;
                };
                let counts = coverage.counts(&[i64::MIN], &[FILE], catalogue).concat();
                for (sum, count) in sums[columns.seen.clone()].iter_mut().zip(&counts) {
                    *sum = i128::from(*count);
                }
            }
        }
        sums
    }
}
