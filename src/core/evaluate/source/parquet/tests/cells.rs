//! Rows that are decoded cell by cell, against the JSON of the same rows.

use parquet::basic::Encoding;
use proptest::collection::vec;
use proptest::option::of;
use proptest::sample::select;

use super::*;
use crate::decode::shape::{Path, Shape, TsUnit};
use crate::engine::event::{Body, Side};
use crate::evaluate::Options;

/// Decodes each row twice: cell by cell if that is possible, and as JSON.
struct Twins {
    decoder: Decoder,
    kind: Option<Kind>,
    by_cells: Batch,
    by_json: Batch,
    /// Whether the current row was decoded cell by cell.
    is_decoded: bool,
    n_decoded: usize,
}

impl Twins {
    fn new(shape: Option<&Shape>, kind: Option<Kind>) -> Twins {
        let options = Options {
            max_items: 5,
            max_experiments: 3,
            ..Options::default()
        };
        Twins {
            decoder: options.decoder().reading(shape),
            kind,
            by_cells: Batch::default(),
            by_json: Batch::default(),
            is_decoded: false,
            n_decoded: 0,
        }
    }

    fn read(mut self, file: File, shape: Option<&Shape>) -> Twins {
        let fields = EventFields {
            shape,
            kind: self.kind,
            ..EventFields::default()
        };
        read(file, &fields, &|_| Ok(()), &mut self).unwrap();
        self
    }
}

fn at(number: u64) -> Position {
    Position {
        side: Side::Served,
        offset: number.cast_signed(),
        record_ts_ms: i64::MAX,
    }
}

impl Records for Twins {
    fn record(&mut self, number: u64, record: RawRecord) {
        let Twins { decoder, kind, .. } = self;
        decoder.decode_raw(record, *kind, at(number), &mut self.by_json);
        if !self.is_decoded {
            decoder.decode_raw(record, *kind, at(number), &mut self.by_cells);
        }
    }

    fn row(&mut self, number: u64, row: &mut dyn TableRow) -> bool {
        self.is_decoded = row.decode(&self.decoder, self.kind, at(number), &mut self.by_cells);
        self.n_decoded += usize::from(self.is_decoded);
        false
    }
}

/// Describes the events of a batch, with the items and arms in its arenas.
fn described(batch: &Batch) -> Vec<String> {
    let events = batch.events.iter().map(|event| match &event.body {
        Body::Served(list) => {
            let arms = batch.arms_of(list).iter();
            let arms = arms.map(|arm| (arm.hash, batch.text_of(&arm.experiment), batch.text_of(&arm.arm)));
            let arms: Vec<_> = arms.collect();
            let (id, user, ts_ms, items) = (list.id, list.user, list.ts_ms, batch.items_of(list));
            format!("{:?} list {id} {user:?} {ts_ms} {items:?} {arms:?}", event.at)
        }
        Body::Invalid(reason, place) => format!("{:?} {reason:?} {}", event.at, place.is_some()),
        body => format!("{:?} {body:?}", event.at),
    });
    let of_batch = format!("{:?} {}", batch.bad_arms, batch.unreadable.len());
    events.chain([of_batch]).collect()
}

/// Experiments and arms of a row.
type Arms = Vec<(String, Option<String>)>;

#[derive(Debug, Clone)]
struct Row {
    kind: Option<&'static str>,
    request: Option<Vec<u8>>,
    user: Option<Vec<u8>>,
    ts: Option<i64>,
    experiments: Option<Arms>,
    items: Option<Vec<Option<Vec<u8>>>>,
    item: Option<Vec<u8>>,
}

fn text() -> impl Strategy<Value = Vec<u8>> {
    let odd: [&[u8]; 10] = [
        b"",
        b"0",
        b"Null",
        b"\xff",
        b"a\"b",
        b"\\",
        b"[1]",
        b"{x",
        "\u{e9}".as_bytes(),
        &[b'x'; 2049],
    ];
    prop_oneof![
        30 => "[a-c]{1,3}".prop_map(String::into_bytes),
        1 => select(odd.map(<[u8]>::to_vec).to_vec()),
    ]
}

fn row() -> impl Strategy<Value = Row> {
    let kind = prop_oneof![9 => select(vec![Some("served"), Some("click")]), 1 => select(vec![None, Some("other"), Some("")])];
    let ts = prop_oneof![
        20 => 1_763_596_800_000..1_763_596_900_000_i64,
        1 => select(vec![-1, 0, 1_763_596_800, 1_763_596_800_000_000, i64::MAX, i64::MIN])
    ];
    let arm =
        of(prop_oneof![20 => "[ab]", 1 => select(vec!["", "}", "\"", "x}y\u{e9}"]).prop_map(str::to_owned)]);
    let experiments =
        proptest::collection::btree_map("e[ab]{0,2}", arm, 0..4).prop_map(|map| map.into_iter().collect());
    let most = |value| prop_oneof![20 => value, 1 => Just(None)];
    let element = || prop_oneof![60 => text().prop_map(Some), 1 => Just(None)];
    (
        kind,
        most(text().prop_map(Some).boxed()),
        of(text()),
        prop_oneof![20 => ts.prop_map(Some), 1 => Just(None)],
        of(experiments),
        of(vec(element(), 0..7)),
        of(text()),
    )
        .prop_map(|(kind, request, user, ts, experiments, items, item)| Row {
            kind,
            request,
            user,
            ts,
            experiments,
            items,
            item,
        })
}

/// Types of the columns of a table.
#[derive(Debug, Clone, Copy)]
struct Types {
    request_is_number: bool,
    user_is_number: bool,
    items_are_numbers: bool,
    ts: Ts,
    experiments: Experiments,
    layout: Layout,
}

#[derive(Debug, Clone, Copy)]
enum Ts {
    Millis,
    Micros,
    Local,
    Number,
    Text,
}

#[derive(Debug, Clone, Copy)]
enum Experiments {
    Map,
    Struct,
    Json,
    None,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Layout {
    Own,
    /// Our own names, and another unit of numbers.
    OwnInSeconds,
    /// Other names.
    Renamed,
    /// The id, the user and the experiments in a struct.
    Nested,
}

fn types() -> impl Strategy<Value = Types> {
    let flag = || prop_oneof![2 => Just(false), 1 => Just(true)];
    let ts = select(vec![Ts::Millis, Ts::Micros, Ts::Local, Ts::Number, Ts::Text]);
    let experiments = select(vec![
        Experiments::Map,
        Experiments::Struct,
        Experiments::Json,
        Experiments::None,
    ]);
    let layout = select(vec![
        Layout::Own,
        Layout::OwnInSeconds,
        Layout::Renamed,
        Layout::Nested,
    ]);
    (flag(), flag(), flag(), ts, experiments, layout).prop_map(
        |(request_is_number, user_is_number, items_are_numbers, ts, experiments, layout)| Types {
            request_is_number,
            user_is_number,
            items_are_numbers,
            ts,
            experiments,
            layout,
        },
    )
}

fn number(text: &[u8]) -> i64 {
    let sum = text.iter().map(|byte| i64::from(*byte)).sum::<i64>();
    // Some are negative.
    if text.len() == 3 { -sum } else { sum }
}

impl Types {
    fn shape(self) -> Option<Shape> {
        let mut shape = Shape::default();
        let path = |text| Path::parse(text).unwrap().into();
        match self.layout {
            Layout::Own => return None,
            Layout::OwnInSeconds => shape.ts_unit = Some(TsUnit::Seconds),
            Layout::Renamed | Layout::Nested => {
                let is_nested = self.layout == Layout::Nested;
                let within = |renamed, nested| path(if is_nested { nested } else { renamed });
                shape.kind = Some(path("what"));
                shape.served.request_id = within("rec", "ctx.rec");
                shape.click.request_id = within("rec", "ctx.rec");
                shape.served.user_id = Some(within("usr", "ctx.usr"));
                shape.click.user_id = Some(within("usr", "ctx.usr"));
                shape.served.arms.experiments = Some(within("exp", "ctx.exp"));
            }
        }
        Some(shape)
    }

    /// Returns the columns of a table, and their content.
    fn table(self, rows: &[Row]) -> (String, Vec<Stored>) {
        let is_own = matches!(self.layout, Layout::Own | Layout::OwnInSeconds);
        let [kind, request, user, experiments] = match is_own {
            true => ["type", "request_id", "user_id", "experiments"],
            false => ["what", "rec", "usr", "exp"],
        };
        let has_context =
            |row: &Row| row.request.is_some() || row.user.is_some() || row.experiments.is_some();
        // In a struct, each level is one higher, except where the struct is null.
        let nested = |mut column: Stored| {
            if self.layout == Layout::Nested {
                let mut row = 0;
                for place in 0..column.definition.len() {
                    row += usize::from(
                        place > 0 && column.repetition.get(place).is_none_or(|level| *level == 0),
                    );
                    column.definition[place] += i16::from(has_context(&rows[row]));
                }
            }
            column
        };
        let scalar = |values: Vec<Option<&[u8]>>, is_number: bool| {
            let levels: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
            let there = values.into_iter().flatten();
            match is_number {
                true => Values::Int64(there.map(number).collect()),
                false => texts(there),
            }
            .stored(&levels, &[])
        };
        let type_of = |is_number| if is_number { "int64" } else { "binary" };
        let text_type = |is_number| if is_number { "" } else { "(STRING)" };
        let of_id = |name: &str, is_number| {
            format!("optional {} {name} {};", type_of(is_number), text_type(is_number))
        };

        let ids = format!(
            "{} {}",
            of_id(request, self.request_is_number),
            of_id(user, self.user_is_number)
        );
        let mut context = vec![
            nested(scalar(
                rows.iter().map(|row| row.request.as_deref()).collect(),
                self.request_is_number,
            )),
            nested(scalar(
                rows.iter().map(|row| row.user.as_deref()).collect(),
                self.user_is_number,
            )),
        ];
        let (of_experiments, stored) = self.experiments(experiments, rows);
        context.extend(stored.into_iter().map(nested));
        let context_columns = match self.layout {
            Layout::Nested => format!("optional group ctx {{ {ids} {of_experiments} }}"),
            _ => format!("{ids} {of_experiments}"),
        };

        let lists: Vec<Option<&[Option<Vec<u8>>]>> = rows.iter().map(|row| row.items.as_deref()).collect();
        let (definition, repetition) =
            super::random::list_levels(&lists, |item| 2 + i16::from(item.is_some()));
        let items = lists.iter().flatten().copied().flatten().flatten();
        let items = match self.items_are_numbers {
            true => Values::Int64(items.map(|item| number(item)).collect()),
            false => texts(items),
        };
        let (ts_type, ts) = self.ts(rows);
        let item_type = type_of(self.items_are_numbers);
        let columns = format!(
            "optional binary {kind} (STRING); {context_columns} {ts_type}
            optional group items (LIST) {{ repeated group list {{ optional {item_type} element {}; }} }} {}",
            text_type(self.items_are_numbers),
            of_id("item", self.items_are_numbers)
        );
        let kinds = rows.iter().map(|row| row.kind.map(str::as_bytes)).collect();
        let mut stored = vec![scalar(kinds, false)];
        stored.extend(context);
        stored.push(ts);
        stored.push(items.stored(&definition, &repetition));
        stored.push(scalar(
            rows.iter().map(|row| row.item.as_deref()).collect(),
            self.items_are_numbers,
        ));
        (columns, stored)
    }

    fn ts(self, rows: &[Row]) -> (&'static str, Stored) {
        let levels: Vec<i16> = rows.iter().map(|row| i16::from(row.ts.is_some())).collect();
        let ms = rows.iter().filter_map(|row| row.ts);
        let (column, values) = match self.ts {
            Ts::Millis => (
                "optional int64 ts (TIMESTAMP(MILLIS,true));",
                Values::Int64(ms.collect()),
            ),
            Ts::Micros => (
                "optional int64 ts (TIMESTAMP(MICROS,true));",
                Values::Int64(ms.map(|ms| ms.saturating_mul(1000)).collect()),
            ),
            Ts::Local => (
                "optional int64 ts (TIMESTAMP(MILLIS,false));",
                Values::Int64(ms.collect()),
            ),
            Ts::Number => ("optional int64 ts;", Values::Int64(ms.collect())),
            Ts::Text => (
                "optional binary ts (STRING);",
                texts(ms.map(|ms| match jiff::Timestamp::from_millisecond(ms) {
                    Ok(time) => time.to_string(),
                    Err(_) => ms.to_string(),
                })),
            ),
        };
        (column, values.stored(&levels, &[]))
    }

    fn experiments(self, name: &str, rows: &[Row]) -> (String, Vec<Stored>) {
        let maps: Vec<_> = rows.iter().map(|row| row.experiments.as_deref()).collect();
        match self.experiments {
            Experiments::None => (String::new(), Vec::new()),
            Experiments::Json => {
                let levels: Vec<i16> = maps.iter().map(|map| i16::from(map.is_some())).collect();
                let json = maps.iter().flatten().map(|map| {
                    let object: serde_json::Map<String, Value> =
                        map.iter().map(|(name, arm)| (name.clone(), json!(arm))).collect();
                    Value::from(object).to_string()
                });
                (
                    format!("optional binary {name} (STRING);"),
                    vec![texts(json).stored(&levels, &[])],
                )
            }
            Experiments::Map => {
                let (keys, repetition) = super::random::list_levels(&maps, |_| 2);
                let (values, _) = super::random::list_levels(&maps, |(_, arm)| 2 + i16::from(arm.is_some()));
                let entries = || maps.iter().flatten().copied().flatten();
                let columns = format!(
                    "optional group {name} (MAP) {{ repeated group key_value {{
                    required binary key (STRING); optional binary value (STRING); }} }}"
                );
                let keys = texts(entries().map(|(key, _)| key)).stored(&keys, &repetition);
                let values =
                    texts(entries().filter_map(|(_, arm)| arm.as_ref())).stored(&values, &repetition);
                (columns, vec![keys, values])
            }
            Experiments::Struct => {
                let field = |field: &str| {
                    let arms = maps.iter().map(|map| {
                        map.map(|map| {
                            map.iter()
                                .find(|(name, _)| name == field)
                                .and_then(|(_, arm)| arm.as_ref())
                        })
                    });
                    let arms: Vec<Option<Option<&String>>> = arms.collect();
                    let levels: Vec<i16> = arms
                        .iter()
                        .map(|arm| arm.map_or(0, |arm| 1 + i16::from(arm.is_some())))
                        .collect();
                    texts(arms.into_iter().flatten().flatten()).stored(&levels, &[])
                };
                let columns = format!(
                    "optional group {name} {{ optional binary e (STRING); optional binary ea (STRING); }}"
                );
                (columns, vec![field("e"), field("ea")])
            }
        }
    }
}

/// Ways of storing a column, including texts that are not numbered.
fn encodings() -> impl Strategy<Value = WriterProperties> {
    let versions = [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0];
    let encodings = [None, Some(Encoding::PLAIN), Some(Encoding::DELTA_BYTE_ARRAY)];
    // A small dictionary overflows, and then plain pages follow.
    let dictionaries = [None, Some(20), Some(1 << 20)];
    let properties = (
        select(versions.to_vec()),
        select(encodings.to_vec()),
        select(dictionaries.to_vec()),
        1_usize..200,
    );
    properties.prop_map(|(version, of_texts, dictionary, page)| {
        let mut builder = WriterProperties::builder()
            .set_writer_version(version)
            .set_dictionary_enabled(dictionary.is_some())
            .set_dictionary_page_size_limit(dictionary.unwrap_or(1))
            .set_data_page_row_count_limit(page)
            .set_write_batch_size(page);
        if let Some(encoding) = of_texts {
            for column in ["type", "request_id", "user_id", "items.list.element"] {
                builder = builder.set_column_encoding(column.into(), encoding);
            }
        }
        builder.build()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn cells_give_the_events_of_their_json(
        rows in vec(row(), 1..300),
        types in types(),
        kind in select(vec![None, None, Some(Kind::Served), Some(Kind::Click)]),
        properties in encodings(),
    ) {
        let (columns, stored) = types.table(&rows);
        let texts_are_encoded = !types.request_is_number && !types.user_is_number && !types.items_are_numbers;
        let properties = match texts_are_encoded {
            true => properties,
            false => WriterProperties::default(),
        };
        let file = file(&columns, &stored, 2, properties);
        let shape = types.shape();
        let twins = Twins::new(shape.as_ref(), kind).read(file, shape.as_ref());
        prop_assert_eq!(described(&twins.by_cells), described(&twins.by_json));
    }
}

/// Without this, the comparison above would hold if every row was read as JSON.
#[test]
fn usual_rows_need_no_json() {
    let row = |n: i64, is_list: bool| Row {
        kind: Some(if is_list { "served" } else { "click" }),
        request: Some(format!("r{n}").into_bytes()),
        user: (n % 3 == 0).then(|| b"u".to_vec()),
        ts: Some(1_763_596_800_000 + n),
        experiments: is_list.then(|| vec![("e".to_owned(), Some(["a", "b"][n as usize % 2].to_owned()))]),
        items: is_list.then(|| vec![Some(b"i1".to_vec()), Some(format!("i{n}").into_bytes())]),
        item: (!is_list).then(|| b"i1".to_vec()),
    };
    let rows: Vec<Row> = (0..1000).map(|n| row(n, n % 3 < 2)).collect();
    for (ts, experiments, layout, are_numbers) in [
        (Ts::Millis, Experiments::Map, Layout::Own, false),
        (Ts::Text, Experiments::Json, Layout::Own, false),
        (Ts::Number, Experiments::Struct, Layout::Own, true),
        (Ts::Micros, Experiments::Struct, Layout::OwnInSeconds, false),
        (Ts::Micros, Experiments::Map, Layout::Renamed, true),
        (Ts::Local, Experiments::Struct, Layout::Nested, false),
    ] {
        let types = Types {
            request_is_number: are_numbers,
            user_is_number: are_numbers,
            items_are_numbers: are_numbers,
            ts,
            experiments,
            layout,
        };
        let (columns, stored) = types.table(&rows);
        let file = file(&columns, &stored, 2, WriterProperties::default());
        let shape = types.shape();
        let twins = Twins::new(shape.as_ref(), None).read(file, shape.as_ref());
        assert_eq!(described(&twins.by_cells), described(&twins.by_json), "{types:?}");
        // The first list of each arm is read as JSON, which the decoder then remembers.
        assert_eq!(twins.n_decoded, 2 * rows.len() - 2, "{types:?}");
    }
}
