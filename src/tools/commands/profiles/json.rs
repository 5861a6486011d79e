//! Profiles as JSON for other programs.

use abgauge_core::metrics::Profile;
use abgauge_core::metrics::profile::{CHOICES, Choice};
use serde::ser::{Serialize, SerializeMap, Serializer};

/// Formats profiles as
/// `{"profiles":{NAME:{"source":…,"metrics":[…],"choices":{"population":"clicked",…},"note":…}},"choices":{"population":
/// {"about":…,"words":{"all":…}}}}`, in the order of the table.
pub(super) fn document(profiles: &[Profile]) -> anyhow::Result<String> {
    let mut text = serde_json::to_string_pretty(&ProfileList(profiles))?;
    text.push('\n');
    Ok(text)
}

struct ProfileList<'a>(&'a [Profile]);

impl Serialize for ProfileList<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry(
            "profiles",
            &Map(|| {
                self.0
                    .iter()
                    .map(|profile| (&profile.name, ProfileEntry(profile)))
            }),
        )?;
        map.serialize_entry(
            "choices",
            &Map(|| CHOICES.iter().map(|choice| (choice.setting, Meaning(choice)))),
        )?;
        map.end()
    }
}

struct ProfileEntry<'a>(&'a Profile);

impl Serialize for ProfileEntry<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let words = || {
            CHOICES
                .iter()
                .map(|choice| (choice.setting, (choice.word)(self.0)))
        };
        let mut map = serializer.serialize_map(Some(4))?;
        map.serialize_entry("source", &self.0.source)?;
        map.serialize_entry("metrics", &self.0.metrics)?;
        map.serialize_entry("choices", &Map(words))?;
        map.serialize_entry("note", self.0.note)?;
        map.end()
    }
}

struct Meaning<'a>(&'a Choice);

impl Serialize for Meaning<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("about", self.0.about)?;
        map.serialize_entry("words", &Map(|| (self.0.words)().into_iter()))?;
        map.end()
    }
}

/// A map that keeps the order of its pairs.
struct Map<F>(F);

impl<F, I, K, V> Serialize for Map<F>
where
    F: Fn() -> I,
    I: Iterator<Item = (K, V)>,
    K: Serialize,
    V: Serialize,
{
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0())
    }
}
