//! Sums of one arm by user bucket, with the rows of all buckets in one vector: adding, subtracting and reading them is far more
//! frequent than adding a bucket.

use std::ops::Range;

use super::LedgerError;
use crate::bytes::{Reader, Writer};
use crate::metrics::LISTS;

/// Number of buckets per experiment.
pub const N_BUCKETS: usize = 256;

/// Sums of one arm by bucket. A sum may need more than 64 bits, though this is very unlikely to happen.
///
/// ```text
/// buckets     0     │     7     │ …   those that have a list, ascending
/// sums     of the ranking │ lists with a click │ of the ranking │ lists with a click │ …
/// ```
#[derive(Debug, Clone, Default)]
pub struct BucketSums {
    buckets: Vec<u8>,
    /// Lower 64 bits of each sum, row after row, all of the same width.
    sums: Vec<i64>,
    /// Upper 64 bits of each sum. Empty while all sums fit into 64 bits.
    above: Vec<i64>,
}

/// Sums of one bucket.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    sums: &'a [i64],
    above: &'a [i64],
}

impl BucketSums {
    /// Creates an empty value.
    pub fn new() -> BucketSums {
        BucketSums::default()
    }

    /// Creates an empty value with spare capacity.
    pub(super) fn with_capacity(n_buckets: usize, n_columns: usize) -> BucketSums {
        BucketSums {
            buckets: Vec::with_capacity(n_buckets),
            sums: Vec::with_capacity(n_buckets * n_columns),
            above: Vec::new(),
        }
    }

    /// Returns the number of columns in a row, or 0 without buckets.
    pub fn n_columns(&self) -> usize {
        self.sums.len().checked_div(self.buckets.len()).unwrap_or(0)
    }

    /// Returns the buckets with a list, ascending.
    pub fn buckets(&self) -> &[u8] {
        &self.buckets
    }

    /// Returns the row of each bucket, ascending.
    pub fn rows(&self) -> impl Iterator<Item = (u8, Row<'_>)> {
        let n_columns = self.n_columns();
        let row = move |(place, bucket): (usize, &u8)| {
            let columns = place * n_columns..(place + 1) * n_columns;
            let row = Row {
                sums: &self.sums[columns.clone()],
                above: self.above.get(columns).unwrap_or_default(),
            };
            (*bucket, row)
        };
        self.buckets.iter().enumerate().map(row)
    }

    /// Returns the size in bytes of all sums and bucket numbers.
    pub fn bytes(&self) -> u64 {
        let n_words = self.sums.len() + self.above.len();
        (n_words * size_of::<i64>() + self.buckets.len()) as u64
    }

    /// Appends a bucket after all others, with a row as wide as theirs.
    pub(super) fn push(&mut self, bucket: u8, row: impl IntoIterator<Item = i64>) {
        let start = self.sums.len();
        self.buckets.push(bucket);
        self.sums.extend(row);
        if !self.above.is_empty() {
            self.above.extend(self.sums[start..].iter().map(|sum| sign(*sum)));
        }
    }

    /// Appends a bucket whose sums may exceed 64 bits.
    fn push_wide(&mut self, bucket: u8, row: impl IntoIterator<Item = i128>) {
        let row: Vec<i128> = row.into_iter().collect();
        let start = self.sums.len();
        self.push(bucket, row.iter().map(|sum| *sum as i64));
        for (at, sum) in (start..).zip(row) {
            self.set(at, sum);
        }
    }

    /// Adds the sums of another span of time, or of the same arm in another pair.
    pub fn merge(&mut self, more: &BucketSums) {
        if self.buckets.is_empty() {
            // Without a row of its own, it does not know the number of columns.
            self.clone_from(more);
            return;
        }
        self.make_room(&more.buckets);
        for (bucket, row) in more.rows() {
            self.add(bucket, row);
        }
    }

    fn add(&mut self, bucket: u8, row: Row) {
        let Some(columns) = self.columns(bucket) else {
            return;
        };
        let is_narrow = self.above.is_empty() && row.above.is_empty();
        if is_narrow && add(&mut self.sums[columns.clone()], row.sums) {
            return;
        }
        for (at, term) in columns.zip(row.iter()) {
            self.set(at, self.get(at) + term);
        }
    }

    /// Subtracts a row that was added before, given as one term per column. Returns whether the bucket has no list left.
    ///
    /// # Errors
    /// The first error in `terms`.
    pub(super) fn take<E>(
        &mut self,
        bucket: u8,
        terms: impl Iterator<Item = Result<i128, E>>,
    ) -> Result<bool, E> {
        let mut columns = self.columns(bucket).unwrap_or_default();
        let start = columns.start;
        for term in terms {
            let term = term?;
            if let Some(at) = columns.next() {
                self.take_one(at, term);
            }
        }
        Ok(start < columns.end && self.get(start + LISTS) == 0)
    }

    fn take_one(&mut self, at: usize, term: i128) {
        let narrow = i64::try_from(term).ok().filter(|_| self.above.is_empty());
        match narrow.and_then(|term| self.sums[at].checked_sub(term)) {
            Some(left) => self.sums[at] = left,
            None => self.set(at, self.get(at) - term),
        }
    }

    /// Returns the columns of a bucket within `sums`, if it has a row.
    fn columns(&self, bucket: u8) -> Option<Range<usize>> {
        let (place, n_columns) = (self.place(bucket)?, self.n_columns());
        Some(place * n_columns..(place + 1) * n_columns)
    }

    fn place(&self, bucket: u8) -> Option<usize> {
        // The usual case once an experiment has run for a while.
        if self.buckets.len() == N_BUCKETS {
            return Some(usize::from(bucket));
        }
        self.buckets.binary_search(&bucket).ok()
    }

    fn get(&self, at: usize) -> i128 {
        whole(self.sums[at], self.above.get(at))
    }

    fn set(&mut self, at: usize, sum: i128) {
        let above = (sum >> 64) as i64;
        // The first sum beyond 64 bits: give all of them an upper word.
        if self.above.is_empty() && above != sign(sum as i64) {
            self.above = self.sums.iter().map(|sum| sign(*sum)).collect();
        }
        self.sums[at] = sum as i64;
        if let Some(own) = self.above.get_mut(at) {
            *own = above;
        }
    }

    /// Inserts rows of zeros for buckets that are still missing.
    fn make_room(&mut self, more: &[u8]) {
        let is_new = |bucket: &u8| self.place(*bucket).is_none();
        let mut new: Vec<u8> = more.iter().copied().filter(is_new).collect();
        let (mut n_own, n_columns) = (self.buckets.len(), self.n_columns());
        let mut place = n_own + new.len();
        self.resize(place, n_columns);
        // Start with the last row: each row must move before another one takes its place.
        while let Some(bucket) = new.last().copied() {
            place -= 1;
            match n_own.checked_sub(1).filter(|last| self.buckets[*last] > bucket) {
                Some(last) => {
                    self.move_row(last, place, n_columns);
                    n_own = last;
                }
                None => {
                    self.clear_row(place, n_columns);
                    self.buckets[place] = bucket;
                    new.pop();
                }
            }
        }
    }

    /// Drops buckets that have no list left.
    pub(super) fn drop_empty(&mut self) {
        let n_columns = self.n_columns();
        let mut n_left = 0;
        for place in 0..self.buckets.len() {
            if self.get(place * n_columns + LISTS) != 0 {
                self.move_row(place, n_left, n_columns);
                n_left += 1;
            }
        }
        self.resize(n_left, n_columns);
    }

    fn resize(&mut self, n_rows: usize, n_columns: usize) {
        self.buckets.resize(n_rows, 0);
        for words in self.words() {
            words.reserve_exact((n_rows * n_columns).saturating_sub(words.len()));
            words.resize(n_rows * n_columns, 0);
        }
    }

    fn move_row(&mut self, from: usize, to: usize, n_columns: usize) {
        if from != to {
            self.buckets[to] = self.buckets[from];
            let row = from * n_columns..(from + 1) * n_columns;
            self.words()
                .for_each(|words| words.copy_within(row.clone(), to * n_columns));
        }
    }

    fn clear_row(&mut self, place: usize, n_columns: usize) {
        let row = place * n_columns..(place + 1) * n_columns;
        self.words().for_each(|words| words[row.clone()].fill(0));
    }

    /// Returns the vectors in use: always the lower words, and the upper words if there are any.
    fn words(&mut self) -> impl Iterator<Item = &mut Vec<i64>> {
        let all = [&mut self.sums, &mut self.above];
        all.into_iter().filter(|words| !words.is_empty())
    }

    /// Writes the number of buckets, then each bucket with its sums.
    pub(crate) fn encode(&self, to: &mut Writer) {
        to.number(self.buckets.len() as u64);
        for (bucket, row) in self.rows() {
            to.byte(bucket);
            row.iter().for_each(|sum| to.signed(sum));
        }
    }

    /// Decodes buckets, reading each row with `row`. All rows must be equally wide.
    ///
    /// # Errors
    /// If the bytes are invalid.
    pub(crate) fn decode<R: IntoIterator<Item = i128>>(
        from: &mut Reader,
        mut row: impl FnMut(&mut Reader) -> Result<R, LedgerError>,
    ) -> Result<BucketSums, LedgerError> {
        let mut sums = BucketSums::new();
        for _ in 0..from.length()? {
            let bucket = from.byte()?;
            // Buckets ascend, because equal sums must have equal bytes.
            if sums.buckets.last().is_some_and(|last| *last >= bucket) {
                return Err(LedgerError::Number);
            }
            sums.push_wide(bucket, row(from)?);
        }
        Ok(sums)
    }
}

/// Compares values, regardless of the width they are stored in.
impl PartialEq for BucketSums {
    fn eq(&self, other: &BucketSums) -> bool {
        let mut rows = self.rows().zip(other.rows());
        self.buckets == other.buckets && rows.all(|((_, one), (_, other))| one.iter().eq(other.iter()))
    }
}

impl<'a> Row<'a> {
    /// Returns the sum of a column.
    pub fn get(self, column: usize) -> i128 {
        whole(self.sums[column], self.above.get(column))
    }

    /// Returns all sums, column by column.
    pub fn iter(self) -> impl Iterator<Item = i128> + use<'a> {
        (0..self.sums.len()).map(move |column| self.get(column))
    }

    /// Returns all sums if they are stored in 64 bits each.
    pub fn narrow(self) -> Option<&'a [i64]> {
        self.above.is_empty().then_some(self.sums)
    }
}

fn whole(lower: i64, above: Option<&i64>) -> i128 {
    above.map_or(lower.into(), |above| {
        i128::from(*above) << 64 | i128::from(lower as u64)
    })
}

/// Returns the upper word of a sum that fits into 64 bits.
fn sign(lower: i64) -> i64 {
    lower >> 63
}

/// Adds term by term. If any sum would exceed 64 bits, leaves all of them unchanged and returns false.
fn add(sums: &mut [i64], terms: &[i64]) -> bool {
    let mut carried = 0;
    for (sum, term) in sums.iter_mut().zip(terms) {
        let before = *sum;
        *sum = before.wrapping_add(*term);
        // The sign bit is set if both terms had the same sign and the result has the other one.
        carried |= (before ^ *sum) & (*term ^ *sum);
    }
    // Wrapping subtraction undoes wrapping addition exactly.
    if carried < 0 {
        let sums = sums.iter_mut().zip(terms);
        sums.for_each(|(sum, term)| *sum = sum.wrapping_sub(*term));
    }
    carried >= 0
}

/// Collects buckets, ascending, with rows of equal width.
#[cfg(test)]
impl<R: IntoIterator<Item = i128>> FromIterator<(u8, R)> for BucketSums {
    fn from_iter<I: IntoIterator<Item = (u8, R)>>(rows: I) -> BucketSums {
        let mut sums = BucketSums::new();
        rows.into_iter()
            .for_each(|(bucket, row)| sums.push_wide(bucket, row));
        sums
    }
}

#[cfg(test)]
mod tests;
