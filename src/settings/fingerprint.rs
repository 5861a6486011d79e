//! Fingerprint of all settings that decide which events count where. State stored under another one is not resumed.

use abgauge_core::decode::shape::{Path, Paths, Shape};

use super::{Config, TopicKey};

/// Version of the counting rules. Increment it if a change of the program counts the same log differently.
const COUNTING: u32 = 2;

impl Config {
    /// Returns the settings that decide which events count where. Metrics, cut-offs and windows are not included: stored state
    /// contains since when it has kept each of them.
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
            // Settings of later versions are added only if they are used, so that state stored earlier stays valid.
            .chain(self.events.as_ref().and_then(id_parts))
            .chain((join.gather_ms > 0).then(|| format!("gather_ms {}", join.gather_ms)))
            .collect();
        words.join(", ")
    }
}

/// Returns the parts of a composite id.
fn id_parts(shape: &Shape) -> Option<String> {
    let (served, click) = (&shape.served, &shape.click);
    let parts = |first: &Paths, further: &[Path]| {
        let paths: Vec<String> = first.iter().chain(further).map(Path::to_string).collect();
        paths.join(" + ")
    };
    (!served.further_ids.is_empty()).then(|| {
        let of_lists = parts(&served.request_id, &served.further_ids);
        let of_clicks = parts(&click.request_id, &click.further_ids);
        format!("id of lists {of_lists}, of clicks {of_clicks}")
    })
}
