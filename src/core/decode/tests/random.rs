//! Laws for all records, on random ones.

use proptest::prelude::*;

use super::*;

/// Values for a field, sound and faulty ones.
fn values(name: &str) -> Vec<&'static str> {
    let id = vec![
        "\"a\"",
        "5",
        "-0",
        "\"\"",
        "1.5",
        "null",
        "{}",
        "99999999999999999999",
        r#""\ud83d""#,
    ];
    match name {
        "type" => vec!["\"served\"", "\"served\"", "\"click\"", "\"click\"", "\"x\"", "1"],
        "ts" => vec![
            "1763596800123",
            "\"2025-11-20T00:00:00Z\"",
            "\"1763596800123\"",
            "1763596800",
            "1763596800123456",
            "-1",
            "1.5",
            "[]",
        ],
        "items" => vec![
            "[]",
            "[1,\"a\"]",
            "[1,2.5]",
            "[\"\"]",
            "[1,2,3,4,5,6]",
            "{}",
            r#"["\ud83d"]"#,
        ],
        "unknown" => vec!["1", "[{}]", "tru", "\"[[\""],
        _ => id,
    }
}

fn field(name: &'static str, absent: f64) -> impl Strategy<Value = Option<(String, String)>> {
    let value = prop::sample::select(values(name)).prop_map(move |json| (name.to_owned(), json.to_owned()));
    // Often sound, so that the later checks are reached.
    let sound = (name.to_owned(), values(name)[0].to_owned());
    prop::option::weighted(1.0 - absent, prop_oneof![2 => Just(sound), 1 => value])
}

fn experiments() -> impl Strategy<Value = Vec<(String, String)>> {
    let name = prop::sample::select(vec!["e", "f", "g", "ranker", "", "__other__"]);
    let sound = prop::sample::select(vec!["e", "f", "g", "h", "ranker"]);
    let name = prop_oneof![1 => name, 4 => sound];
    let arm = prop_oneof![6 => Just("\"a\""), 1 => prop::sample::select(vec!["1", "\"\"", "\"__other__\""])];
    prop::collection::vec((name.prop_map(String::from), arm.prop_map(String::from)), 0..3)
}

type Fields = Vec<(String, String)>;

fn render(fields: &Fields) -> String {
    object(
        &fields
            .iter()
            .map(|(name, json)| (name.as_str(), json.as_str()))
            .collect::<Vec<_>>(),
    )
}

/// Fields, their experiments, and both again in another order.
fn shuffled() -> impl Strategy<Value = (Fields, Fields, Fields, Fields)> {
    let fields = (
        field("type", 0.5),
        field("request_id", 0.05),
        field("user_id", 0.5),
        field("ts", 0.05),
        field("items", 0.05),
        field("item", 0.2),
        field("unknown", 0.5),
        prop::option::weighted(0.05, field("ts", 0.01)),
    );
    let fields = fields.prop_map(|(a, b, c, d, e, f, g, twice)| {
        [a, b, c, d, e, f, g, twice.flatten()]
            .into_iter()
            .flatten()
            .collect::<Fields>()
    });
    (fields, experiments()).prop_flat_map(|(fields, experiments)| {
        let (other_fields, other_experiments) = (Just(fields.clone()), Just(experiments.clone()));
        (
            Just(fields),
            Just(experiments),
            other_fields.prop_shuffle(),
            other_experiments.prop_shuffle(),
        )
    })
}

fn with_experiments(mut fields: Fields, experiments: &Fields, position: usize) -> String {
    fields.insert(
        position.min(fields.len()),
        ("experiments".to_owned(), render(experiments)),
    );
    render(&fields)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn the_order_of_keys_does_not_matter((one, one_exp, other, other_exp) in shuffled(), position in 0..8_usize) {
        let one = with_experiments(one, &one_exp, 0);
        let other = with_experiments(other, &other_exp, position);
        prop_assert_eq!(list(&one), list(&other), "{} {}", one, other);
        prop_assert_eq!(click(&one), click(&other), "{} {}", one, other);
    }

    #[test]
    fn random_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        decode_as(Some(&bytes), None);
    }

    #[test]
    fn damaged_records_are_read_without_a_panic(
        is_list in any::<bool>(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), prop_oneof![
            any::<u8>(),
            prop::sample::select(b"{}[]\",:\\u0123456789-+.eE \0".to_vec()),
        ], 0..3), 1..4),
    ) {
        let mut bytes = if is_list { LIST } else { CLICK }.as_bytes().to_vec();
        for (position, byte, how) in damage {
            let position = position.index(bytes.len());
            match how {
                0 => bytes[position] = byte,
                1 => bytes.insert(position, byte),
                _ => { bytes.remove(position); }
            }
        }
        let is_json = std::str::from_utf8(&bytes).is_ok_and(|json| serde_json::from_str::<&RawValue>(json).is_ok());
        let read = decode_as(Some(&bytes), Some(if is_list { Kind::Served } else { Kind::Click }));
        prop_assert!(is_json || read == Read::Invalid(Reason::NotJson), "{:?}", read);
    }

    #[test]
    fn ids_do_not_depend_on_escaping(id in ".{1,100}") {
        let plain = serde_json::to_string(&id).unwrap();
        let units: String = id.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
        let escaped = format!("\"{units}\"");
        let read = list_with("request_id", Some(&plain));
        prop_assert_eq!(&read, &list_with("request_id", Some(&escaped)));
        let Read::List { id: read, .. } = read else { panic!("{read:?}") };
        prop_assert_eq!(read, hash().request(id.as_bytes()));
    }
}
