//! The aggregates of a ledger, each named once: what has a part for each of them follows from the list at the end.

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
use super::seen::Seen;
use super::stored::Stored;
use super::sums::Sums;
use super::units::Units;
use crate::bytes::{Reader, Writer};
use crate::engine::ranking::Ranking;
use crate::engine::settling::SettledList;
use crate::engine::{Arm, ArmId};

/// What an aggregate adds up to.
type CellOf<A> = <A as Aggregate>::Cell;

macro_rules! aggregates {
    ($($(#[$doc:meta])* $name:ident: $aggregate:ty,)+) => {
        /// The book of each. All have cells of the same numbers.
        #[derive(Debug)]
        pub(super) struct Books {
            $(pub $name: Book<$aggregate>,)+
        }

        /// What one slot adds to each.
        #[allow(dead_code, reason = "not everything that a slot adds is told to the board")]
        pub(super) struct Slots {
            $(pub $name: Option<<$aggregate as Aggregate>::Slot>,)+
        }

        /// What arms add up to in one span of time.
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub struct Numbers<'a> {
            $($(#[$doc])* pub $name: &'a ByArm<CellOf<$aggregate>>,)+
        }

        /// What one arm adds up to in one span of time, as far as there is anything.
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub struct OfArm<'a> {
            $($(#[$doc])* pub $name: Option<&'a CellOf<$aggregate>>,)+
        }

        /// Since when each aggregate has been kept in one span of time, epoch ms; none: from the begin of the ledger on.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct Since {
            $($(#[$doc])* pub $name: Option<i64>,)+
        }

        /// What arms add up to in a cell that was taken out.
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

            /// Tells the users of an experiment with these arms no longer apart.
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

            /// Ends what has come up to this time, epoch ms.
            pub fn end_until(&mut self, until_ms: i64) {
                $(self.$name.end_until(until_ms);)+
            }

            pub fn total(&self) -> Numbers<'_> {
                Numbers {
                    $($name: &self.$name.total,)+
                }
            }

            /// The cell of a number that there is one of.
            pub fn cell(&self, span: usize, number: i64) -> Numbers<'_> {
                Numbers {
                    $($name: self.$name.cell(span, number),)+
                }
            }

            /// Takes a cell out, if there is one of this number.
            pub fn take(&mut self, span: usize, number: i64) -> Cell {
                Cell {
                    $($name: self.$name.take(span, number),)+
                }
            }

            /// Adds other books, whose arms have these numbers here.
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

            /// What each is asked to keep.
            pub fn keep(&self) -> &Keep {
                self.sums.keep()
            }

            /// Which cells of a span there are, ascending.
            pub fn numbers(&self, span: usize) -> impl Iterator<Item = i64> {
                let mut numbers = BTreeSet::new();
                $(numbers.extend(self.$name.numbers(span));)+
                numbers.into_iter()
            }

            /// The aggregates, in the order of their bytes in all other parts.
            pub fn encode_names(to: &mut Writer) {
                to.number([$(<$aggregate>::ID),+].len() as u64);
                $(
                    to.text(<$aggregate>::ID);
                    to.number(<$aggregate>::VERSION);
                )+
            }

            /// What all have for a part.
            pub fn encode(&self, part: Part, to: &mut Writer) {
                $(to.part(|to| self.$name.encode(part, to));)+
            }

            /// What is new begins where the stored ledger ends.
            pub fn begin(&mut self, stored: &Stored) -> Result<(), LedgerError> {
                $(
                    stored.check::<$aggregate>()?;
                    self.$name.begin(stored);
                )+
                Ok(())
            }

            /// What was stored for a part goes on, as far as it is kept.
            pub fn resume(&mut self, part: Part, from: &mut Reader, stored: &Stored) -> Result<(), LedgerError> {
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

            /// Keeps as many of the stored cells as there are to be.
            pub fn trim(&mut self, stored: &Stored) {
                $(self.$name.trim(stored);)+
                self.align();
            }

            /// Where an aggregate is new, it has no cells yet: all are to have cells of the same numbers.
            fn align(&mut self) {
                for span in 0..self.keep().spans.len() {
                    let numbers: BTreeSet<i64> = self.numbers(span).collect();
                    $(self.$name.fill(span, &numbers);)+
                }
            }
        }

        impl<'a> Numbers<'a> {
            /// Those of the arm of this number.
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

// In the order of their bytes.
aggregates! {
    /// Numerators and denominators of all metrics, as wide as the ranking.
    sums: Sums,
    /// Items of the catalogue that were shown; nothing where coverage is not measured.
    seen: Seen,
    /// Sums by user bucket; nothing where users are not told apart.
    buckets: Buckets,
    /// How many users were first seen in an arm; likewise.
    exposures: Exposures,
    /// Lists without a user, and lists beyond a cap; nothing where users are not told apart.
    units: Units,
    /// Refused lists, and accepted ones by hour; nothing where users are not told apart.
    refused: Refused,
    /// Lists by bits of their users, by which the user with most is found; nothing where users are not told apart.
    frequent: Frequent,
    /// The latest time of a list, epoch ms.
    latest: Latest,
}
