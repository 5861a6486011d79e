//! Random rows, stored in every way that the writer supports.

use super::*;

/// Row: an optional id, an optional list, an optional map.
type Row = (
    Option<String>,
    Option<Vec<Option<i64>>>,
    Option<Vec<(String, String)>>,
);

fn row() -> impl Strategy<Value = Row> {
    let text = || "[ab\"\u{e9}]{0,3}";
    (
        proptest::option::of(text()),
        proptest::option::of(proptest::collection::vec(
            proptest::option::of(any::<i64>()),
            0..8,
        )),
        proptest::option::of(proptest::collection::btree_map(text(), text(), 0..4).prop_map(Vec::from_iter)),
    )
}

/// Returns the record that a file of lines would have for a row.
fn record((user, items, experiments): &Row) -> Value {
    let mut record = json!({"type": "click", "request_id": "r", "ts": 1});
    if let Some(user) = user {
        record["user_id"] = json!(user);
    }
    if let Some(items) = items {
        record["items"] = json!(items);
    }
    if let Some(experiments) = experiments {
        record["experiments"] = experiments.iter().cloned().map(|(e, a)| (e, json!(a))).collect();
    }
    record
}

/// Returns the levels of a list whose elements each have a level of their own.
pub(super) fn list_levels<T>(lists: &[Option<&[T]>], level: impl Fn(&T) -> i16) -> (Vec<i16>, Vec<i16>) {
    let (mut definition, mut repetition) = (Vec::new(), Vec::new());
    for list in lists {
        match list {
            None => definition.push(0),
            Some([]) => definition.push(1),
            Some(list) => definition.extend(list.iter().map(&level)),
        }
        repetition.resize(repetition.len() + 1, 0);
        repetition.resize(definition.len(), 1);
    }
    (definition, repetition)
}

fn stored(rows: &[Row]) -> Vec<Stored> {
    let users: Vec<i16> = rows.iter().map(|(user, ..)| i16::from(user.is_some())).collect();
    let items: Vec<Option<&[Option<i64>]>> = rows.iter().map(|(_, items, _)| items.as_deref()).collect();
    let maps: Vec<Option<&[(String, String)]>> = rows.iter().map(|(.., map)| map.as_deref()).collect();
    let (item_definition, item_repetition) = list_levels(&items, |item| 2 + i16::from(item.is_some()));
    let (map_definition, map_repetition) = list_levels(&maps, |_| 2);
    let entries = || maps.iter().flatten().copied().flatten();
    vec![
        texts(rows.iter().map(|_| "click")).required(),
        texts(rows.iter().map(|_| "r")).required(),
        Values::Int64(vec![1; rows.len()]).required(),
        texts(rows.iter().filter_map(|(user, ..)| user.as_ref())).stored(&users, &[]),
        Values::Int64(
            items
                .iter()
                .flatten()
                .copied()
                .flatten()
                .copied()
                .flatten()
                .collect(),
        )
        .stored(&item_definition, &item_repetition),
        texts(entries().map(|(key, _)| key)).stored(&map_definition, &map_repetition),
        texts(entries().map(|(_, value)| value)).stored(&map_definition, &map_repetition),
    ]
}

fn properties() -> impl Strategy<Value = WriterProperties> {
    let codecs = [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(GzipLevel::default()),
        Compression::ZSTD(ZstdLevel::default()),
        Compression::LZ4_RAW,
    ];
    let versions = [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0];
    let properties = (
        proptest::sample::select(codecs.to_vec()),
        proptest::sample::select(versions.to_vec()),
        any::<bool>(),
        1_usize..200,
    );
    properties.prop_map(|(codec, version, has_dictionary, page)| {
        WriterProperties::builder()
            .set_compression(codec)
            .set_writer_version(version)
            .set_dictionary_enabled(has_dictionary)
            .set_data_page_row_count_limit(page)
            .set_write_batch_size(page)
            .build()
    })
}

/// Experiment: its name, and its tags.
type Tagged = (String, Option<Vec<Option<i64>>>);

/// Row of one nested column: a user, and a list of experiments.
type Context = Option<(Option<String>, Option<Vec<Option<Tagged>>>)>;

fn context() -> impl Strategy<Value = Context> {
    use proptest::collection::vec;
    use proptest::option::of;
    let text = || "[ab\"\u{e9}]{0,3}";
    let experiment = (text(), of(vec(of(any::<i64>()), 0..4)));
    of((of(text()), of(vec(of(experiment), 0..4))))
}

fn context_record(row: &Context) -> Value {
    let mut record = json!({});
    let Some((user, experiments)) = row else {
        return record;
    };
    record["ctx"] = json!({});
    if let Some(user) = user {
        record["ctx"]["user"] = json!(user);
    }
    if let Some(experiments) = experiments {
        let experiment = |experiment: &Option<Tagged>| match experiment {
            None => Value::Null,
            Some((name, None)) => json!({"name": name}),
            Some((name, Some(tags))) => json!({"name": name, "tags": tags}),
        };
        record["ctx"]["exps"] = experiments.iter().map(experiment).collect();
    }
    record
}

/// Stores the rows as three leaves, with levels counted by hand.
fn shredded(rows: &[Context]) -> Vec<Stored> {
    let (mut users, mut names, mut tags) = (Vec::new(), Vec::new(), Vec::new());
    let [mut user_levels, mut name_levels, mut tag_levels] = [(); 3].map(|()| (Vec::new(), Vec::new()));
    let push = |levels: &mut (Vec<i16>, Vec<i16>), definition, repetition| {
        levels.0.push(definition);
        levels.1.push(repetition);
    };
    for row in rows {
        let user = row.as_ref().map(|(user, _)| user);
        push(
            &mut user_levels,
            user.map_or(0, |user| 1 + i16::from(user.is_some())),
            0,
        );
        users.extend(user.into_iter().flatten());
        let list = row.as_ref().map(|(_, experiments)| experiments);
        let Some(Some(experiments)) = list.filter(|list| !list.as_ref().is_some_and(Vec::is_empty)) else {
            // The row, the list, or an element of it is absent.
            let definition = list.map_or(0, |list| 1 + i16::from(list.is_some()));
            push(&mut name_levels, definition, 0);
            push(&mut tag_levels, definition, 0);
            continue;
        };
        for (n, experiment) in experiments.iter().enumerate() {
            let repetition = i16::from(n > 0);
            push(&mut name_levels, 3 + i16::from(experiment.is_some()), repetition);
            names.extend(experiment.iter().map(|(name, _)| name));
            match experiment.as_ref().map(|(_, tags)| tags) {
                None => push(&mut tag_levels, 3, repetition),
                Some(None) => push(&mut tag_levels, 4, repetition),
                Some(Some(of_experiment)) if of_experiment.is_empty() => push(&mut tag_levels, 5, repetition),
                Some(Some(of_experiment)) => {
                    for (n, tag) in of_experiment.iter().enumerate() {
                        let repetition = if n > 0 { 2 } else { repetition };
                        push(&mut tag_levels, 6 + i16::from(tag.is_some()), repetition);
                        tags.extend(tag);
                    }
                }
            }
        }
    }
    vec![
        texts(users).stored(&user_levels.0, &[]),
        texts(names).stored(&name_levels.0, &name_levels.1),
        Values::Int64(tags).stored(&tag_levels.0, &tag_levels.1),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn rows_match_the_written_records_in_any_encoding(
        rows in proptest::collection::vec(row(), 1..700),
        properties in properties(),
    ) {
        let columns = format!(
            "{CLICK} optional binary user_id (STRING);
            optional group items (LIST) {{ repeated group list {{ optional int64 element; }} }}
            optional group experiments (MAP) {{ repeated group key_value {{
                required binary key (STRING); required binary value (STRING); }} }}"
        );
        let file = file(&columns, &stored(&rows), 2, properties);
        let found = records(file.try_clone().unwrap()).unwrap();
        let expected = rows.iter().chain(&rows).map(record);
        for (found, expected) in found.iter().zip((1..).zip(expected)) {
            prop_assert_eq!(found.0, expected.0);
            prop_assert_eq!(serde_json::from_str::<Value>(&found.1).unwrap(), expected.1);
        }
        prop_assert_eq!(found.len(), 2 * rows.len());
        // Columns of any type are read by the rules of nested ones.
        let nested = records_of(file, &EVERY_COLUMN).unwrap();
        for ((_, nested), (_, found)) in nested.iter().zip(&found) {
            let [nested, found] = [nested, found].map(|json| serde_json::from_str::<Value>(json).unwrap());
            prop_assert_eq!(nested, found);
        }
        prop_assert_eq!(nested.len(), found.len());
    }

    #[test]
    fn nested_columns_match_the_written_records(
        rows in proptest::collection::vec(context(), 1..700),
        properties in properties(),
    ) {
        let columns = "optional group ctx {
            optional binary user (STRING);
            optional group exps (LIST) { repeated group list { optional group element {
                required binary name (STRING);
                optional group tags (LIST) { repeated group list { optional int64 element; } } } } } }";
        let found = records_of(file(columns, &shredded(&rows), 2, properties), &EVERY_COLUMN).unwrap();
        prop_assert_eq!(found.len(), 2 * rows.len());
        for ((_, found), row) in found.iter().zip(rows.iter().chain(&rows)) {
            prop_assert_eq!(serde_json::from_str::<Value>(found).unwrap(), context_record(row));
        }
    }
}
