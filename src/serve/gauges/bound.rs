//! Bound on the series of a scrape: which arms fit, and how many series are left out.

use std::cmp::Reverse;

use super::looks::GaugedArm;
use super::{ExportedArm, Family, WindowLabels};

/// Remainder of `max_series`.
pub(super) struct Room {
    left: usize,
    n_dropped: usize,
}

impl Room {
    pub fn new(max_series: usize) -> Room {
        Room {
            left: max_series,
            n_dropped: 0,
        }
    }

    /// Admits items of these sizes, up to the first that does not fit. Returns the number admitted. The rest is left out,
    /// even if smaller.
    pub fn admit(&mut self, sizes: impl Iterator<Item = usize>) -> usize {
        let (mut n_admitted, mut is_full) = (0, false);
        for size in sizes {
            match self.left.checked_sub(size).filter(|_| !is_full) {
                Some(rest) => {
                    self.left = rest;
                    n_admitted += 1;
                }
                None => {
                    is_full = true;
                    self.n_dropped += size;
                }
            }
        }
        n_admitted
    }

    /// Returns the number of series left out.
    pub fn n_dropped(&self) -> usize {
        self.n_dropped
    }
}

/// Returns the arms for which there is room, in the order of the snapshot.
///
/// Arms are admitted by descending lists of `total`, then by name, up to the first that does not fit.
pub(super) fn choose<'a, 'b>(
    rows: &'b [ExportedArm<'a>],
    room: &mut Room,
    places: &[WindowLabels],
    families: &[Family],
) -> Vec<&'b ExportedArm<'a>> {
    let sizes = Sizes::of(families);
    let mut by_lists: Vec<usize> = (0..rows.len()).collect();
    // The sort is stable, so arms with equally many lists keep the order of their names.
    by_lists.sort_by_key(|index| Reverse(rows[*index].arm.n_lists()));
    let in_order = by_lists.iter().map(|index| sizes.n_series(&rows[*index], places));
    let n_admitted = room.admit(in_order);
    by_lists.truncate(n_admitted);
    // Indices are in the order of the snapshot, so that samples do not change places when arms grow.
    by_lists.sort_unstable();
    by_lists.into_iter().map(|index| &rows[index]).collect()
}

/// Number of series per place, grouped by denominator. Series can so be counted without computing their values.
pub(super) struct Sizes {
    n_sums: usize,
    /// Column and factor of a denominator, and the number of series that are absent if it is 0.
    n_ratios: Vec<((usize, u32), usize)>,
}

impl Sizes {
    pub fn of(families: &[Family]) -> Sizes {
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

    /// Returns the number for a place in which no series is absent.
    pub fn most(&self) -> usize {
        self.n_sums + self.n_ratios.iter().map(|(_, n)| n).sum::<usize>()
    }

    fn n_series(&self, row: &ExportedArm, places: &[WindowLabels]) -> usize {
        let of_place = |sums: &[i128]| {
            let ratios = self.n_ratios.iter();
            let shown = ratios.filter(|((column, factor), _)| sums[*column] != 0 && *factor != 0);
            self.n_sums + shown.map(|(_, n)| n).sum::<usize>()
        };
        let last_list = usize::from(row.is_reported);
        let places = places.iter().filter_map(|place| place.sums(row.arm));
        places.map(of_place).sum::<usize>()
            + last_list
            + usize::from(row.is_control)
            + row.looked.as_ref().map_or(0, GaugedArm::n_series)
    }
}
