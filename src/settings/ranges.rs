//! Checks of numbers and time spans against the ranges in their rows.

use std::collections::BTreeMap;
use std::ops::{Bound, RangeBounds as _};

use toml::{Spanned, Value};

use super::access::HashList;
use super::error::ErrorReport;
use super::paths::{RawId, RawPaths};
use super::row::{Bounds, Rule, Setting};
use super::units::{ByteSize, TimeSpan};

/// Value of a setting as read.
pub(super) trait Ranged {
    /// Refuses a value outside of its row's range. Most types have no range.
    fn check(&self, _row: &Setting, _key: &str, _report: &mut ErrorReport) {}
}

impl<T: Ranged> Ranged for Option<T> {
    fn check(&self, row: &Setting, key: &str, report: &mut ErrorReport) {
        if let Some(value) = self {
            value.check(row, key, report);
        }
    }
}

impl<T: Ranged> Ranged for Spanned<Vec<T>> {
    fn check(&self, row: &Setting, key: &str, report: &mut ErrorReport) {
        for entry in self.get_ref() {
            entry.check(row, key, report);
        }
    }
}

impl Ranged for Spanned<i64> {
    fn check(&self, row: &Setting, key: &str, report: &mut ErrorReport) {
        let number = self.get_ref();
        let Some(range) = row.range().filter(|range| !range.contains(number)) else {
            return;
        };
        let what = match row.is_secret() {
            true => "it".to_owned(),
            false => number.to_string(),
        };
        let remedy = format!("write a number from {} to {}", range.start(), range.end());
        report.refuse(key, self, format!("{what} is out of range"), remedy);
    }
}

impl Ranged for Spanned<f64> {
    fn check(&self, row: &Setting, key: &str, report: &mut ErrorReport) {
        if let Some(bounds) = row.bounds() {
            is_between(bounds, key, self, report);
        }
    }
}

impl Ranged for Spanned<TimeSpan> {
    fn check(&self, row: &Setting, key: &str, report: &mut ErrorReport) {
        let may_be_zero = row.rules.iter().any(|rule| matches!(rule, Rule::MayBeZero));
        if self.get_ref().ms == 0 && !may_be_zero {
            let remedy = "write a longer span, such as \"5s\"";
            report.refuse(key, self, "must be longer than nothing", remedy);
        }
    }
}

impl<K, V> Ranged for BTreeMap<K, V> {}
impl<K, V> Ranged for Spanned<BTreeMap<K, V>> {}
impl Ranged for Spanned<bool> {}
impl Ranged for Spanned<ByteSize> {}
impl Ranged for Spanned<HashList> {}
impl Ranged for Spanned<RawId> {}
impl Ranged for Spanned<RawPaths> {}
impl Ranged for Spanned<String> {}
impl Ranged for Spanned<Value> {}

/// Refuses a number outside of these bounds.
pub(super) fn is_between(bounds: Bounds, key: &str, value: &Spanned<f64>, report: &mut ErrorReport) {
    let number = value.get_ref();
    if !bounds.contains(number) {
        let remedy = match bounds {
            (Bound::Excluded(low), Bound::Excluded(high)) => {
                format!("write a number above {low} and below {high}, such as 0.05 for 5%")
            }
            (Bound::Excluded(low), Bound::Included(high)) => {
                format!("write a number of days above {low} and at most {high}, such as 7 or 14")
            }
            (Bound::Included(low), Bound::Included(high)) => format!("write a number from {low} to {high}"),
            _ => String::new(),
        };
        report.refuse(key, value, format!("{number} is out of range"), remedy);
    }
}
