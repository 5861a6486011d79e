//! The bound on the series of a scrape: which arms fit, and how many series are left out.

use std::cmp::Reverse;

use super::{ExportedArm, Family, WindowLabels};
use crate::config::Export;
use crate::engine::ranking::LISTS;
use crate::snapshot::View;

/// The arms that fit under `max_series`, in the order of the snapshot, and how many series are left out.
///
/// Arms are admitted by descending live lists of `total`, then by name, up to the first that does not fit.
pub(super) fn choose<'a>(
    rows: &[ExportedArm<'a>],
    config: &Export,
    places: &[WindowLabels],
    families: &[Family],
    total: usize,
) -> (Vec<ExportedArm<'a>>, usize) {
    let sizes = Sizes::of(families);
    let sizes: Vec<usize> = rows.iter().map(|row| sizes.n_series(row, places)).collect();
    let mut by_lists: Vec<usize> = (0..rows.len()).collect();
    by_lists.sort_by_key(|index| Reverse(rows[*index].arm.sums(View::Live, total)[LISTS]));

    let mut left = config.max_series;
    let admitted = by_lists
        .iter()
        .take_while(|index| match left.checked_sub(sizes[**index]) {
            Some(rest) => {
                left = rest;
                true
            }
            None => false,
        });
    let mut admitted: Vec<usize> = admitted.copied().collect();
    admitted.sort_unstable();
    let shown: usize = admitted.iter().map(|index| sizes[*index]).sum();
    let chosen = admitted.into_iter().map(|index| rows[index]).collect();
    (chosen, sizes.iter().sum::<usize>() - shown)
}

/// How many series a place has, by what they divide by: to count them is not to work them out.
struct Sizes {
    n_sums: usize,
    /// Column and factor of a denominator, and how many series are absent where it is 0.
    n_ratios: Vec<((usize, u32), usize)>,
}

impl Sizes {
    fn of(families: &[Family]) -> Sizes {
        let mut sizes = Sizes {
            n_sums: 0,
            n_ratios: Vec::new(),
        };
        for series in families.iter().flat_map(|family| &family.series) {
            let Some(by) = series.what.divides_by() else {
                sizes.n_sums += 1;
                continue;
            };
            match sizes.n_ratios.iter_mut().find(|(other, _)| *other == by) {
                Some((_, n)) => *n += 1,
                None => sizes.n_ratios.push((by, 1)),
            }
        }
        sizes
    }

    fn n_series(&self, row: &ExportedArm, places: &[WindowLabels]) -> usize {
        let of_place = |sums: &[i128]| {
            let ratios = self.n_ratios.iter();
            let shown = ratios.filter(|((column, factor), _)| sums[*column] != 0 && *factor != 0);
            self.n_sums + shown.map(|(_, n)| n).sum::<usize>()
        };
        let last_list = 1;
        let places = places.iter().filter_map(|place| place.sums(row.arm));
        places.map(of_place).sum::<usize>() + last_list + usize::from(row.is_control)
    }
}
