//! Tests that samples yield the expected drafts and can be read with them.

use abgauge_core::decode::Decoder;
use abgauge_core::engine::event::Kind;

use super::*;

fn readable<'a>(sample: &'a Unmapped, decoder: &'a Decoder) -> ReadableSample<'a> {
    ReadableSample {
        records: &sample.records,
        decoder,
        topic_kind: sample.topic_kind(),
        same_list_ms: Options::default().same_list_ms,
    }
}

fn unmapped(records: &str) -> Unmapped {
    of_topic(records, None)
}

fn of_topic(records: &str, topic_kind: Option<Kind>) -> Unmapped {
    let mut sample = Unmapped::default();
    sample.take_all(records, topic_kind);
    sample
}

impl Unmapped {
    fn take_all(&mut self, records: &str, topic_kind: Option<Kind>) {
        for (line, record) in (1..).zip(records.lines().filter(|line| !line.trim().is_empty())) {
            self.take(format_args!("line {line}"), topic_kind, record.trim().as_bytes());
        }
    }
}

/// Parses settings as TOML and returns their shape.
fn shape_of(text: &str) -> Option<Shape> {
    let brokers = ("ABGAUGE_KAFKA__BROKERS".to_owned(), "b:1".to_owned());
    let config = crate::settings::load_text("abgauge.toml", text, [brokers].into_iter());
    config.unwrap_or_else(|error| panic!("{error:?}:\n{text}")).events
}

/// Drafts a section even for records of a known shape, and reads the records with it.
fn drafted(records: &str, topic_kind: Option<Kind>) -> (String, Trial) {
    read_with_draft(&of_topic(records, topic_kind))
}

fn read_with_draft(sample: &Unmapped) -> (String, Trial) {
    let options = Options::default();
    let decoder = options.decoder();
    let topic_kind = sample.topic_kind();
    let readable = readable(sample, &decoder);
    let proposal = sample.counted(super::drafted(&readable), &options, topic_kind);
    let trial = &proposal.trial;
    let text = text::text(sample, topic_kind, &proposal, &options);
    let shape = shape_of(&text).unwrap_or_default();
    let again = readable.read(&shape);
    assert_eq!(
        (again.n_lists, again.n_clicks, again.n_refused),
        (trial.n_lists, trial.n_clicks, trial.n_refused),
        "as it was tried:\n{text}"
    );
    (text, again)
}

/// Compares the settings of the draft, without its comments.
#[track_caller]
fn check(records: &str, topic_kind: Option<Kind>, expected: &str) {
    let (text, trial) = drafted(records, topic_kind);
    let settings: Vec<&str> = text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .collect();
    let expected: Vec<&str> = expected
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    assert_eq!(settings, expected, "{text}");
    assert_eq!(trial.n_refused, 0, "{text}");
}

/// Returns 20 lists and 10 clicks of other names than ours, and 10 views in the topic of the clicks.
fn of_two_topics(types: [&str; 2]) -> Unmapped {
    let (mut lists, mut clicks) = (String::new(), String::new());
    for n in 0..20 {
        let at = 1_763_596_800_000_i64 + 1000 * n;
        let arm = ["control", "neural"][n as usize % 2];
        lists += &format!(
            r#"{{"trace":"t-{n}","at":{at},"member":"m-{}","tests":{{"ranker":"{arm}"}},"slots":["i{n}","i5","i9"]}}"#,
            n % 7
        );
        clicks += &format!(
            r#"{{"trace":"t-{n}","at":{},"action":"{}","sku":"i{n}"}}"#,
            at + 500,
            types[n as usize % 2]
        );
        lists.push('\n');
        clicks.push('\n');
    }
    let mut sample = Unmapped::default();
    sample.take_all(&lists, Some(Kind::Served));
    sample.take_all(&clicks, Some(Kind::Click));
    sample
}

#[test]
fn the_fields_of_two_topics_are_found_together() {
    let sample = of_two_topics(["a", "b"]);
    let (text, trial) = read_with_draft(&sample);
    assert_eq!(
        (trial.n_lists, trial.n_clicks, trial.n_on_item),
        (20, 20, 20),
        "{text}"
    );
    assert!(
        text.contains("arms with their lists: ranker: control 10, neural 10"),
        "{text}"
    );
    assert!(!text.contains("type ="), "{text}");
    assert_eq!(sample.suggest(&Options::default()).fault, None);
}

#[test]
fn other_events_in_the_topic_of_clicks_are_ignored() {
    let (text, trial) = read_with_draft(&of_two_topics(["click", "view"]));
    assert_eq!(
        (trial.n_lists, trial.n_clicks, trial.n_ignored),
        (20, 10, 10),
        "{text}"
    );
    assert!(text.contains("type = \"action\""), "{text}");
}

#[test]
fn a_field_that_only_repeats_the_topic_is_not_drafted() {
    let (text, trial) = read_with_draft(&of_two_topics(["click", "click"]));
    assert_eq!((trial.n_lists, trial.n_clicks), (20, 20), "{text}");
    assert!(!text.contains("type ="), "{text}");
}

/// Changes of tables, as Debezium writes them.
#[test]
fn only_created_rows_of_a_table_are_events() {
    let (mut lists, mut clicks) = (String::new(), String::new());
    for n in 0..20 {
        let at = 1_763_596_800_000_i64 + 1000 * n;
        let operation = ["c", "r"][n as usize % 2];
        let change = |before: &str, after: &str, operation: &str, table: &str| {
            format!(
                "{{\"before\":{before},\"after\":{after},\"op\":\"{operation}\",\"source\":{{\"table\":\"{table}\",\"ts_ms\":{at}}}}}\n"
            )
        };
        let list = format!(
            r#"{{"trace":"t-{n}","at":{at},"arms":"{{\"ranker\":\"a{}\"}}","slots":["i{n}","i5"]}}"#,
            n % 3
        );
        lists += &change("null", &list, operation, "lists");
        if n % 5 == 0 {
            lists += &change(&list, "null", "d", "lists");
        }
        let click = format!(r#"{{"trace":"t-{n}","at":{},"sku":"i{n}"}}"#, at + 500);
        clicks += &change("null", &click, operation, "clicks");
    }
    // Kafka Connect's JSON may have the schema of each record next to it.
    let with_schema = |changes: &str| {
        let changes = changes.lines();
        let records =
            changes.map(|change| format!("{{\"schema\":{{\"type\":\"struct\"}},\"payload\":{change}}}\n"));
        records.collect::<String>()
    };
    for (around, lists, clicks) in [
        ("", lists.clone(), clicks.clone()),
        ("payload.", with_schema(&lists), with_schema(&clicks)),
    ] {
        let mut sample = Unmapped::default();
        sample.take_all(&lists, Some(Kind::Served));
        sample.take_all(&clicks, Some(Kind::Click));
        let (text, trial) = read_with_draft(&sample);
        assert_eq!(
            (trial.n_lists, trial.n_on_item, trial.n_ignored),
            (20, 20, 4),
            "{text}"
        );
        for setting in [
            format!("type = \"{around}op\""),
            "types = [\"c\", \"r\"]".to_owned(),
            format!("request_id = \"{around}after.trace\""),
            format!("item = \"{around}after.sku\""),
            format!("experiments = \"{around}after.arms\""),
        ] {
            assert!(text.contains(&setting), "{setting}: {text}");
        }
        assert_eq!(sample.suggest(&Options::default()).fault, None);
    }
}

#[test]
fn a_draft_keeps_the_encodings_of_the_topics() {
    let mut sample = of_two_topics(["a", "b"]);
    let framed = || "framing = \"confluent\"\n".to_owned();
    sample.encodings = [framed(), framed()];
    let (text, _) = read_with_draft(&sample);
    let settings: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    for section in ["[events.served]", "[events.click]"] {
        assert!(
            settings
                .windows(2)
                .any(|two| two == [section, "framing = \"confluent\""]),
            "{text}"
        );
    }
    let mut sample = unmapped(OWN_SHAPE);
    sample.encodings = [framed(), String::new()];
    let text = sample.suggest(&Options::default()).text;
    assert!(
        text.ends_with("\n[events.served]\nframing = \"confluent\"\n"),
        "{text}"
    );
}

const OWN_SHAPE: &str = r#"
    {"type":"served","request_id":"r-1","user_id":"u-7","ts":1763596800123,"experiments":{"ranker":"neural"},"items":["i5","i9"]}
    {"type":"click","request_id":"r-1","ts":1763596805123,"item":"i9"}
"#;
const METARANK: &str = include_str!("../../../../docs/events/metarank.jsonl");
const UBI: &str = include_str!("../../../../docs/events/ubi.jsonl");
const PERSONALIZE: &str = include_str!("../../../../docs/events/personalize.jsonl");
const OWN: &str = include_str!("../../../../docs/events/own.jsonl");
const SHAPED: &str = include_str!("../../../../docs/example.jsonl");

#[test]
fn documented_samples_are_readable_with_drafts_from_field_names() {
    for (name, records, n_lists, n_clicks) in [
        ("metarank", METARANK, 3, 2),
        ("ubi", UBI, 2, 2),
        ("personalize", PERSONALIZE, 2, 2),
        ("own", OWN, 1, 1),
    ] {
        let (text, trial) = drafted(records, None);
        let found = (trial.n_lists, trial.n_clicks, trial.n_refused, trial.n_on_item);
        assert_eq!(found, (n_lists, n_clicks, 0, n_clicks), "{name}:\n{text}");
        assert!(trial.n_with_arm > 0, "{name}:\n{text}");
    }
}

#[test]
fn a_known_shape_needs_no_draft() {
    for (records, reported) in [
        (METARANK, "preset = \"metarank\""),
        (UBI, "preset = \"ubi\""),
        (PERSONALIZE, "preset = \"personalize\""),
        (SHAPED, "[events] needs no settings"),
    ] {
        let suggestion = unmapped(records).suggest(&Options::default());
        assert!(
            suggestion.fault.is_none() && suggestion.text.contains(reported),
            "{}",
            suggestion.text
        );
        shape_of(&suggestion.text);
    }
}

#[test]
fn the_shape_of_the_example_is_found() {
    check(
        OWN,
        None,
        r#"
        [events]
        type = "meta.kind"
        ts_unit = "s"
        [events.served]
        types = ["impression"]
        request_id = "meta.trace"
        user_id = "user_id"
        ts = "meta.time"
        items = "payload.results"
        item_id = "product.sku"
        experiments = "payload.tests"
        experiment = "test"
        arm = "variation.key"
        [events.click]
        types = ["tap"]
        request_id = "meta.trace"
        ts = "meta.time"
        item = "payload.sku"
        "#,
    );
}

#[test]
fn the_draft_covers_rows_positions_other_elements_and_zones() {
    check(
        r#"
        {"event":"page_served","page":"p1","visitor":"v1","at":"2025-11-20 00:00:00","variant":"neural","shelves":[{"name":"for you","tiles":[{"sku":"b","pos":2},{"sku":"a","pos":1},{"ad":9}]},{"name":"new","tiles":[{"sku":"c","pos":1}]}]}
        {"event":"page_served","page":"p2","visitor":"v1","at":"2025-11-20 00:01:00","variant":"base","shelves":[{"name":"for you","tiles":[{"sku":"d","pos":1},{"sku":"a","pos":2}]},{"name":"new","tiles":[{"sku":"e","pos":1}]}]}
        {"event":"tile_click","page":"p1","visitor":"v1","at":"2025-11-20 00:00:05","sku":"a"}
        {"event":"tile_click","page":"p2","visitor":"v1","at":"2025-11-20 00:01:05","sku":"e"}
        {"event":"scroll","page":"p2","at":"2025-11-20 00:01:06"}
        "#,
        None,
        r#"
        [events]
        type = "event"
        ts_zone = "UTC"
        [events.served]
        types = ["page_served"]
        request_id = "page"
        user_id = "visitor"
        ts = "at"
        items = "shelves"
        item_id = "sku"
        position = "pos"
        skip_others = true
        rows = true
        row_items = "tiles"
        experiments = ""
        arm = "variant"
        experiment_name = "main"
        [events.click]
        types = ["tile_click"]
        request_id = "page"
        user_id = "visitor"
        ts = "at"
        item = "sku"
        "#,
    );
}

#[test]
fn a_topic_of_one_kind_gives_one_section() {
    check(
        r#"
        {"requestId":"q1","userId":"u1","timestamp":1763596800123,"abTests":{"ranker":"neural"},"recommendations":["a","b"],"type":"home"}
        {"requestId":"q2","userId":"u2","timestamp":1763596801123,"abTests":{"ranker":"base"},"recommendations":["c","b"],"type":"item"}
        "#,
        Some(Kind::Served),
        r#"
        [events]
        type = ""
        [events.served]
        request_id = "requestId"
        user_id = "userId"
        ts = "timestamp"
        items = "recommendations"
        experiments = "abTests"
        "#,
    );
    check(
        r#"
        {"requestId":"q1","userId":"u1","timestamp":1763596805,"productId":"a"}
        {"requestId":"q2","userId":"u2","timestamp":1763596806,"productId":"b"}
        "#,
        Some(Kind::Click),
        r#"
        [events]
        ts_unit = "s"
        [events.click]
        request_id = "requestId"
        user_id = "userId"
        ts = "timestamp"
        item = "productId"
        "#,
    );
}

#[test]
fn values_decide_between_fields_with_similar_names() {
    // Session and trace both look like a list ID, but clicks name the trace. Parent and target both look like an item.
    check(
        r#"
        {"kind":"list","session_id":"s1","trace_id":"t1","ts":1763596800123,"experiment":"ranker","arm":"neural","products":[{"id":"a","score":3},{"id":"b","score":2}]}
        {"kind":"list","session_id":"s1","trace_id":"t2","ts":1763596801123,"experiment":"ranker","arm":"base","products":[{"id":"c","score":3},{"id":"b","score":2}]}
        {"kind":"click","id":"e1","session_id":"s1","cause_id":"t1","ts":1763596805123,"item_parent":"x","target":"b"}
        {"kind":"click","id":"e2","session_id":"s1","cause_id":"t2","ts":1763596806123,"item_parent":"x","target":"c"}
        "#,
        None,
        r#"
        [events]
        type = "kind"
        [events.served]
        types = ["list"]
        request_id = "trace_id"
        ts = "ts"
        items = "products"
        item_id = "id"
        experiments = ""
        experiment = "experiment"
        arm = "arm"
        [events.click]
        request_id = "cause_id"
        ts = "ts"
        item = "target"
        "#,
    );
}

#[test]
fn records_the_draft_cannot_read_are_reported() {
    let records = r#"{"k":"served","rid":"1","ts":1763596800123,"items":["a"],"exp":{"e":"x"}}
        {"k":"served","rid":"2","ts":1763596800123,"items":["a"],"exp":{"e":"x"}}
        {"k":"served","rid":"3","items":["a"],"exp":{"e":"x"}}
        {"k":"click","rid":"1","ts":1763596801123,"item":"a"}
        {"#;
    let suggestion = unmapped(records).suggest(&Options::default());
    assert!(suggestion.fault.is_some());
    for reported in [
        "served lists: 2, clicks: 1, ignored: 0, refused: 2",
        "refused as not_json: 1, line 5 first",
        "refused as missing_field: 1, line 3 first: there is no `ts`",
        "can be read in 2 of 3 lists",
    ] {
        assert!(
            suggestion.text.contains(reported),
            "{reported}:\n{}",
            suggestion.text
        );
    }
    let none = unmapped("{\"a\":1}\n{\"b\":2}").suggest(&Options::default());
    assert!(
        none.fault.is_some() && none.text.contains("No record looks like"),
        "{}",
        none.text
    );
    assert_eq!(shape_of(&none.text), None);
}

#[test]
fn unused_fields_are_listed_and_values_stay_inside_comments() {
    let records = r#"{"kind":"list\n[http]","rid":"1","ts":1763596800123,"recs":["a"],"exp":{"e":"x"},"page\n#":{"no":3}}
        {"kind":"click","rid":"1","ts":1763596801123,"sku":"a"}"#;
    let (text, _) = drafted(records, None);
    assert!(text.contains("unused fields: `page\\n#.no`"), "{text}");
    assert!(text.contains("\"list\\n[http]\" 1"), "{text}");
    assert!(
        text.lines()
            .all(|line| line.is_empty() || line.starts_with(['#', '[']) || line.contains(" = ")),
        "{text}"
    );
}

#[test]
fn an_endless_sample_is_read_up_to_a_bound() {
    let record = r#"{"type":"click","request_id":"1","ts":1763596801123,"item":"a"}"#;
    let mut sample = Unmapped::default();
    for line in 1..=2_003 {
        sample.take(line, None, record.as_bytes());
    }
    let text = sample.suggest(&Options::default()).text.replace("\n# ", " ");
    assert!(
        text.contains("records: 2000;") && text.contains("not read: 3"),
        "{text}"
    );
}

#[test]
fn an_experiment_name_is_not_a_record_type() {
    let lists = r#"{"rec":"r1","member":"m1","at":1763596800000,"test":"ranker","variant":"neural","products":["a","b"]}
        {"rec":"r2","member":"m2","at":1763596801000,"test":"ranker","variant":"control","products":["b","c"]}
        {"rec":"r3","member":"m1","at":1763596802000,"test":"ranker","variant":"control","products":["c","d"]}"#;
    let (text, trial) = drafted(lists, None);
    assert!(!text.lines().any(|line| line.starts_with("type = ")), "{text}");
    assert!(text.contains("No record looks like a click"), "{text}");
    assert_eq!((trial.n_lists, trial.n_refused), (3, 0), "{text}");
    let click = r#"{"rec":"r1","member":"m1","at":1763596800500,"product":"b"}"#;
    let (text, trial) = drafted(&format!("{lists}\n{click}"), None);
    assert!(!text.lines().any(|line| line.starts_with("type = ")), "{text}");
    let words = text.replace("\n# ", " ");
    assert!(words.contains("draft from a file of each"), "{text}");
    assert_eq!((trial.n_lists, trial.n_refused), (3, 1), "{text}");
}

#[test]
fn a_vague_field_name_is_read_with_its_parent() {
    check(
        r#"{"name":"impression","payload":{"list":{"id":"r1"},"items":[{"sku":"a"},{"sku":"b"}]},"context":{"user":{"id":"m1"},"session":{"id":"q1"},"time":1763596800000,"ab":{"ranker":"neural"}}}
           {"name":"impression","payload":{"list":{"id":"r2"},"items":[{"sku":"b"},{"sku":"c"}]},"context":{"user":{"id":"m2"},"session":{"id":"q1"},"time":1763596801000,"ab":{"ranker":"control"}}}
           {"name":"click","payload":{"list":{"id":"r2"},"item":{"sku":"c"}},"context":{"user":{"id":"m2"},"session":{"id":"q1"},"time":1763596802000}}"#,
        None,
        r#"[events]
           type = "name"
           [events.served]
           types = ["impression"]
           request_id = "payload.list.id"
           user_id = "context.user.id"
           ts = "context.time"
           items = "payload.items"
           item_id = "sku"
           experiments = "context.ab"
           [events.click]
           request_id = "payload.list.id"
           user_id = "context.user.id"
           ts = "context.time"
           item = "payload.item.sku""#,
    );
}

/// Builds thirty lists of three items and a click on each. `list` gets a number and items, `click` a number and the clicked
/// item.
fn stream(list: impl Fn(usize, [usize; 3]) -> String, click: impl Fn(usize, usize) -> String) -> String {
    let of = |n: usize| {
        let items = [n % 7, 10 + n % 11, 30 + n % 13];
        [list(n, items), click(n, items[n % 3])].join("\n")
    };
    (0..30).map(of).collect::<Vec<_>>().join("\n")
}

/// Returns the draft in one line without comment signs, and whether it can be used unchanged.
fn suggested(records: &str) -> (String, bool) {
    let suggestion = unmapped(records).suggest(&Options::default());
    shape_of(&suggestion.text);
    (suggestion.text.replace("\n# ", " "), suggestion.fault.is_none())
}

#[track_caller]
fn check_reported(records: &str, is_sound: bool, reported: &[&str]) {
    let (text, found) = suggested(records);
    for reported in reported {
        assert!(text.contains(reported), "{reported}:\n{text}");
    }
    assert_eq!(found, is_sound, "{text}");
}

#[test]
fn a_list_id_is_never_the_type_user_or_time_field() {
    let records = stream(
        |n, items| {
            let user = n % 9;
            format!(
                r#"{{"event":"impression","user_id":"u{user}","ts":17635968{n:02}000,"variant":"a","items":{items:?}}}"#
            )
        },
        |n, item| {
            let user = n % 9;
            format!(r#"{{"event":"click","user_id":"u{user}","ts":17635968{n:02}000,"item":{item}}}"#)
        },
    );
    check_reported(
        &records,
        false,
        &[
            "no field is unique to each list",
            "no field links clicks to lists",
            "[\"impression\"]",
        ],
    );
}

#[test]
fn a_draft_that_matches_no_click_is_rejected() {
    let with_ids_of = |clicks: &str| {
        stream(
            |n, items| {
                format!(
                    r#"{{"event":"list","rid":"r{n}","ts":17635968{n:02}000,"variant":"v{}","items":{items:?}}}"#,
                    n % 2
                )
            },
            |n, item| {
                format!(r#"{{"event":"click","rid":"{clicks}{n}","ts":17635968{n:02}500,"item":{item}}}"#)
            },
        )
    };
    check_reported(
        &with_ids_of("r"),
        true,
        &["clicks on a list of the sample: 30 of 30"],
    );
    check_reported(
        &with_ids_of("x"),
        false,
        &[
            "clicks on a list of the sample: 0 of 30",
            "No click finds its list",
        ],
    );
}

#[test]
fn unreadable_lists_are_reported_with_the_reason() {
    let with_items = |items: &str| {
        stream(
            |n, _| {
                format!(
                    r#"{{"event":"list","rid":"r{n}","ts":17635968{n:02}000,"variant":"a","results":{items}}}"#
                )
            },
            |n, item| format!(r#"{{"event":"click","rid":"r{n}","ts":17635968{n:02}500,"item":{item}}}"#),
        )
    };
    for (items, why) in [
        ("[1.5,2.5]", "element 1 of `results` is 1.5, which is neither"),
        (
            "[[[\"a\"]],[[\"b\"]]]",
            "`results` is an array of arrays of arrays",
        ),
        ("\"a,b\"", "`results` is text, not an array"),
        (
            "[{\"score\":0.5},{\"score\":1.5}]",
            "most objects in `results` have no field with an id",
        ),
    ] {
        check_reported(
            &with_items(items),
            false,
            &[why, "types = [\"list\"]", "clicks: 30"],
        );
    }
}

#[test]
fn an_unreadable_time_does_not_hide_other_fields() {
    let with_time = |time: &str| {
        stream(
            |n, items| {
                format!(
                    r#"{{"event":"list","rid":"r{n}","timestamp":"{time}","variant":"a","results":{items:?}}}"#
                )
            },
            |n, item| format!(r#"{{"event":"click","rid":"r{n}","timestamp":"{time}","item":{item}}}"#),
        )
    };
    for time in ["27/11/2025 10:00:00", "2025-11-27T10:00:00 CET"] {
        let has = format!("has the name but contains \"{time}\"");
        let settings = [
            "ts = \"timestamp\"",
            "items = \"results\"",
            "request_id = \"rid\"",
            "item = \"item\"",
        ];
        check_reported(&with_time(time), false, &[&has, "refused as ts_range: 30"]);
        check_reported(&with_time(time), false, &settings);
    }
}

#[test]
fn quoted_milliseconds_need_no_unit() {
    for (time, unit) in [
        ("1763596800123", ""),
        ("1763596800", "ts_unit = \"s\""),
        ("1763596800123.5", "ts_unit = \"ms\""),
    ] {
        let records = stream(
            |n, items| {
                format!(
                    r#"{{"event":"list","rid":"r{n}","timestamp":"{time}","variant":"a","results":{items:?}}}"#
                )
            },
            |n, item| format!(r#"{{"event":"click","rid":"r{n}","timestamp":"{time}","item":{item}}}"#),
        );
        let (text, trial) = drafted(&records, None);
        assert_eq!(trial.n_refused, 0, "{text}");
        let drafted = text.lines().find(|line| line.starts_with("ts_unit"));
        assert_eq!(drafted.unwrap_or_default(), unit, "{text}");
    }
}

#[test]
fn meaningless_type_values_are_distinguished_by_their_fields() {
    let records = stream(
        |n, items| {
            format!(
                r#"{{"op":"A","rid":"r{n}","ts":17635968{n:02}000,"exp":"ranker","var":"v{}","recs":{items:?}}}"#,
                n % 2
            )
        },
        |n, item| format!(r#"{{"op":"B","rid":"r{n}","ts":17635968{n:02}500,"item":{item}}}"#),
    );
    let settings = [
        "type = \"op\"",
        "types = [\"A\"]",
        "types = [\"B\"]",
        "experiment = \"exp\"",
        "arm = \"var\"",
    ];
    check_reported(&records, true, &settings);
}

#[test]
fn a_constant_field_is_not_the_arm() {
    let records = stream(
        |n, items| {
            format!(
                r#"{{"event":"list","rid":"r{n}","ts":17635968{n:02}000,"exp":"ranker","model":"m{}","recs":{items:?}}}"#,
                n % 2
            )
        },
        |n, item| format!(r#"{{"event":"click","rid":"r{n}","ts":17635968{n:02}500,"item":{item}}}"#),
    );
    check_reported(&records, true, &["arm = \"model\""]);
}

#[test]
fn a_file_without_one_record_per_line_is_refused_with_a_fix() {
    for (file, reported) in [
        ("1,i1,1\n2,i2,1", "name them in a first row"),
        ("{\n\"type\": \"click\"\n}", "jq --compact-output . FILE"),
        ("", "has no record"),
    ] {
        check_reported(file, false, &["Nothing is drafted", reported]);
    }
}
