//! Profiles as JSON for other programs.

use abgauge_core::metrics::Profile;
use abgauge_core::metrics::profile::CHOICES;
use serde::{Serialize, Serializer};

#[derive(Serialize)]
struct ProfileList<'a> {
    profiles: OrderedMap<&'a str, ProfileEntry<'a>>,
    choices: OrderedMap<&'static str, Meaning>,
}

#[derive(Serialize)]
struct ProfileEntry<'a> {
    source: &'a str,
    metrics: &'a [&'static str],
    choices: OrderedMap<&'static str, &'static str>,
    note: &'static str,
}

#[derive(Serialize)]
struct Meaning {
    about: &'static str,
    words: OrderedMap<&'static str, &'static str>,
}

/// A map that keeps the order of its pairs.
struct OrderedMap<K, V>(Vec<(K, V)>);

impl<K: Serialize, V: Serialize> Serialize for OrderedMap<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

/// Formats profiles as
/// `{"profiles":{NAME:{"source":…,"metrics":[…],"choices":{"population":"clicked",…},"note":…}},"choices":{"population":
/// {"about":…,"words":{"all":…}}}}`, in the order of the table.
pub(super) fn document(profiles: &[Profile]) -> anyhow::Result<String> {
    let entries = profiles.iter().map(|profile| {
        let choices = CHOICES
            .iter()
            .map(|choice| (choice.setting, (choice.word)(profile)));
        let entry = ProfileEntry {
            source: &profile.source,
            metrics: &profile.metrics,
            choices: OrderedMap(choices.collect()),
            note: profile.note,
        };
        (&*profile.name, entry)
    });
    let meanings = CHOICES.iter().map(|choice| {
        let (about, words) = (choice.about, OrderedMap((choice.words)()));
        (choice.setting, Meaning { about, words })
    });
    let list = ProfileList {
        profiles: OrderedMap(entries.collect()),
        choices: OrderedMap(meanings.collect()),
    };
    Ok(serde_json::to_string_pretty(&list)? + "\n")
}
