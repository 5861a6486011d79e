//! Count of the users of each item in a stream of events, to create a catalogue with shares automatically.
//!
//! Counts are exact. Each pair of item and user is kept once, so neither the order of events nor duplicates matter. Users and
//! requests are identified by their hashes, as in the engine.

use std::collections::BTreeMap;
use std::io::{self, Write};

use abgauge_core::decode::schema::RawRecord;
use abgauge_core::decode::{Decoder, Explained, Hashes};
use abgauge_core::engine::event::{Kind, Reason};
use foldhash::{HashMap, HashMapExt as _, HashSet, HashSetExt as _};
use serde::Serialize;

/// Action that makes someone a user of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Touch {
    /// Users who clicked an item
    Clicked,
    /// Users who were shown an item
    Shown,
}

/// Items of a stream and their users.
pub struct ItemUsers {
    decoder: Decoder,
    touch: Touch,
    max_bytes: u64,
    /// Item numbers, starting at 0.
    items: HashMap<String, u32>,
    /// Total bytes of item ids.
    n_id_bytes: u64,
    /// User numbers, starting at 0, by hash.
    users: HashMap<u64, u32>,
    /// Pairs of item and user.
    touched: HashSet<(u32, u32)>,
    /// User of each list, for clicks without a user.
    of_lists: HashMap<u128, u32>,
    /// Clicked items of lists that have not arrived yet.
    waiting: HashMap<u128, Vec<u32>>,
    n_waiting: u64,
    counted: CatalogueCounts,
}

/// Outcomes of records.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct CatalogueCounts {
    pub n_lists: u64,
    pub n_clicks: u64,
    pub n_ignored: u64,
    pub refused: BTreeMap<Reason, u64>,
    /// Lists without a user.
    pub n_lists_without_user: u64,
}

/// Error: the memory limit is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutOfRoom {
    pub max_bytes: u64,
}

/// Counted items, ready to be written.
pub struct CountedItems {
    /// Items with the number of their users, the most used ones first, then by id.
    pub items: Vec<(String, u32)>,
    pub n_users: usize,
    /// Clicks without a user, whose list has none either or is missing.
    pub n_clicks_without_user: u64,
    pub counted: CatalogueCounts,
}

/// Line of a catalogue.
#[derive(Serialize)]
struct Line<'a> {
    item: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    users: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    of_users: Option<usize>,
}

impl ItemUsers {
    /// Creates an empty count. `decoder` is the decoder of the stream.
    pub fn new(decoder: Decoder, touch: Touch, max_bytes: u64) -> ItemUsers {
        ItemUsers {
            decoder,
            touch,
            max_bytes,
            items: HashMap::new(),
            n_id_bytes: 0,
            users: HashMap::new(),
            touched: HashSet::new(),
            of_lists: HashMap::new(),
            waiting: HashMap::new(),
            n_waiting: 0,
            counted: CatalogueCounts::default(),
        }
    }

    /// Counts a record. Records without a type are of the kind `topic_kind`.
    ///
    /// # Errors
    /// If it takes more memory than allowed. Everything counted so far is kept.
    pub fn take<'a>(
        &mut self,
        record: impl Into<RawRecord<'a>>,
        topic_kind: Option<Kind>,
    ) -> Result<(), OutOfRoom> {
        let hashes = self.decoder.hashes();
        // The first part of an id is enough to find the user, because lists that share it were shown to the same one.
        for explained in self.decoder.explain(record, topic_kind) {
            match explained {
                Explained::Served {
                    request_id,
                    user_id,
                    items,
                    clicked,
                    ..
                } => {
                    self.list(&hashes, &request_id, user_id.as_deref(), items);
                    for item in clicked {
                        self.click(&hashes, &request_id, user_id.as_deref(), item);
                    }
                }
                Explained::Click {
                    request_id,
                    user_id,
                    item,
                    ..
                } => self.click(&hashes, &request_id, user_id.as_deref(), item),
                Explained::Ignored(_) => self.counted.n_ignored += 1,
                Explained::Refused { reason, .. } => *self.counted.refused.entry(reason).or_default() += 1,
            }
        }
        // Checked after each record, so the limit is exceeded by one record at most.
        match self.n_bytes() > self.max_bytes {
            true => Err(OutOfRoom {
                max_bytes: self.max_bytes,
            }),
            false => Ok(()),
        }
    }

    fn list(&mut self, hashes: &Hashes, request: &str, user: Option<&str>, items: Vec<String>) {
        self.counted.n_lists += 1;
        // The catalogue has all items, also those of lists without a user.
        let items: Vec<u32> = items.into_iter().map(|item| self.item(item)).collect();
        let Some(user) = user.map(|user| self.user(hashes, user)) else {
            self.counted.n_lists_without_user += 1;
            return;
        };
        if self.touch == Touch::Shown {
            self.touched.extend(items.into_iter().map(|item| (item, user)));
            return;
        }
        let request = hashes.request(request.as_bytes());
        // Copies of a list have the same user, so the first one decides.
        let user = *self.of_lists.entry(request).or_insert(user);
        let waiting = self.waiting.remove(&request).unwrap_or_default();
        self.n_waiting -= waiting.len() as u64;
        self.touched.extend(waiting.into_iter().map(|item| (item, user)));
    }

    fn click(&mut self, hashes: &Hashes, request: &str, user: Option<&str>, item: String) {
        self.counted.n_clicks += 1;
        let item = self.item(item);
        let user = user.map(|user| self.user(hashes, user));
        if self.touch == Touch::Shown {
            return;
        }
        let request = hashes.request(request.as_bytes());
        match user.or_else(|| self.of_lists.get(&request).copied()) {
            Some(user) => {
                self.touched.insert((item, user));
            }
            None => {
                self.waiting.entry(request).or_default().push(item);
                self.n_waiting += 1;
            }
        }
    }

    fn item(&mut self, item: String) -> u32 {
        let next = self.items.len() as u32;
        if let Some(known) = self.items.get(&item) {
            return *known;
        }
        self.n_id_bytes += item.len() as u64;
        self.items.insert(item, next);
        next
    }

    fn user(&mut self, hashes: &Hashes, user: &str) -> u32 {
        let next = self.users.len() as u32;
        *self.users.entry(hashes.user(user.as_bytes())).or_insert(next)
    }

    /// Returns the bytes of all tables: an entry and a control byte per slot, at a maximum load of 7/8.
    fn n_bytes(&self) -> u64 {
        fn table(capacity: usize, entry: usize) -> u64 {
            (capacity as u64) * (entry as u64 + 1) * 8 / 7
        }
        table(self.items.capacity(), size_of::<(String, u32)>())
            + self.n_id_bytes
            + table(self.users.capacity(), size_of::<(u64, u32)>())
            + table(self.touched.capacity(), size_of::<(u32, u32)>())
            + table(self.of_lists.capacity(), size_of::<(u128, u32)>())
            + table(self.waiting.capacity(), size_of::<(u128, Vec<u32>)>())
            + self.n_waiting * 16
    }

    /// Returns the items with the number of their users.
    pub fn finish(self) -> CountedItems {
        let mut n_users_of = vec![0; self.items.len()];
        for (item, _) in &self.touched {
            n_users_of[*item as usize] += 1;
        }
        let mut items: Vec<(String, u32)> = self
            .items
            .into_iter()
            .map(|(id, item)| (id, n_users_of[item as usize]))
            .collect();
        // Hash maps have no order. With ties broken by id, the same events give the same file.
        items.sort_unstable_by(|(one, n_one), (other, n_other)| {
            n_other.cmp(n_one).then_with(|| one.cmp(other))
        });
        CountedItems {
            items,
            n_users: self.users.len(),
            n_clicks_without_user: self.n_waiting,
            counted: self.counted,
        }
    }
}

impl CountedItems {
    /// Writes a catalogue: one item per line, without shares if no user is known.
    ///
    /// # Errors
    /// If writing fails.
    pub fn write(&self, mut out: impl Write) -> io::Result<()> {
        for (item, users) in &self.items {
            let line = Line {
                item,
                users: (self.n_users > 0).then_some(*users),
                of_users: (self.n_users > 0).then_some(self.n_users),
            };
            serde_json::to_writer(&mut out, &line)?;
            out.write_all(b"\n")?;
        }
        out.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeSet, HashMap as Map};

    use abgauge_core::decode::catalogue;
    use proptest::prelude::*;

    use super::*;

    fn count(touch: Touch, records: &[String]) -> CountedItems {
        let mut counter = ItemUsers::new(Decoder::new(0, 100, 100), touch, u64::MAX);
        for record in records {
            counter.take(record.as_bytes(), None).expect("there is room");
        }
        counter.finish()
    }

    fn list(request: &str, user: Option<&str>, items: &[&str]) -> String {
        let user = user
            .map(|user| format!("\"user_id\":\"{user}\","))
            .unwrap_or_default();
        let items = items.join("\",\"");
        format!(
            "{{\"type\":\"served\",\"request_id\":\"{request}\",{user}\"ts\":1763596800123,\"items\":[\"{items}\"]}}"
        )
    }

    fn click(request: &str, user: Option<&str>, item: &str) -> String {
        let user = user
            .map(|user| format!("\"user_id\":\"{user}\","))
            .unwrap_or_default();
        format!(
            "{{\"type\":\"click\",\"request_id\":\"{request}\",{user}\"ts\":1763596800123,\"item\":\"{item}\"}}"
        )
    }

    /// Worked by hand: u1 clicks a twice and b once. u2, known only from the list, clicks a. u3 only views.
    #[test]
    fn an_item_counts_each_clicking_user_once() {
        let records = [
            click("2", None, "a"),
            list("1", Some("u1"), &["a", "b"]),
            list("2", Some("u2"), &["a", "c"]),
            list("3", Some("u3"), &["c", "d"]),
            list("4", None, &["a"]),
            click("1", None, "a"),
            click("1", Some("u1"), "a"),
            click("1", None, "b"),
            click("4", None, "a"),
            click("9", None, "x"),
            "{\"type\":\"view\"}".to_owned(),
            "{".to_owned(),
        ];
        let found = count(Touch::Clicked, &records);
        let expected = [("a", 2), ("b", 1), ("c", 0), ("d", 0), ("x", 0)];
        assert_eq!(found.items, expected.map(|(id, n)| (id.to_owned(), n)));
        assert_eq!((found.n_users, found.n_clicks_without_user), (3, 2));
        let counted = CatalogueCounts {
            n_lists: 4,
            n_clicks: 6,
            n_ignored: 1,
            refused: BTreeMap::from([(Reason::NotJson, 1)]),
            n_lists_without_user: 1,
        };
        assert_eq!(found.counted, counted);
        let shown = count(Touch::Shown, &records);
        let expected = [("a", 2), ("c", 2), ("b", 1), ("d", 1), ("x", 0)];
        assert_eq!(shown.items, expected.map(|(id, n)| (id.to_owned(), n)));
    }

    #[test]
    fn a_written_catalogue_is_read_with_the_same_shares() {
        let records = [
            list("1", Some("u1"), &["a", "b", "say \\\"c\\\""]),
            list("2", Some("u2"), &["a"]),
            click("1", None, "a"),
        ];
        let read = |records: &[String]| {
            let mut text = Vec::new();
            count(Touch::Clicked, records)
                .write(&mut text)
                .expect("memory takes it");
            let decoder = Decoder::new(0, 100, 100);
            catalogue::read(&*text, &decoder, None).expect("a catalogue")
        };
        let catalogue = read(&records);
        let hashes = Decoder::new(0, 100, 100).hashes();
        let shares = |id: &str| catalogue.look_up(hashes.item(id.as_bytes())).1;
        assert_eq!((catalogue.len(), catalogue.n_users()), (3, 2));
        assert_eq!((shares("a").popularity, shares("a").surprisal), (0.5, 1.0));
        assert_eq!(
            (shares("b").popularity, shares("say \"c\"").popularity),
            (0.0, 0.0)
        );
        let without_users = read(&[list("1", None, &["a"])]);
        assert_eq!((without_users.len(), without_users.n_users()), (1, 0));
    }

    #[test]
    fn memory_has_a_bound() {
        let mut counter = ItemUsers::new(Decoder::new(0, 100, 100), Touch::Clicked, 100_000);
        let outcome = (0..100_000).try_for_each(|n| {
            let record = list(&format!("r{n}"), Some(&format!("u{n}")), &["a"]);
            counter.take(record.as_bytes(), None)
        });
        assert_eq!(outcome, Err(OutOfRoom { max_bytes: 100_000 }));
        let n_lists = counter.finish().counted.n_lists;
        assert!((500..5_000).contains(&n_lists), "{n_lists}");
    }

    /// Recounts the users of each item from the records themselves.
    fn recount(records: &[(u8, Option<u8>, Vec<u8>)], is_click: &[bool], touch: Touch) -> Vec<(String, u32)> {
        let kinds = || records.iter().zip(is_click);
        let users: Map<u8, u8> = kinds()
            .rev()
            .filter(|(_, is_click)| !**is_click)
            .filter_map(|((request, user, _), _)| Some((*request, (*user)?)))
            .collect();
        let all: BTreeSet<u8> = records
            .iter()
            .flat_map(|(_, _, items)| items.iter().copied())
            .collect();
        let n_users = |item: u8| {
            let touching = kinds().filter(|((_, _, items), is_click)| {
                items.contains(&item) && **is_click == (touch == Touch::Clicked)
            });
            let touching = touching.filter_map(|((request, user, _), is_click)| match is_click {
                true => user.or_else(|| users.get(request).copied()),
                false => *user,
            });
            touching.collect::<BTreeSet<u8>>().len() as u32
        };
        let mut counted: Vec<(String, u32)> = all
            .iter()
            .map(|item| (item.to_string(), n_users(*item)))
            .collect();
        counted.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
        counted
    }

    proptest! {
        #[test]
        fn counts_equal_a_recount(
            events in proptest::collection::vec(
                (any::<bool>(), 0_u8..6, proptest::option::of(0_u8..4), proptest::collection::vec(0_u8..8, 1..5)),
                0..40,
            ),
        ) {
            let is_click: Vec<bool> = events.iter().map(|event| event.0).collect();
            let events: Vec<(u8, Option<u8>, Vec<u8>)> = events
                .into_iter()
                .map(|(is_click, request, user, mut items)| {
                    if is_click {
                        items.truncate(1);
                    }
                    (request, user, items)
                })
                .collect();
            let text = |n: &u8| n.to_string();
            let records: Vec<String> = events
                .iter()
                .zip(&is_click)
                .map(|((request, user, items), is_click)| {
                    let user = user.as_ref().map(|n| format!("u{n}"));
                    let items: Vec<String> = items.iter().map(text).collect();
                    let items: Vec<&str> = items.iter().map(String::as_str).collect();
                    match is_click {
                        true => click(&text(request), user.as_deref(), items[0]),
                        false => list(&text(request), user.as_deref(), &items),
                    }
                })
                .collect();
            for touch in [Touch::Clicked, Touch::Shown] {
                prop_assert_eq!(&count(touch, &records).items, &recount(&events, &is_click, touch));
            }
        }
    }
}
