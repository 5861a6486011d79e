//! Compares rows with a map of rows, within 64 bits and beyond.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// Map of rows with two columns. The first counts lists.
type Twin = BTreeMap<u8, [i128; 2]>;

/// Generates sums, some of them next to the limit of 64 bits and some beyond it.
fn some_sum() -> impl Strategy<Value = i128> {
    let border = i128::from(i64::MAX);
    prop_oneof![
        -9..9_i128,
        (border - 2)..(border + 2),
        (-border - 3)..(-border + 1)
    ]
}

prop_compose! {
    fn some_sums()(rows in prop::collection::btree_map(0..12_u8, (1..9_i128, some_sum()), 0..9)) -> Twin {
        rows.into_iter().map(|(bucket, (lists, other))| (bucket, [lists, other])).collect()
    }
}

fn sums(twin: &Twin) -> BucketSums {
    twin.iter().map(|(bucket, row)| (*bucket, *row)).collect()
}

proptest! {
    #[test]
    fn rows_add_up_by_bucket_and_can_be_subtracted(one in some_sums(), other in some_sums()) {
        let mut twin = one.clone();
        for (bucket, row) in &other {
            let own = twin.entry(*bucket).or_default();
            own.iter_mut().zip(row).for_each(|(sum, term)| *sum += term);
        }
        let mut all = sums(&one);
        all.merge(&sums(&other));
        prop_assert_eq!(&all, &sums(&twin));
        for (bucket, row) in other {
            all.take(bucket, row.into_iter().map(Ok::<i128, ()>)).expect("terms are told");
        }
        all.drop_empty();
        prop_assert_eq!(&all, &sums(&one));
    }
}

/// A full set of buckets has each row at the index of its number.
#[test]
fn a_full_set_of_buckets_finds_each_row() {
    let all = |lists: &dyn Fn(u8) -> i128| -> BucketSums {
        (0..=u8::MAX)
            .map(|bucket| (bucket, [lists(bucket), bucket.into()]))
            .collect()
    };
    let mut sums = all(&|_| 1);
    let more: BucketSums = [(3, [2, 0]), (255, [4, 0])].into_iter().collect();
    sums.merge(&more);
    let expected = all(&|bucket| match bucket {
        3 => 3,
        255 => 5,
        _ => 1,
    });
    assert_eq!(sums, expected);
}
