//! Sums of columns, each added from its first number to its last, because the order determines the last bits.
//!
//! An addition depends only on the previous one in the same column, so several columns are added side by side.

/// Number of columns that are added side by side.
const WIDTH: usize = 8;

/// Returns the sum of each column.
pub(super) fn sums(columns: &[&[f64]]) -> Vec<f64> {
    all(columns, |number| number)
}

/// Returns the sum of the squares of each column.
pub(super) fn squares(columns: &[&[f64]]) -> Vec<f64> {
    all(columns, |number| number * number)
}

/// Adds some columns of one length to their sums so far.
pub(super) fn added<const N: usize>(so_far: [f64; N], columns: [&[f64]; N]) -> [f64; N] {
    side_by_side(so_far, columns, |number| number)
}

fn all(columns: &[&[f64]], term: impl Fn(f64) -> f64 + Copy) -> Vec<f64> {
    let mut sums = Vec::with_capacity(columns.len() + WIDTH);
    for some in columns.chunks(WIDTH) {
        // Unused places repeat the first column. Their sums are dropped below.
        let mut chosen = [some[0]; WIDTH];
        chosen[..some.len()].copy_from_slice(some);
        sums.extend(side_by_side([0.0; WIDTH], chosen, term));
    }
    sums.truncate(columns.len());
    sums
}

fn side_by_side<const N: usize>(
    mut sums: [f64; N],
    columns: [&[f64]; N],
    term: impl Fn(f64) -> f64,
) -> [f64; N] {
    let n_shared = columns.iter().map(|column| column.len()).min().unwrap_or(0);
    let shared = columns.map(|column| &column[..n_shared]);
    for row in 0..n_shared {
        for (sum, column) in sums.iter_mut().zip(&shared) {
            *sum += term(column[row]);
        }
    }
    for (sum, column) in sums.iter_mut().zip(columns) {
        column[n_shared..].iter().for_each(|number| *sum += term(*number));
    }
    sums
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Equal to the last bit.
        #[test]
        fn columns_are_summed_in_their_own_order(
            columns in prop::collection::vec(prop::collection::vec(-1e9_f64..1e9, 0..40), 0..20),
        ) {
            let slices: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
            let one_by_one = |term: &dyn Fn(f64) -> f64| -> Vec<f64> {
                columns.iter().map(|column| column.iter().fold(0.0, |sum, number| sum + term(*number))).collect()
            };
            prop_assert_eq!(sums(&slices), one_by_one(&|number| number));
            prop_assert_eq!(squares(&slices), one_by_one(&|number| number * number));
        }
    }
}
