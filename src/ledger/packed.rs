//! Sums by user bucket in few bytes: how a cell is kept for as long as a window lasts.

use super::buckets::{BucketSums, decode_buckets, encode_buckets};
use super::bytes::{LedgerError, Reader, Writer};

/// What one arm adds up to in a cell, as a ledger encodes it: the number of columns, then the buckets that have a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackedBuckets(Box<[u8]>);

impl PackedBuckets {
    pub fn new(sums: &BucketSums) -> PackedBuckets {
        let mut to = Writer::default();
        to.number(sums.values().next().map_or(0, |row| row.len() as u64));
        encode_buckets(sums, &mut to);
        PackedBuckets(to.into_bytes().into_boxed_slice())
    }

    /// The sums that were packed.
    pub fn unpack(&self) -> BucketSums {
        decode(&self.0).expect("these are the bytes that `new` has written")
    }

    /// Length in bytes.
    pub fn length(&self) -> usize {
        self.0.len()
    }
}

fn decode(bytes: &[u8]) -> Result<BucketSums, LedgerError> {
    let mut from = Reader::new(bytes);
    let n_columns = from.number()? as usize;
    decode_buckets(&mut from, |from| (0..n_columns).map(|_| from.sum()).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ledger::{merge_buckets, subtract_buckets};

    #[test]
    fn a_bucket_takes_a_byte_for_itself_and_one_for_each_small_sum() {
        let sums = BucketSums::from([
            (7, vec![1, 0, 63, 64].into()),
            (255, vec![2, 0, 0, 1 << 32].into()),
        ]);
        let packed = PackedBuckets::new(&sums);
        let [columns, buckets] = [1, 1];
        // 64 takes two bytes, for its sign is kept too, and 2^32 takes five.
        assert_eq!(
            packed.length(),
            columns + buckets + (1 + 1 + 1 + 1 + 2) + (1 + 1 + 1 + 1 + 5)
        );
        assert_eq!(packed.unpack(), sums);
    }

    prop_compose! {
        /// Of three columns, the first of which counts lists.
        fn some_sums()(rows in prop::collection::btree_map(any::<u8>(), (1..1000_i64, any::<i64>(), any::<i64>()), 0..9)) -> BucketSums {
            let rows = rows.into_iter();
            rows.map(|(bucket, (lists, one, other))| (bucket, [lists, one, other].map(i128::from).into())).collect()
        }
    }

    proptest! {
        #[test]
        fn what_was_packed_comes_back_and_what_was_added_can_be_taken_away(one in some_sums(), other in some_sums()) {
            prop_assert_eq!(PackedBuckets::new(&one).unpack(), one.clone());
            let mut both = one.clone();
            merge_buckets(&mut both, &other);
            subtract_buckets(&mut both, &other);
            prop_assert_eq!(both, one);
        }
    }
}
