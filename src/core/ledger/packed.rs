//! Sums by user bucket in few bytes, for cells that are kept as long as a window lasts.

use super::LedgerError;
use super::bucket_sums::BucketSums;
use crate::bytes::{Reader, Writer};

/// Encoded sums of one arm in a cell: the number of columns, then the buckets with a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackedBuckets(Box<[u8]>);

impl PackedBuckets {
    pub fn new(sums: &BucketSums) -> PackedBuckets {
        let mut to = Writer::default();
        to.number(sums.n_columns() as u64);
        sums.encode(&mut to);
        PackedBuckets(to.into_bytes().into_boxed_slice())
    }

    /// Decodes the sums.
    pub fn unpack(&self) -> BucketSums {
        unpack(&self.0).expect("these are the bytes that `new` has written")
    }

    /// Subtracts these sums from sums they were added to before, and drops buckets without any list left.
    pub fn take_from(&self, sums: &mut BucketSums) {
        let is_emptied = take(&self.0, sums).expect("these are the bytes that `new` has written");
        // Only buckets with a list have a row.
        if is_emptied {
            sums.drop_empty();
        }
    }

    /// Returns the length in bytes.
    pub fn length(&self) -> usize {
        self.0.len()
    }
}

fn unpack(bytes: &[u8]) -> Result<BucketSums, LedgerError> {
    let mut from = Reader::new(bytes);
    let n_columns = from.number()?;
    BucketSums::decode(&mut from, |from| {
        let row: Result<Vec<i128>, _> = (0..n_columns).map(|_| from.sum()).collect();
        Ok(row?)
    })
}

/// Subtracts encoded sums. Returns whether a bucket has no list left.
fn take(bytes: &[u8], sums: &mut BucketSums) -> Result<bool, LedgerError> {
    let mut from = Reader::new(bytes);
    let n_columns = from.number()?;
    let mut is_emptied = false;
    for _ in 0..from.length()? {
        let bucket = from.byte()?;
        is_emptied |= sums.take(bucket, (0..n_columns).map(|_| from.sum()))?;
    }
    Ok(is_emptied)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    #[test]
    fn a_bucket_takes_one_byte_plus_one_for_each_small_sum() {
        let sums: BucketSums = [(7, [1, 0, 63, 64]), (255, [2, 0, 0, 1 << 32])]
            .into_iter()
            .collect();
        let packed = PackedBuckets::new(&sums);
        let [columns, buckets] = [1, 1];
        // 64 takes two bytes because the sign needs a bit, and 2^32 takes five.
        assert_eq!(
            packed.length(),
            columns + buckets + (1 + 1 + 1 + 1 + 2) + (1 + 1 + 1 + 1 + 5)
        );
        let mut left = sums.clone();
        packed.take_from(&mut left);
        assert_eq!(left, BucketSums::new());
    }

    prop_compose! {
        /// Rows with three columns. The first counts lists.
        fn some_sums()(rows in prop::collection::btree_map(any::<u8>(), (1..1000_i64, any::<i64>(), any::<i64>()), 0..9)) -> BucketSums {
            let rows = rows.into_iter();
            rows.map(|(bucket, (lists, one, other))| (bucket, [lists, one, other].map(i128::from))).collect()
        }
    }

    proptest! {
        #[test]
        fn packed_sums_can_be_unpacked_and_subtracted(one in some_sums(), other in some_sums()) {
            let mut both = one.clone();
            prop_assert_eq!(&PackedBuckets::new(&other).unpack(), &other);
            both.merge(&other);
            PackedBuckets::new(&other).take_from(&mut both);
            prop_assert_eq!(both, one);
        }
    }
}
