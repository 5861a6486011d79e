//! Conversion of recommendations and ground truth, as used in notebooks, to events: a list per user and arm, and a click per
//! relevant item.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::io::{self, Write};

use serde::Serialize;

/// Recommendations in rank order, and relevant items. Everything is kept in memory.
#[derive(Debug, Default)]
pub struct Tables {
    /// Lists by arm and user, in the order of their first rows.
    lists: Vec<UserList>,
    places: HashMap<(String, String), usize>,
    arms: Vec<String>,
    /// Relevant items by user, in row order.
    relevant: HashMap<String, Vec<String>>,
    /// Users in the ground truth, in the order of their first rows.
    users: Vec<String>,
}

#[derive(Debug)]
struct UserList {
    arm: String,
    user: String,
    /// Items with their places. A lower place ranks higher.
    items: Vec<(f64, String)>,
}

/// Options for writing events.
#[derive(Debug, Clone)]
pub struct Writing {
    pub experiment: String,
    /// Time of each list, Unix ms. Clicks are a second later.
    pub at_ms: i64,
    /// True if users in the ground truth without recommendations of an arm get an empty list in it.
    pub empty_lists: bool,
    /// True if places are scores, so that lists with equal ones are counted.
    pub by_score: bool,
}

/// Counts of the output.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct ConvertedCounts {
    pub n_lists: u64,
    pub n_clicks: u64,
    /// Clicks on an item in their list.
    pub n_on_list: u64,
    /// Users in the ground truth without recommendations, summed over arms. With empty lists these users get one.
    pub n_without_list: u64,
    /// Users with recommendations but no relevant item, summed over arms.
    pub n_without_truth: u64,
    /// Rows left out as duplicates: of user and item in the ground truth, or of user, item and place in an arm.
    pub n_repeated: u64,
    /// Lists with equal scores. Their items stay in row order.
    pub n_tied: u64,
    /// Other lists with scores that differ, but are equal in single precision.
    pub n_nearly_tied: u64,
}

#[derive(Serialize)]
struct ServedRecord<'a> {
    r#type: &'static str,
    request_id: &'a str,
    user_id: &'a str,
    ts: i64,
    experiments: HashMap<&'a str, &'a str>,
    items: Vec<&'a str>,
}

#[derive(Serialize)]
struct ClickRecord<'a> {
    r#type: &'static str,
    request_id: &'a str,
    user_id: &'a str,
    ts: i64,
    item: &'a str,
}

/// Milliseconds from a list to its clicks.
const CLICK_AFTER_MS: i64 = 1_000;

impl Tables {
    /// Adds a row of recommendations. The lowest `place` ranks first, and equal places keep their row order.
    pub fn recommend(&mut self, arm: &str, user: String, item: String, place: f64) {
        let key = (arm.to_owned(), user);
        let list = match self.places.get(&key) {
            Some(list) => *list,
            None => {
                let (arm, user) = key.clone();
                if !self.arms.contains(&arm) {
                    self.arms.push(arm.clone());
                }
                self.lists.push(UserList {
                    arm,
                    user,
                    items: Vec::new(),
                });
                self.places.insert(key, self.lists.len() - 1);
                self.lists.len() - 1
            }
        };
        self.lists[list].items.push((place, item));
    }

    /// Adds a row of the ground truth.
    pub fn relevant(&mut self, user: String, item: String) {
        let items = self.relevant.entry(user).or_insert_with_key(|user| {
            self.users.push(user.clone());
            Vec::new()
        });
        items.push(item);
    }

    /// Writes the events, each list before its clicks.
    ///
    /// # Errors
    /// If writing fails.
    pub fn write(mut self, writing: &Writing, mut out: impl Write) -> io::Result<ConvertedCounts> {
        let mut written = ConvertedCounts::default();
        for list in &mut self.lists {
            written.n_repeated +=
                keep_first(&mut list.items, |(place, item)| (place.to_bits(), item.clone()));
            // The sort is stable, so equal places keep the order of their rows.
            list.items.sort_by(|(one, _), (other, _)| one.total_cmp(other));
            let ties = if writing.by_score {
                Ties::of(&list.items)
            } else {
                Ties::None
            };
            written.n_tied += u64::from(ties == Ties::Equal);
            written.n_nearly_tied += u64::from(ties == Ties::NearlyEqual);
        }
        for items in self.relevant.values_mut() {
            written.n_repeated += keep_first(items, String::clone);
        }
        let mut number = 0;
        for list in &self.lists {
            number += 1;
            let items: Vec<&str> = list.items.iter().map(|(_, item)| item.as_str()).collect();
            let relevant = self.relevant.get(&list.user).map_or(&[][..], Vec::as_slice);
            written.n_without_truth += u64::from(relevant.is_empty());
            events(
                writing,
                number,
                (&*list.arm, &*list.user),
                &items,
                relevant,
                &mut out,
                &mut written,
            )?;
        }
        for arm in &self.arms {
            for user in &self.users {
                // This user has a list in this arm, which was written above.
                if self.places.contains_key(&(arm.clone(), user.clone())) {
                    continue;
                }
                written.n_without_list += 1;
                if writing.empty_lists {
                    number += 1;
                    let relevant = &self.relevant[user];
                    events(
                        writing,
                        number,
                        (&**arm, &**user),
                        &[],
                        relevant,
                        &mut out,
                        &mut written,
                    )?;
                }
            }
        }
        out.flush()?;
        Ok(written)
    }
}

/// Equality of scores in a list.
#[derive(Debug, PartialEq, Eq)]
enum Ties {
    None,
    /// Equal in single precision only.
    NearlyEqual,
    Equal,
}

impl Ties {
    /// Compares the neighbors in a sorted list.
    fn of(items: &[(f64, String)]) -> Ties {
        let any = |is_equal: fn(f64, f64) -> bool| items.windows(2).any(|two| is_equal(two[0].0, two[1].0));
        if any(|one, other| one == other) {
            Ties::Equal
        } else if any(|one, other| one as f32 == other as f32) {
            Ties::NearlyEqual
        } else {
            Ties::None
        }
    }
}

/// Keeps the first element for each key and returns the number of removed ones.
fn keep_first<T, K: Eq + Hash>(rows: &mut Vec<T>, key: impl Fn(&T) -> K) -> u64 {
    let n_before = rows.len();
    let mut seen = HashSet::with_capacity(n_before);
    rows.retain(|row| seen.insert(key(row)));
    (n_before - rows.len()) as u64
}

/// Writes a list and its clicks. The request id is a counter, so that user ids can use the full allowed length.
fn events(
    writing: &Writing,
    number: u64,
    (arm, user): (&str, &str),
    items: &[&str],
    relevant: &[String],
    out: &mut impl Write,
    written: &mut ConvertedCounts,
) -> io::Result<()> {
    let request_id = number.to_string();
    let mut line = |event: serde_json::Result<Vec<u8>>| -> io::Result<()> {
        out.write_all(&event?)?;
        out.write_all(b"\n")
    };
    line(serde_json::to_vec(&ServedRecord {
        r#type: "served",
        request_id: &request_id,
        user_id: user,
        ts: writing.at_ms,
        experiments: HashMap::from([(writing.experiment.as_str(), arm)]),
        items: items.to_vec(),
    }))?;
    written.n_lists += 1;
    for item in relevant {
        line(serde_json::to_vec(&ClickRecord {
            r#type: "click",
            request_id: &request_id,
            user_id: user,
            ts: writing.at_ms + CLICK_AFTER_MS,
            item,
        }))?;
        written.n_clicks += 1;
        written.n_on_list += u64::from(items.contains(&item.as_str()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(tables: Tables, empty_lists: bool) -> (String, ConvertedCounts) {
        let writing = Writing {
            experiment: "offline".to_owned(),
            at_ms: 1_763_596_800_000,
            empty_lists,
            by_score: true,
        };
        let mut text = Vec::new();
        let written = tables.write(&writing, &mut text).expect("memory takes it");
        (String::from_utf8(text).expect("UTF-8"), written)
    }

    fn tables() -> Tables {
        let mut tables = Tables::default();
        for (arm, user, item, place) in [
            ("als", "u1", "b", 2.0),
            ("als", "u1", "a", 1.0),
            ("pop", "u1", "c", 1.0),
            ("als", "u2", "x", 1.0),
            ("als", "u2", "y", 1.0),
        ] {
            tables.recommend(arm, user.to_owned(), item.to_owned(), place);
        }
        for (user, item) in [("u1", "b"), ("u1", "z"), ("u3", "a")] {
            tables.relevant(user.to_owned(), item.to_owned());
        }
        tables
    }

    /// Worked by hand: u2 has no relevant items, u3 no recommendations, and z is in no list.
    #[test]
    fn each_user_has_a_list_per_arm_and_clicks_on_relevant_items() {
        let (text, written) = write(tables(), false);
        let expected = r#"{"type":"served","request_id":"1","user_id":"u1","ts":1763596800000,"experiments":{"offline":"als"},"items":["a","b"]}
{"type":"click","request_id":"1","user_id":"u1","ts":1763596801000,"item":"b"}
{"type":"click","request_id":"1","user_id":"u1","ts":1763596801000,"item":"z"}
{"type":"served","request_id":"2","user_id":"u1","ts":1763596800000,"experiments":{"offline":"pop"},"items":["c"]}
{"type":"click","request_id":"2","user_id":"u1","ts":1763596801000,"item":"b"}
{"type":"click","request_id":"2","user_id":"u1","ts":1763596801000,"item":"z"}
{"type":"served","request_id":"3","user_id":"u2","ts":1763596800000,"experiments":{"offline":"als"},"items":["x","y"]}
"#;
        assert_eq!(text, expected);
        let counted = ConvertedCounts {
            n_lists: 3,
            n_clicks: 4,
            n_on_list: 1,
            n_without_list: 2,
            n_without_truth: 1,
            n_repeated: 0,
            n_tied: 1,
            n_nearly_tied: 0,
        };
        assert_eq!(written, counted);
    }

    #[test]
    fn a_repeated_row_is_dropped_and_counted() {
        let (text, _) = write(tables(), false);
        let mut doubled = tables();
        doubled.recommend("als", "u1".to_owned(), "b".to_owned(), 2.0);
        doubled.relevant("u1".to_owned(), "z".to_owned());
        let (of_doubled, written) = write(doubled, false);
        assert_eq!((of_doubled, written.n_repeated), (text, 2));
        // With another place it is a different row, so the list contains the item twice.
        let mut twice = tables();
        twice.recommend("als", "u1".to_owned(), "b".to_owned(), 3.0);
        let (text, written) = write(twice, false);
        assert!(text.contains(r#""items":["a","b","b"]"#), "{text}");
        assert_eq!(written.n_repeated, 0);
    }

    /// One list has equal scores, one has scores that are equal only in single precision, and one has neither.
    #[test]
    fn lists_with_equal_scores_are_counted() {
        let mut tables = Tables::default();
        for (user, scores) in [
            ("u1", [2.0, 1.0, 1.0]),
            ("u2", [1.0, 1.0 + 1e-9, 3.0]),
            ("u3", [1.0, 2.0, 3.0]),
        ] {
            for (item, score) in ["a", "b", "c"].into_iter().zip(scores) {
                tables.recommend("als", user.to_owned(), item.to_owned(), -score);
            }
        }
        let (text, written) = write(tables, false);
        assert_eq!((written.n_tied, written.n_nearly_tied), (1, 1));
        assert!(text.contains(r#""items":["a","b","c"]"#), "{text}");
    }

    #[test]
    fn users_without_recommendations_can_get_an_empty_list() {
        let (text, written) = write(tables(), true);
        assert_eq!((written.n_lists, written.n_without_list), (5, 2));
        let empty: Vec<&str> = text
            .lines()
            .filter(|line| line.contains("\"items\":[]"))
            .collect();
        assert_eq!(empty.len(), 2, "u3 in both arms: {text}");
    }
}
