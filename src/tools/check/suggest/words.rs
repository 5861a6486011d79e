//! Hints of names and values, from the words they consist of.

/// Splits a name into words. `eventAttributionSource` and `event_attribution_source` have three.
pub(super) fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for c in name.chars() {
        // A capital starts a word only after a lower-case letter, so `userID` has two words.
        let begins = !c.is_alphanumeric() || (c.is_uppercase() && was_lower);
        if begins && words.last().is_some_and(|word| !word.is_empty()) {
            words.push(String::new());
        }
        if c.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(c.to_lowercase());
        }
        was_lower = c.is_lowercase() || c.is_numeric();
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Returns true if one of the words in a name is in this list.
pub(super) fn hints(name: &str, at: &[&str]) -> bool {
    words(name).iter().any(|word| at.contains(&word.as_str()))
}

/// Rates the hint of a name: 2 if all of its words are in this list, 1 if some are, else 0.
pub(super) fn hint(name: &str, at: &[&str]) -> f64 {
    let words = words(name);
    let n = words.iter().filter(|word| at.contains(&word.as_str())).count();
    match n {
        0 => 0.0,
        n if n == words.len() => 2.0,
        _ => 1.0,
    }
}

pub(super) const KIND: [&str; 7] = ["type", "event", "kind", "action", "name", "category", "verb"];
/// Words in values that mean a click.
pub(super) const CLICK: [&str; 14] = [
    "click",
    "clicked",
    "clicks",
    "clickthrough",
    "clk",
    "clks",
    "open",
    "opened",
    "press",
    "pressed",
    "select",
    "selected",
    "tap",
    "tapped",
];
/// Words in values that mean a click or another user action.
pub(super) const INTERACTION: [&str; 4] = ["action", "engagement", "feedback", "interaction"];
/// Words in values that mean a served list.
pub(super) const SERVED: [&str; 36] = [
    "carousel",
    "displayed",
    "exposed",
    "exposure",
    "feed",
    "imp",
    "impr",
    "imps",
    "impression",
    "impressions",
    "imprs",
    "list",
    "listing",
    "lists",
    "query",
    "ranked",
    "ranking",
    "rec",
    "reco",
    "recommend",
    "recommendation",
    "recommendations",
    "recommended",
    "recs",
    "response",
    "results",
    "search",
    "seen",
    "serve",
    "served",
    "shown",
    "slate",
    "view",
    "viewed",
    "views",
    "visible",
];
pub(super) const ITEMS: [&str; 25] = [
    "articles",
    "candidates",
    "docs",
    "documents",
    "hits",
    "ids",
    "impression",
    "impressions",
    "items",
    "list",
    "movies",
    "offers",
    "products",
    "ranked",
    "ranking",
    "recommendations",
    "recommended",
    "recs",
    "results",
    "skus",
    "slate",
    "songs",
    "tiles",
    "tracks",
    "videos",
];
pub(super) const ITEM: [&str; 15] = [
    "article", "asin", "content", "doc", "document", "id", "item", "key", "movie", "object", "product",
    "sku", "song", "track", "video",
];
pub(super) const POSITION: [&str; 8] = [
    "index", "ordinal", "place", "pos", "position", "rank", "ranking", "slot",
];
pub(super) const REQUEST: [&str; 13] = [
    "correlation",
    "id",
    "impression",
    "list",
    "query",
    "ranking",
    "rec",
    "recommendation",
    "req",
    "request",
    "response",
    "rid",
    "trace",
];
pub(super) const USER: [&str; 19] = [
    "account",
    "anonymous",
    "cid",
    "client",
    "clientid",
    "cookie",
    "customer",
    "customerid",
    "device",
    "deviceid",
    "distinct",
    "member",
    "profile",
    "uid",
    "user",
    "userid",
    "viewer",
    "visitor",
    "visitorid",
];
pub(super) const TIME: [&str; 8] = [
    "at",
    "created",
    "date",
    "datetime",
    "occurred",
    "time",
    "timestamp",
    "ts",
];
pub(super) const EXPERIMENT: [&str; 12] = [
    "ab",
    "abtest",
    "abtests",
    "assignments",
    "exp",
    "experiment",
    "experiments",
    "exps",
    "flag",
    "flags",
    "test",
    "tests",
];
pub(super) const ARM: [&str; 13] = [
    "arm",
    "arms",
    "bucket",
    "cell",
    "cohort",
    "group",
    "treatment",
    "treatments",
    "var",
    "variant",
    "variants",
    "variation",
    "variations",
];
/// Names for the place of a list on its page.
pub(super) const SHELF: [&str; 18] = [
    "block",
    "carousel",
    "component",
    "container",
    "list",
    "module",
    "page",
    "placement",
    "rail",
    "row",
    "section",
    "shelf",
    "slot",
    "strip",
    "surface",
    "widget",
    "zone",
    "area",
];
/// Names of facts about an assignment that are neither its experiment nor its arm.
pub(super) const ASSIGNMENT: [&str; 19] = [
    "active",
    "assigned",
    "assignment",
    "bucket",
    "eligible",
    "email",
    "enabled",
    "enrolled",
    "experiment",
    "exposed",
    "ip",
    "key",
    "reason",
    "hash",
    "salt",
    "seed",
    "session",
    "uuid",
    "version",
];
/// Names of fields that hold an object for each flag, and names in such an object. Features of items or users lack these.
pub(super) const FEATURE: [&str; 2] = ["feature", "features"];
pub(super) const OF_FLAG: [&str; 7] = [
    "reason",
    "ruleId",
    "variant",
    "variation",
    "variationId",
    "variationIndex",
    "variation_id",
];
/// Words after `exp_` that do not name an experiment.
pub(super) const FACT: [&str; 14] = [
    "count", "date", "day", "env", "id", "level", "mode", "month", "points", "score", "source", "type",
    "value", "year",
];
/// Names of flags for lists in an experiment, in lower case and without separators.
pub(super) const ENROLLED: [&str; 6] = [
    "enrolled",
    "inexperiment",
    "intest",
    "isenrolled",
    "isinexperiment",
    "isintest",
];
/// Names of flags for lists that are not in an experiment, in the same form.
pub(super) const EXCLUDED: [&str; 2] = ["excluded", "isexcluded"];
/// Names for the algorithm that chose a list, used if no field is named like an arm.
pub(super) const CHOOSER: [&str; 8] = [
    "algo",
    "algorithm",
    "campaign",
    "model",
    "policy",
    "recommender",
    "source",
    "strategy",
];
/// Names of the field with which an array element identifies its subject; `VALUE` holds names of its value.
pub(super) const NAME: [&str; 4] = ["id", "key", "name", "slug"];
/// Names that mean nothing without their parent.
/// The last ones are types in Avro's JSON, as in `"user_id":{"string":"u1"}`.
pub(super) const VAGUE: [&str; 11] = [
    "id", "key", "name", "slug", "uuid", "value", "array", "int", "long", "map", "string",
];
pub(super) const VALUE: [&str; 5] = ["id", "key", "name", "slug", "value"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_any_case_style_are_split_into_words() {
        for name in [
            "eventAttributionSource",
            "event_attribution-source",
            "EventAttribution.source",
        ] {
            assert_eq!(words(name), ["event", "attribution", "source"], "{name}");
        }
        assert_eq!(words("userID"), ["user", "id"]);
        assert_eq!(words("ab2Test"), ["ab2", "test"]);
        assert!(words("__").is_empty());
        assert_eq!(hint("user_id", &USER), 1.0);
        assert_eq!(hint("ts", &TIME), 2.0);
        assert_eq!(hint("total", &TIME), 0.0);
    }
}
