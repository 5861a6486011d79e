//! Records that the operator leaves out by offset: `ingest.skip_records`.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use abgauge_core::engine::event::Side;

/// Partition of one of our topics.
pub type TopicPartition = (Side, i32);

/// Offsets of one topic partition, ascending. No two ranges touch.
pub type Offsets = Vec<RangeInclusive<i64>>;

/// Offsets of the records to leave out, by topic partition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Skips(BTreeMap<TopicPartition, Offsets>);

impl Skips {
    /// Combines ranges in any order, which may overlap.
    pub fn new(ranges: impl IntoIterator<Item = (TopicPartition, RangeInclusive<i64>)>) -> Skips {
        let mut skips: BTreeMap<TopicPartition, Offsets> = BTreeMap::new();
        for (partition, range) in ranges {
            skips.entry(partition).or_default().push(range);
        }
        for offsets in skips.values_mut() {
            offsets.sort_by_key(|range| *range.start());
            // Merges ranges that overlap or touch, so that a binary search finds the only range of an offset.
            offsets.dedup_by(|next, last| {
                // The last range may end at the largest offset.
                let touches = *next.start() <= last.end().saturating_add(1);
                if touches {
                    *last = *last.start()..=*last.end().max(next.end());
                }
                touches
            });
        }
        Skips(skips)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns these skips together with more.
    pub fn and(&self, more: impl IntoIterator<Item = (TopicPartition, RangeInclusive<i64>)>) -> Skips {
        let of = |(partition, offsets): (&TopicPartition, &Offsets)| {
            let partition = *partition;
            offsets.clone().into_iter().map(move |range| (partition, range))
        };
        Skips::new(self.0.iter().flat_map(of).chain(more))
    }

    /// Formats the skips as in the configuration. `topics` are indexed by `Side as usize`.
    pub fn setting(&self, topics: &[String; 2]) -> String {
        let of = |((side, partition), offsets): (&TopicPartition, &Offsets)| -> Vec<String> {
            let topic = &topics[*side as usize];
            let entry =
                |range: &RangeInclusive<i64>| format!("\"{topic}/{partition}/{}\"", range_text(range));
            offsets.iter().map(entry).collect()
        };
        let entries: Vec<String> = self.0.iter().flat_map(of).collect();
        format!("ingest.skip_records = [{}]", entries.join(", "))
    }

    /// Returns the skips of one topic partition.
    pub fn of(&self, partition: TopicPartition) -> &[RangeInclusive<i64>] {
        self.0.get(&partition).map_or(&[], Vec::as_slice)
    }
}

/// Returns the range that contains an offset.
pub fn range_at(offsets: &[RangeInclusive<i64>], offset: i64) -> Option<&RangeInclusive<i64>> {
    // Ranges are ascending and disjoint, so this is the only one that can contain the offset.
    let next = offsets.partition_point(|range| *range.end() < offset);
    offsets.get(next).filter(|range| range.contains(&offset))
}

/// Formats a range as in the setting: `1234` or `1234-1300`.
pub fn range_text(range: &RangeInclusive<i64>) -> String {
    match (range.start(), range.end()) {
        (first, last) if first == last => first.to_string(),
        (first, last) => format!("{first}-{last}"),
    }
}

/// Parses a range as in the setting: `1234`, or the first and the last offset, `1234-1300`.
pub fn parse_offsets(text: &str) -> Option<RangeInclusive<i64>> {
    // `parse` alone would accept a sign.
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let offset = |text: &str| is_number(text).then(|| text.parse().ok()).flatten();
    let (first, last) = match text.split_once('-') {
        Some((first, last)) => (offset(first)?, offset(last)?),
        None => (offset(text)?, offset(text)?),
    };
    (first <= last).then_some(first..=last)
}

#[cfg(test)]
mod tests {
    use abgauge_core::engine::event::Side;

    use super::*;

    #[test]
    fn adjacent_ranges_are_merged() {
        let of = |ranges: &[RangeInclusive<i64>]| {
            Skips::new(ranges.iter().map(|range| ((Side::Served, 0), range.clone())))
        };
        let skips = of(&[7..=9, 0..=2, 3..=3, 8..=20, 30..=30]);
        let offsets = skips.of((Side::Served, 0));
        assert_eq!(offsets, [0..=3, 7..=20, 30..=30]);
        for (offset, is_inside) in [
            (0, true),
            (3, true),
            (4, false),
            (6, false),
            (20, true),
            (31, false),
        ] {
            assert_eq!(range_at(offsets, offset).is_some(), is_inside, "{offset}");
        }
        assert!(skips.of((Side::Clicks, 0)).is_empty());
    }

    #[test]
    fn the_setting_lists_earlier_and_new_skips() {
        let before = Skips::new([((Side::Served, 0), 3..=4)]);
        let more = [((Side::Served, 0), 5..=9), ((Side::Clicks, 12), 7..=7)];
        assert_eq!(
            before.and(more).setting(&["lists".into(), "clicks".into()]),
            r#"ingest.skip_records = ["lists/0/3-9", "clicks/12/7"]"#
        );
    }

    #[test]
    fn offsets_are_parsed_in_the_format_of_the_setting() {
        assert_eq!(parse_offsets("1234"), Some(1234..=1234));
        assert_eq!(parse_offsets("0-9223372036854775807"), Some(0..=i64::MAX));
        for wrong in [
            "",
            "-1",
            "5-",
            "-",
            "9-7",
            "+5",
            "1-2-3",
            " 1",
            "9223372036854775808",
        ] {
            assert_eq!(parse_offsets(wrong), None, "{wrong}");
        }
    }
}
