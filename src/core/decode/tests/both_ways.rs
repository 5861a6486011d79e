//! The fast decoder agrees with the parser on random records, some of them damaged.

use proptest::prelude::*;

use super::*;
use crate::decode::shape::Paths;

/// Text of a record, as its tokens, which white space may part.
type Tokens = Vec<String>;

fn joined(parts: Vec<Tokens>, open: &str, close: &str) -> Tokens {
    let mut tokens = vec![open.to_owned()];
    for (n, part) in parts.into_iter().enumerate() {
        tokens.extend((n > 0).then(|| ",".to_owned()));
        tokens.extend(part);
    }
    tokens.push(close.to_owned());
    tokens
}

fn entry((name, value): (String, Tokens)) -> Tokens {
    let mut tokens = vec![name, ":".to_owned()];
    tokens.extend(value);
    tokens
}

/// A string or number, most often one that is an id.
fn scalar() -> impl Strategy<Value = Tokens> {
    let odd = vec![
        "null",
        "true",
        "false",
        "nope5",
        "-0",
        "01",
        "1.0",
        "1e3",
        "-1.5E-7",
        "99999999999999999999",
        "100000000000000000000",
        "\"\"",
        "\"\\u0041\"",
        "\"\\ud83d\"",
        "\"\\ud83d\\ude00\"",
        "\"\\ude00\\ud83d\"",
        "\"\\u00e9\\/\\n\"",
        "\"\u{ffff}\"",
        "\"}\"",
        "\"\",\"",
        "[[[[[[[[[]]]]]]]]]",
        "0e0",
        "\"a\\\"b\"",
        "\"é😀\"",
        "\"__other__\"",
    ];
    prop_oneof![
        12 => "\"[a-z0-9_-]{1,8}\"",
        6 => "-?[1-9][0-9]{0,19}",
        3 => "\"[ !#-\\[\\]-~]{1,130}\"",
        2 => "\"[a-zé-ü😀]{1,20}\"",
        1 => prop::sample::select(odd).prop_map(String::from),
    ]
    .prop_map(|token| vec![token])
}

/// Any JSON.
fn value() -> impl Strategy<Value = Tokens> {
    scalar().prop_recursive(4, 12, 4, |inner| {
        let key = "\"[a-z]{0,3}\"";
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(|parts| joined(parts, "[", "]")),
            prop::collection::vec((key, inner).prop_map(entry), 0..4)
                .prop_map(|parts| joined(parts, "{", "}")),
        ]
    })
}

fn experiments() -> impl Strategy<Value = Tokens> {
    let sound = || {
        prop::sample::select(vec![
            "\"ranker\"",
            "\"neural\"",
            "\"layout\"",
            "\"a\"",
            "\"b\"",
            "\"ü\"",
        ])
    };
    let name = || prop_oneof![30 => sound().prop_map(|name| vec![name.to_owned()]), 1 => scalar()];
    let entries = prop::collection::vec((name().prop_map(|name| name.concat()), name()), 0..4);
    entries.prop_map(|entries| joined(entries.into_iter().map(entry).collect(), "{", "}"))
}

/// The tokens of one known field, or of none.
fn field(
    name: &'static str,
    often: f64,
    sound: impl Strategy<Value = Tokens> + 'static,
) -> impl Strategy<Value = Option<Tokens>> {
    let value = prop_oneof![40 => sound.boxed(), 1 => value().boxed()];
    let field = value.prop_map(move |value| entry((format!("\"{name}\""), value)));
    prop::option::weighted(often, field)
}

fn tokens() -> impl Strategy<Value = Tokens> {
    let one_of =
        |json: &[&'static str]| prop::sample::select(json.to_vec()).prop_map(|token| vec![token.to_owned()]);
    let times = one_of(&[
        "1763596800123",
        "1763596800124",
        "1763596800125",
        "1763596800126",
        "\"2025-11-20T00:00:00Z\"",
        "\"2025-11-20t00:00:00.5+01:00\"",
        "\"1763596800123\"",
        "\"1763596800\"",
        "176359680012",
    ]);
    let kinds = one_of(&[
        "\"served\"",
        "\"served\"",
        "\"click\"",
        "\"click\"",
        "\"purchase\"",
    ]);
    let object = ("\"[a-c]{1}\"", scalar()).prop_map(|field| joined(vec![entry(field)], "{", "}"));
    let item = prop_oneof![6 => scalar(), 1 => object];
    let items = prop::collection::vec(item, 0..6).prop_map(|items| joined(items, "[", "]"));
    let again = prop::sample::select(vec![
        "type",
        "request_id",
        "user_id",
        "ts",
        "experiments",
        "items",
        "item",
    ]);
    let again = (again, scalar()).prop_map(|(name, value)| entry((format!("\"{name}\""), value)));
    let unknown = ("\"[a-z_é]{0,12}\"", value()).prop_map(entry);
    let fields = (
        field("type", 0.5, kinds),
        field("request_id", 0.95, scalar()),
        field("user_id", 0.5, scalar()),
        field("ts", 0.95, times),
        field("experiments", 0.6, experiments()),
        field("items", 0.7, items),
        field("item", 0.5, scalar()),
        prop::option::weighted(0.4, unknown),
        prop::option::weighted(0.03, again),
    );
    fields
        .prop_map(|(a, b, c, d, e, f, g, h, i)| {
            [a, b, c, d, e, f, g, h, i]
                .into_iter()
                .flatten()
                .collect::<Vec<_>>()
        })
        // In the usual order or in any.
        .prop_flat_map(|fields| prop_oneof![Just(fields.clone()), Just(fields).prop_shuffle()])
        .prop_map(|fields| joined(fields, "{", "}"))
}

#[derive(Debug, Clone)]
enum Damage {
    Set(u8),
    Insert(u8),
    Remove,
    Flip(u8),
    CutOff,
    Repeat(u8),
}

fn damage() -> impl Strategy<Value = Damage> {
    let byte = || {
        prop_oneof![
            prop::sample::select(b"{}[]\",:\\u0123456789-+.eE \0\x7f\x80\xff\n".to_vec()),
            any::<u8>(),
        ]
    };
    prop_oneof![
        byte().prop_map(Damage::Set),
        byte().prop_map(Damage::Insert),
        Just(Damage::Remove),
        (0..8_u8).prop_map(Damage::Flip),
        Just(Damage::CutOff),
        (1..40_u8).prop_map(Damage::Repeat),
    ]
}

type Damages = Vec<(prop::sample::Index, Damage)>;

fn damages(n: std::ops::Range<usize>) -> impl Strategy<Value = Damages> {
    prop::collection::vec((any::<prop::sample::Index>(), damage()), n)
}

/// Kind of the topic.
fn kind() -> impl Strategy<Value = Option<Kind>> {
    prop::sample::select(vec![
        None,
        Some(Kind::Served),
        Some(Kind::Served),
        Some(Kind::Click),
    ])
}

fn damaged(mut bytes: Vec<u8>, damages: &[(prop::sample::Index, Damage)]) -> Vec<u8> {
    for (position, damage) in damages {
        if bytes.is_empty() {
            break;
        }
        let at = position.index(bytes.len());
        match damage {
            Damage::Set(byte) => bytes[at] = *byte,
            Damage::Insert(byte) => bytes.insert(at, *byte),
            Damage::Remove => drop(bytes.remove(at)),
            Damage::Flip(bit) => bytes[at] ^= 1 << bit,
            Damage::CutOff => bytes.truncate(at),
            Damage::Repeat(n) => {
                let end = bytes.len().min(at + usize::from(*n));
                let copy = bytes[at..end].to_vec();
                bytes.splice(at..at, copy);
            }
        }
    }
    bytes
}

/// With a space behind each comma and colon.
fn as_python_writes(tokens: &[String]) -> String {
    let space = |token: &str| if matches!(token, "," | ":") { " " } else { "" };
    let parts = tokens.iter().flat_map(|token| [token, space(token)]);
    parts.collect()
}

fn record() -> impl Strategy<Value = Vec<u8>> {
    let space = prop_oneof![
        12 => Just(""),
        2 => Just(" "),
        1 => prop::sample::select(vec!["\n", "\t", "\r\n    ", "  \t"]),
    ];
    let n_damages = prop_oneof![3 => Just(0..1), 1 => Just(1..4_usize)];
    let damages = n_damages.prop_flat_map(damages);
    let spaces = prop_oneof![
        2 => Just(vec![""]),
        2 => prop::collection::vec(space, 12),
        1 => Just(vec![]),
    ];
    let spaced = (tokens(), spaces).prop_map(|(tokens, spaces)| {
        if spaces.is_empty() {
            return as_python_writes(&tokens).into_bytes();
        }
        let parts = tokens.iter().zip(spaces.iter().cycle());
        let parts = parts.flat_map(|(token, space)| [*space, token]);
        parts.collect::<String>().into_bytes()
    });
    (spaced, damages).prop_map(|(bytes, damages)| damaged(bytes, &damages))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// All records share a batch, so leftovers of one would affect the next. Some are repeated, whole or damaged.
    #[test]
    fn the_fast_decoder_agrees_with_decoding_by_paths(
        records in prop::collection::vec((record(), kind()), 1..6),
        copies in prop::collection::vec((any::<prop::sample::Index>(), kind(), damages(0..2)), 0..4),
    ) {
        let mut records = records;
        for (of, kind, damages) in copies {
            let copy = damaged(records[of.index(records.len())].0.clone(), &damages);
            records.push((copy, kind));
        }
        let own = Decoder::new(SEED, MAX_ITEMS, MAX_EXPERIMENTS);
        // The same fields by the fast path of any shape, and items that may be objects.
        let mut shape = Shape::default();
        let mapped = own.clone().reading(Some(&shape));
        shape.served.item_id = Paths::parse("a").ok();
        shape.click.user_id = None;
        let with_objects = own.clone().reading(Some(&shape));
        for decoder in [own, mapped, with_objects] {
            let [mut decoded, mut parsed] = [(); 2].map(|()| Batch::default());
            for (offset, (record, topic_kind)) in records.iter().enumerate() {
                let at = Position { side: Side::Served, offset: offset as i64, record_ts_ms: 0 };
                decoder.decode(Some(record), *topic_kind, at, &mut decoded);
                decoder.decode_by_paths(Some(record), *topic_kind, at, &mut parsed);
            }
            assert_same(&decoded, &parsed);
        }
    }
}
