//! What decides which events count where, in words: state that was counted otherwise is not gone on with.

use super::{Config, TopicKey};

/// Goes up with a change of the program that counts the same log otherwise.
const COUNTING: u32 = 2;

impl Config {
    /// The settings that decide which events count where. Metrics, cut-offs and windows are not among them: what is stored says of
    /// each since when it has been kept.
    pub fn fingerprint(&self) -> String {
        let join = &self.join;
        let key = match self.kafka.key {
            TopicKey::Request => "request",
            TopicKey::User => "user",
        };
        let words = [
            ("counting", i64::from(COUNTING)),
            ("slot_ms", join.slot_ms),
            ("attribution_ms", join.attribution_ms),
            ("click_skew_ms", join.click_skew_ms),
            ("same_list_ms", join.same_list_ms),
            ("lateness_ms", join.lateness_ms),
            ("max_future_ms", join.max_future_ms),
            ("max_items", join.max_items.into()),
            ("max_experiments", join.max_experiments.into()),
            ("max_lists_per_click", join.max_lists_per_click.into()),
            ("max_off_list", join.max_off_list.into()),
            ("max_arms", self.limits.max_arms.into()),
        ];
        let words = words.iter().map(|(name, number)| format!("{name} {number}"));
        let words: Vec<String> = words
            .chain([
                format!("key {key}"),
                format!("ids {:016x}", join.user_key.marker(join.hash_seed)),
            ])
            .collect();
        words.join(", ")
    }
}
