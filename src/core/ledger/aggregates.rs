//! List of all aggregates of a ledger. The macro derives everything that has one part per aggregate from the list at the
//! end.

use std::collections::{BTreeMap, BTreeSet};

use super::LedgerError;
use super::book::{Aggregate, Book, ByArm};
use super::buckets::Buckets;
use super::exposures::Exposures;
use super::frequent::Frequent;
use super::keep::Keep;
use super::latest::Latest;
use super::parts::Part;
use super::refused::Refused;
use super::seen::DistinctItems;
use super::stored::StoredLedger;
use super::sums::Sums;
use super::units::Units;
use crate::bytes::{Reader, Writer};
use crate::engine::settling::SettledList;
use crate::engine::{Arm, ArmId};
use crate::metrics::Ranking;

/// Cell type of an aggregate.
type CellOf<A> = <A as Aggregate>::Cell;

macro_rules! aggregates {
    ($($(#[$doc:meta])* $name:ident: $aggregate:ty,)+) => {
        /// One book per aggregate. All books have cells with the same numbers.
        #[derive(Debug)]
        pub(super) struct Books {
            $(pub $name: Book<$aggregate>,)+
        }

        /// Sums that one slot adds to each aggregate.
        #[allow(dead_code, reason = "the board does not get everything that a slot adds")]
        pub(super) struct Slots {
            $(pub $name: Option<<$aggregate as Aggregate>::Slot>,)+
        }

        /// Sums of all arms over one span of time.
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub struct Numbers<'a> {
            $($(#[$doc])* pub $name: &'a ByArm<CellOf<$aggregate>>,)+
        }

        /// Sums of one arm over one span of time. `None` if an aggregate has nothing for it.
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub struct OfArm<'a> {
            $($(#[$doc])* pub $name: Option<&'a CellOf<$aggregate>>,)+
        }

        /// Start of each aggregate within one span of time, Unix ms. `None`: since the start of the ledger.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct Since {
            $($(#[$doc])* pub $name: Option<i64>,)+
        }

        /// Sums of all arms in a cell that was removed from its ledger.
        #[derive(Debug, Clone, PartialEq)]
        pub struct Cell {
            $($name: ByArm<CellOf<$aggregate>>,)+
        }

        impl Books {
            pub fn new(ranking: &Ranking, keep: &Keep) -> Books {
                Books {
                    $($name: Book::new(<$aggregate>::new(ranking, keep), keep),)+
                }
            }

            pub fn admit(&mut self, arms: &[Arm]) {
                $(self.$name.admit(arms);)+
            }

            /// Stops tracking the users of an experiment with these arms.
            pub fn forget_users(&mut self, experiment: &str, arms: &[ArmId]) {
                $(self.$name.aggregate.forget_users(experiment, arms);)+
            }

            #[inline(always)]
            pub fn add(&mut self, list: &SettledList) {
                $(self.$name.add(list);)+
            }

            pub fn end_slot(&mut self, start_ms: i64) -> Slots {
                Slots {
                    $($name: self.$name.end_slot(start_ms),)+
                }
            }

            /// Ends all pending slots that are over by this time, Unix ms.
            pub fn end_until(&mut self, until_ms: i64) {
                $(self.$name.end_until(until_ms);)+
            }

            pub fn total(&self) -> Numbers<'_> {
                Numbers {
                    $($name: &self.$name.total,)+
                }
            }

            /// Returns an existing cell.
            pub fn cell(&self, span: usize, number: i64) -> Numbers<'_> {
                Numbers {
                    $($name: self.$name.cell(span, number),)+
                }
            }

            /// Removes a cell, if there is one with this number.
            pub fn take(&mut self, span: usize, number: i64) -> Cell {
                Cell {
                    $($name: self.$name.take(span, number),)+
                }
            }

            /// Merges other books. `ids` maps their arms to arms of this ledger.
            pub fn merge(&mut self, other: &Books, ids: &[ArmId]) {
                $(self.$name.merge(&other.$name, ids);)+
            }

            pub fn total_since(&self) -> Since {
                Since {
                    $($name: self.$name.total_since_ms,)+
                }
            }

            pub fn cells_since(&self, span: usize) -> Since {
                Since {
                    $($name: self.$name.cells_since_ms(span),)+
                }
            }

            /// Returns the configuration that all books share.
            pub fn keep(&self) -> &Keep {
                self.sums.keep()
            }

            /// Returns the numbers of the cells in a span, ascending.
            pub fn numbers(&self, span: usize) -> impl Iterator<Item = i64> {
                let mut numbers = BTreeSet::new();
                $(numbers.extend(self.$name.numbers(span));)+
                numbers.into_iter()
            }

            /// Writes the names of the aggregates, in the order in which all other parts list them.
            pub fn encode_names(to: &mut Writer) {
                to.number([$(<$aggregate>::ID),+].len() as u64);
                $(
                    to.text(<$aggregate>::ID);
                    to.number(<$aggregate>::VERSION);
                )+
            }

            /// Encodes one part of every aggregate.
            pub fn encode(&self, part: Part, to: &mut Writer) {
                $(to.part(|to| self.$name.encode(part, to));)+
            }

            /// Sets all starts to the end of the stored ledger, for whatever cannot be resumed.
            pub fn begin(&mut self, stored: &StoredLedger) -> Result<(), LedgerError> {
                $(
                    stored.check::<$aggregate>()?;
                    self.$name.begin(stored);
                )+
                Ok(())
            }

            /// Resumes one stored part, as far as it is still kept.
            pub fn resume(&mut self, part: Part, from: &mut Reader, stored: &StoredLedger) -> Result<(), LedgerError> {
                let mut found = BTreeMap::new();
                for aggregate in &stored.aggregates {
                    found.insert(&*aggregate.id, from.part()?);
                }
                $(
                    if let Some(mut from) = found.remove(<$aggregate>::ID) {
                        self.$name.resume(part, &mut from, stored)?;
                        from.end()?;
                    }
                )+
                Ok(())
            }

            /// Drops resumed cells beyond the size of their span.
            pub fn trim(&mut self, stored: &StoredLedger) {
                $(self.$name.trim(stored);)+
                self.align();
            }

            /// Creates the missing cells of new aggregates, so that all of them have cells with the same numbers.
            fn align(&mut self) {
                for span in 0..self.keep().spans.len() {
                    let numbers: BTreeSet<i64> = self.numbers(span).collect();
                    $(self.$name.fill(span, &numbers);)+
                }
            }
        }

        impl<'a> Numbers<'a> {
            /// Returns the sums of one arm.
            pub fn of(self, arm: ArmId) -> OfArm<'a> {
                OfArm {
                    $($name: self.$name.get(&arm),)+
                }
            }
        }

        impl Cell {
            pub fn numbers(&self) -> Numbers<'_> {
                Numbers {
                    $($name: &self.$name,)+
                }
            }
        }
    };
}

// In the order of the encoding.
aggregates! {
    /// Numerators and denominators of all metrics, as wide as the ranking.
    sums: Sums,
    /// Items of the catalogue that were shown. Empty unless coverage is measured.
    seen: DistinctItems,
    /// Sums by user bucket. Empty unless users are tracked.
    buckets: Buckets,
    /// Number of users first seen in an arm. Empty unless users are tracked.
    exposures: Exposures,
    /// Lists without a user and lists beyond a cap. Empty unless users are tracked.
    units: Units,
    /// Refused lists, and accepted ones by hour. Empty unless users are tracked.
    refused: Refused,
    /// Lists by the bits of their users, to find the most frequent user. Empty unless users are tracked.
    frequent: Frequent,
    /// Latest time of a list, Unix ms.
    latest: Latest,
}
