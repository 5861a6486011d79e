//! Codec for the sums of a pair's users.
//!
//! ```text
//! 3 │ number of the look │ number of the first cell that is not in it │ of the first one still needed │ n, id of each column…
//!   │ n, (experiment, n, (arm, n, (epoch, first seen in it, in two arms, lists without a user, lists beyond the cap, refused,
//!   │ frequent, buckets)…)…)…
//! refused  as in a ledger │ frequent n, (place, lists, lists with each bit of their user…)…
//! buckets  n, (bucket, a sum for each column, lists with a click)…
//! ```
//! Version 2 lacks refused lists and frequent users. Version 1 also lacks the list counts.

use std::collections::{BTreeMap, HashMap};

use super::numbers::read_map;
use super::{AsOfError, UpTo};
use crate::bytes::{Malformed, Reader, Writer, insert_last};
use crate::engine::ArmId;
use crate::ledger::{BucketSums, Exposed, FrequentUsers, LedgerError, RefusedCounts, UnitCounts};
use crate::looks::pair::{ArmUsers, PairUsers};
use crate::metrics::Ranking;

const VERSION: u8 = 3;
/// Version without refused lists and frequent users.
const WITHOUT_REFUSED: u8 = 2;
/// Version that also lacks counts of lists without a user or beyond the cap.
const UNCOUNTED: u8 = 1;

/// Sums by arm, then epoch.
type ArmSums = BTreeMap<ArmId, BTreeMap<usize, ArmUsers>>;

#[derive(Debug)]
pub struct StoredUsers {
    pub up_to: UpTo,
    /// True if the stored sums have all columns of the current ranking.
    pub has_columns: bool,
    pub experiments: BTreeMap<String, ArmSums>,
}

pub fn encode(up_to: &UpTo, pair: &PairUsers, ranking: &Ranking) -> Vec<u8> {
    let mut to = Writer::default();
    to.byte(VERSION);
    let UpTo {
        look,
        end,
        cells_from,
    } = *up_to;
    [look, end, cells_from]
        .iter()
        .for_each(|number| to.signed((*number).into()));
    let ids = ranking.ids(None);
    to.number(ids.len() as u64);
    ids.iter().for_each(|id| to.text(id));
    to.number(pair.experiments.len() as u64);
    for (name, users) in &pair.experiments {
        to.text(name);
        encode_arms(&users.arms, &mut to);
    }
    to.into_bytes()
}

fn encode_arms(arms: &ArmSums, to: &mut Writer) {
    to.number(arms.len() as u64);
    for (arm, epochs) in arms {
        to.number((*arm).into());
        to.number(epochs.len() as u64);
        for (epoch, users) in epochs {
            to.number(*epoch as u64);
            to.number(users.exposed.first);
            to.number(users.exposed.in_two);
            to.number(users.units.without_user);
            to.number(users.units.capped);
            users.refused.encode(to);
            users.frequent.encode(to);
            users.sums.encode(to);
        }
    }
}

/// Reads how far the sums go, and returns the rest of the bytes.
pub fn begin(bytes: &[u8]) -> Result<(UpTo, Reader<'_>), AsOfError> {
    let (_, up_to, from) = header(bytes)?;
    Ok((up_to, from))
}

fn header(bytes: &[u8]) -> Result<(u8, UpTo, Reader<'_>), AsOfError> {
    let mut from = Reader::new(bytes);
    let version = from.byte()?;
    if ![VERSION, WITHOUT_REFUSED, UNCOUNTED].contains(&version) {
        return Err(AsOfError::Version);
    }
    let up_to = UpTo {
        look: from.ms()?,
        end: from.ms()?,
        cells_from: from.ms()?,
    };
    Ok((version, up_to, from))
}

impl StoredUsers {
    pub fn decode(bytes: &[u8], ranking: &Ranking, n_arms: usize) -> Result<StoredUsers, AsOfError> {
        let (version, up_to, mut from) = header(bytes)?;
        let columns = ColumnMapping::decode(&mut from, ranking)?;
        let experiments = read_map(&mut from, |from| decode_arms(from, &columns, n_arms, version))?;
        from.end()?;
        Ok(StoredUsers {
            up_to,
            has_columns: columns.has_all,
            experiments,
        })
    }
}

fn decode_arms(
    from: &mut Reader,
    columns: &ColumnMapping,
    n_arms: usize,
    version: u8,
) -> Result<ArmSums, AsOfError> {
    let mut arms = ArmSums::new();
    for _ in 0..from.length()? {
        let arm = below(from.number()?, n_arms as u64)? as ArmId;
        let mut epochs = BTreeMap::new();
        for _ in 0..from.length()? {
            let epoch = below(from.number()?, 1 << 16)? as usize;
            let users = ArmUsers {
                exposed: Exposed {
                    first: below(from.number()?, 1 << 56)?,
                    in_two: below(from.number()?, 1 << 56)?,
                },
                units: match version {
                    UNCOUNTED => UnitCounts::default(),
                    _ => UnitCounts {
                        without_user: below(from.number()?, 1 << 56)?,
                        capped: below(from.number()?, 1 << 56)?,
                    },
                },
                refused: match version {
                    VERSION => RefusedCounts::decode(from)?,
                    _ => RefusedCounts::default(),
                },
                frequent: match version {
                    VERSION => FrequentUsers::decode(from)?,
                    _ => FrequentUsers::default(),
                },
                sums: BucketSums::decode(from, |from| columns.row(from))?,
            };
            insert_last(&mut epochs, epoch, users)?;
        }
        insert_last(&mut arms, arm, epochs)?;
    }
    Ok(arms)
}

fn below(number: u64, bound: u64) -> Result<u64, AsOfError> {
    let is_sound = number < bound;
    is_sound
        .then_some(number)
        .ok_or(AsOfError::Malformed(Malformed::Number))
}

/// Mapping from stored columns to the current ones.
struct ColumnMapping {
    own: Vec<Option<usize>>,
    width: usize,
    has_all: bool,
}

impl ColumnMapping {
    fn decode(from: &mut Reader, ranking: &Ranking) -> Result<ColumnMapping, AsOfError> {
        let ids = ranking.ids(None);
        let known: HashMap<&str, usize> = ids.iter().map(String::as_str).zip(0..).collect();
        let mut stored = HashMap::new();
        let mut own = Vec::new();
        for _ in 0..from.length()? {
            let id = from.text()?;
            // If a column occurred twice, one sum would overwrite the other.
            if stored.insert(id, ()).is_some() {
                return Err(AsOfError::Malformed(Malformed::Number));
            }
            own.push(known.get(id).copied());
        }
        let n_found = own.iter().flatten().count();
        Ok(ColumnMapping {
            own,
            width: ids.len(),
            has_all: n_found == ids.len(),
        })
    }

    /// Reads a row into the current columns, with the lists with a click at its end. Columns that no longer exist are skipped.
    fn row(&self, from: &mut Reader) -> Result<Vec<i128>, LedgerError> {
        // A column without stored sums stays 0. Then `has_all` is false, and the experiment restarts.
        let mut row = vec![0; self.width + 1];
        for column in self.own.iter().copied().chain([Some(self.width)]) {
            let sum = from.sum()?;
            column.into_iter().for_each(|column| row[column] = sum);
        }
        Ok(row)
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::metrics::Measures;

    /// An arm in one epoch, as earlier versions wrote it.
    fn earlier(version: u8, ranking: &Ranking) -> Vec<u8> {
        let mut to = Writer::default();
        to.byte(version);
        [7, 90, 40].iter().for_each(|number| to.signed(*number));
        let ids = ranking.ids(None);
        to.number(ids.len() as u64);
        ids.iter().for_each(|id| to.text(id));
        to.number(1);
        to.text("ranker");
        // One arm, 0, with one epoch, 0: 12 users, 1 of them in two arms.
        [1, 0, 1, 0, 12, 1].iter().for_each(|number| to.number(*number));
        if version == WITHOUT_REFUSED {
            // Lists without a user, and beyond the cap.
            [5, 6].iter().for_each(|number| to.number(*number));
        }
        BucketSums::default().encode(&mut to);
        to.into_bytes()
    }

    #[test]
    fn users_of_earlier_versions_are_read() {
        let ranking = Ranking::new(&Measures::usual(&[NonZeroU32::MIN]));
        for (version, units) in [(WITHOUT_REFUSED, [5, 6]), (UNCOUNTED, [0, 0])] {
            let stored = StoredUsers::decode(&earlier(version, &ranking), &ranking, 1);
            let stored = stored.expect("a version that is read");
            let UpTo {
                look,
                end,
                cells_from,
            } = stored.up_to;
            assert_eq!((look, end, cells_from, stored.has_columns), (7, 90, 40, true));
            let users = &stored.experiments["ranker"][&0][&0];
            assert_eq!((users.exposed.first, users.exposed.in_two), (12, 1));
            assert_eq!([users.units.without_user, users.units.capped], units);
            assert_eq!(users.refused, RefusedCounts::default());
            assert_eq!(users.frequent, FrequentUsers::default());
        }
        let unknown = StoredUsers::decode(&earlier(4, &ranking), &ranking, 1);
        assert!(matches!(unknown, Err(AsOfError::Version)));
    }
}
