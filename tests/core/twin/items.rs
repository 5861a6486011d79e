//! A catalogue with string ids.

use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::select;

/// The items of a catalogue.
#[derive(Debug, Clone, PartialEq)]
pub struct Items {
    pub known: BTreeMap<String, Known>,
    /// Number of all users, of which an item's users are a share.
    pub n_users: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Known {
    /// Aspects as written in a catalogue, possibly with repetitions.
    pub aspects: Vec<&'static str>,
    pub users: u64,
}

impl Items {
    /// Returns the share of users who touched an item.
    pub fn share(&self, item: &str) -> f64 {
        let known = self.known.get(item);
        known.map_or(0.0, |known| known.users as f64 / self.n_users as f64)
    }

    /// Returns the surprisal in bits.
    pub fn surprisal(&self, item: &str) -> f64 {
        match self.share(item) {
            0.0 => (self.n_users as f64).log2(),
            share => -share.log2(),
        }
    }

    pub fn aspects(&self, item: &str) -> BTreeSet<&'static str> {
        let known = self.known.get(item).into_iter();
        known.flat_map(|known| known.aspects.iter().copied()).collect()
    }

    pub fn has(&self, item: &str, aspect: &str) -> bool {
        let known = self.known.get(item);
        known.is_some_and(|known| known.aspects.contains(&aspect))
    }

    pub fn lists(&self, item: &str) -> bool {
        self.known.contains_key(item)
    }

    /// Formats the catalogue for `--catalog`.
    pub fn to_jsonl(&self) -> String {
        let lines = self.known.iter().map(|(item, known)| {
            let Known { aspects, users } = known;
            let of_users = self.n_users;
            serde_json::json!({ "item": item, "aspects": aspects, "users": users, "of_users": of_users })
                .to_string()
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// Generates catalogues of some of these items, with so few aspects that gains are often equal.
pub fn items(names: Vec<String>) -> impl Strategy<Value = Items> {
    let n_users = select(vec![1_u64, 3, 200]);
    let known = (vec(select(vec!["x", "y", "z", "w"]), 0..4), 0..=200_u64);
    (btree_map(select(names), known, 1..9), n_users).prop_map(|(known, n_users)| {
        let known = known.into_iter().map(|(name, (aspects, users))| {
            let users = users % (n_users + 1);
            (name, Known { aspects, users })
        });
        Items {
            known: known.collect(),
            n_users,
        }
    })
}
