//! Types that each column may have, and how their values are written.

use super::*;
use crate::decode::shape::{Shape, TsUnit, Zone};
use crate::decode::{Decoder, Explained};

#[test]
fn ids_are_strings_or_integers() {
    for (column, stored, expected) in [
        ("binary item (STRING)", texts(["i"]), r#""i""#),
        ("binary item", texts(["i"]), r#""i""#),
        ("binary item (ENUM)", texts(["i"]), r#""i""#),
        ("binary item (STRING)", texts(["\"\\\n\u{e9}"]), r#""\"\\\né""#),
        ("int32 item", Values::Int32(vec![-5]), "-5"),
        ("int32 item (INTEGER(8,true))", Values::Int32(vec![5]), "5"),
        ("int32 item (UINT_32)", Values::Int32(vec![-1]), "4294967295"),
        (
            "int64 item",
            Values::Int64(vec![i64::MIN]),
            "-9223372036854775808",
        ),
        (
            "int64 item (INTEGER(64,false))",
            Values::Int64(vec![-1]),
            "18446744073709551615",
        ),
    ] {
        check(
            &format!("required {column};"),
            &[stored.required()],
            &format!(r#","item":{expected}"#),
        );
    }
}

#[test]
fn uuids_become_text_and_decimals_become_numbers() {
    let fixed = |bytes: &[u8]| Values::Fixed(vec![FixedLenByteArray::from(bytes.to_vec())]);
    let uuid = 0x0011_2233_4455_6677_8899_aabb_ccdd_eeff_u128.to_be_bytes();
    for (column, stored, expected) in [
        (
            "fixed_len_byte_array(16) item (UUID)",
            fixed(&uuid),
            r#""00112233-4455-6677-8899-aabbccddeeff""#,
        ),
        ("int32 item (DECIMAL(9,0))", Values::Int32(vec![-5]), "-5"),
        ("int32 item (DECIMAL(9,2))", Values::Int32(vec![500]), "5"),
        ("int64 item (DECIMAL(18,0))", Values::Int64(vec![5]), "5"),
        ("int64 item (DECIMAL(18,3))", Values::Int64(vec![-1_250]), "-1.25"),
        ("binary item (DECIMAL(20,0))", texts([[0xff]]), "-1"),
        ("binary item (DECIMAL(20,2))", texts([[0x01, 0xf4]]), "5"),
        ("binary item (DECIMAL(20,2))", texts([[0x05]]), "0.05"),
        ("fixed_len_byte_array(1) item (DECIMAL(2,0))", fixed(&[5]), "5"),
        (
            "fixed_len_byte_array(16) item (DECIMAL(38,0))",
            fixed(&5_i128.to_be_bytes()),
            "5",
        ),
        (
            "fixed_len_byte_array(17) item (DECIMAL(38,0))",
            fixed(&[1; 17]),
            "NaN",
        ),
    ] {
        check(
            &format!("required {column};"),
            &[stored.required()],
            &format!(r#","item":{expected}"#),
        );
    }
    let uuids = "required group items (LIST) { repeated group list { required fixed_len_byte_array(16) element (UUID); } }";
    check(
        uuids,
        &[fixed(&uuid).stored(&[1], &[0])],
        r#","items":["00112233-4455-6677-8899-aabbccddeeff"]"#,
    );
}

/// A value takes fewer bytes than the length of a text would.
#[test]
fn reads_a_dictionary_of_short_values() {
    let n = 100_u8;
    let values = (0..n).map(|byte| FixedLenByteArray::from(vec![byte])).collect();
    let many = |value: Values| value.required();
    let stored = [
        many(texts(vec!["click"; n.into()])),
        many(texts(vec!["r"; n.into()])),
        many(Values::Int64(vec![1; n.into()])),
        many(Values::Fixed(values)),
    ];
    let columns = format!("{CLICK} required fixed_len_byte_array(1) item (DECIMAL(2,0));");
    let records = records(file(&columns, &stored, 1, WriterProperties::default())).unwrap();
    assert_eq!(
        records.last().unwrap().1,
        r#"{"type":"click","request_id":"r","ts":1,"item":99}"#
    );
}

#[test]
fn text_that_is_not_utf_8_makes_an_unreadable_record() {
    let file = file(
        "required binary type; required binary request_id; required int64 ts;",
        &[
            texts([b"click"]).required(),
            texts([b"\xff\""]).required(),
            Values::Int64(vec![1]).required(),
        ],
        1,
        WriterProperties::default(),
    );
    let mut is_text = None;
    read(
        file,
        &EventFields::default(),
        &|_| Ok(()),
        &mut |_, record: RawRecord| is_text = Some(std::str::from_utf8(record.bytes).is_ok()),
    )
    .unwrap();
    assert_eq!(is_text, Some(false));
}

#[test]
fn times_of_any_unit_become_milliseconds() {
    for (column, stored, expected) in [
        (
            "int64 ts",
            Values::Int64(vec![1_763_596_800_123]),
            "1763596800123",
        ),
        (
            "int64 ts (TIMESTAMP_MILLIS)",
            Values::Int64(vec![1_763_596_800_123]),
            "1763596800123",
        ),
        (
            "int64 ts (TIMESTAMP_MICROS)",
            Values::Int64(vec![1_763_596_800_123_999]),
            "1763596800123",
        ),
        (
            "int64 ts (TIMESTAMP(MILLIS,false))",
            Values::Int64(vec![1_763_596_800_123]),
            "1763596800123",
        ),
        ("int64 ts (TIMESTAMP(MICROS,true))", Values::Int64(vec![-1]), "-1"),
        (
            "int64 ts (TIMESTAMP(NANOS,true))",
            Values::Int64(vec![1_763_596_800_123_999_999]),
            "1763596800123",
        ),
        (
            "binary ts (STRING)",
            texts(["2025-11-20T00:00:00Z"]),
            r#""2025-11-20T00:00:00Z""#,
        ),
    ] {
        check_time(&format!("required {column};"), stored, expected);
    }
    // pandas stores integers with nulls as doubles.
    for (stored, expected) in [
        (1_763_596_800_123.0, "1763596800123"),
        (1_763_596_800_123.5, "1763596800123.5"),
        (f64::NAN, "null"),
        (f64::INFINITY, "null"),
    ] {
        check_time("required double ts;", Values::Double(vec![stored]), expected);
    }
    let decimal = Values::Int64(vec![1_763_596_800_123_000]);
    check_time("required int64 ts (DECIMAL(18,3));", decimal, "1763596800123");
    // Nanoseconds of the day in 64 bits, then the Julian day: 2025-11-20, one second after midnight.
    let mut second = Int96::new();
    second.set_data(1_000_000_000, 0, 2_461_000);
    check_time("required int96 ts;", Values::Int96(vec![second]), "1763596801000");
}

/// Every case has the decoder's unit of numbers and its zone of times without one.
#[test]
fn timestamps_do_not_depend_on_the_unit_of_numbers() {
    let ts_ms = |unit, zone, column: &str, stored: Values| {
        let shape = Shape {
            ts_unit: unit,
            ts_zone: Zone::parse(zone),
            ..Shape::default()
        };
        let columns = format!(
            "required binary type; required binary request_id; required binary item; required {column};"
        );
        let stored = [texts(["click"]), texts(["r"]), texts(["i"]), stored].map(Values::required);
        let mut records = Vec::new();
        let file = file(&columns, &stored, 1, WriterProperties::default());
        let fields = EventFields {
            shape: Some(&shape),
            ..EventFields::default()
        };
        read(file, &fields, &|_| Ok(()), &mut |_, record: RawRecord| {
            records.push(record.bytes.to_vec());
        })
        .unwrap();
        let decoder = Decoder::new(0, 10, 10).reading(Some(&shape));
        match decoder.explain(records[0].as_slice(), None).swap_remove(0) {
            Explained::Click { ts_ms, .. } => ts_ms,
            other => panic!("{column}: {other:?}"),
        }
    };
    let ms = 1_763_596_800_123;
    let mut second = Int96::new();
    second.set_data(1_000_000_000, 0, 2_461_000);
    for (_, unit) in TsUnit::ALL {
        for (column, stored, expected) in [
            (
                "int64 ts (TIMESTAMP(NANOS,true))",
                Values::Int64(vec![ms * 1_000_000 + 1]),
                ms,
            ),
            (
                "int64 ts (TIMESTAMP(MICROS,false))",
                Values::Int64(vec![ms * 1_000]),
                ms - 3_600_000,
            ),
            ("int64 ts (TIMESTAMP(MILLIS,true))", Values::Int64(vec![ms]), ms),
            ("int96 ts", Values::Int96(vec![second]), 1_763_596_801_000),
            ("binary ts (STRING)", texts(["2025-11-20T01:00:00.123"]), ms),
        ] {
            assert_eq!(
                ts_ms(Some(unit), "+01:00", column, stored),
                expected,
                "{unit:?} {column}"
            );
        }
    }
    for (unit, column, stored, expected) in [
        (
            TsUnit::Nanoseconds,
            "int64 ts",
            Values::Int64(vec![ms * 1_000_000]),
            ms,
        ),
        (
            TsUnit::Microseconds,
            "int64 ts",
            Values::Int64(vec![ms * 1_000]),
            ms,
        ),
        (
            TsUnit::Seconds,
            "int32 ts",
            Values::Int32(vec![1_763_596_800]),
            ms - 123,
        ),
        (
            TsUnit::Seconds,
            "double ts",
            Values::Double(vec![1_763_596_800.5]),
            ms + 377,
        ),
        (
            TsUnit::Milliseconds,
            "double ts",
            Values::Double(vec![1_763_596_800_123.5]),
            ms,
        ),
        (
            TsUnit::Seconds,
            "int64 ts (DECIMAL(18,3))",
            Values::Int64(vec![ms]),
            ms,
        ),
        (TsUnit::Seconds, "binary ts", texts(["1763596800.123"]), ms),
    ] {
        assert_eq!(
            ts_ms(Some(unit), "UTC", column, stored),
            expected,
            "{unit:?} {column}"
        );
    }
    let naive = || Values::Int64(vec![ms]);
    let column = "int64 ts (TIMESTAMP(MILLIS,false))";
    assert_eq!(ts_ms(None, "", column, naive()), ms, "UTC");
    assert_eq!(ts_ms(None, "-08:00", column, naive()), ms + 8 * 3_600_000);
}

#[test]
fn lists_may_be_null_or_empty_or_hold_strings_integers_and_nulls() {
    let column = "optional group items (LIST) { repeated group list { optional binary element (STRING); } }";
    for (values, definition, repetition, expected) in [
        (&[][..], &[0][..], &[0][..], ""),
        (&[], &[1], &[0], r#","items":[]"#),
        (&[], &[2], &[0], r#","items":[null]"#),
        (&["a"], &[3], &[0], r#","items":["a"]"#),
        (&["a", "b"], &[3, 2, 3], &[0, 1, 1], r#","items":["a",null,"b"]"#),
    ] {
        check(column, &[texts(values).stored(definition, repetition)], expected);
    }
    let integers = "required group items (LIST) { repeated group list { required int64 element; } }";
    check(
        integers,
        &[Values::Int64(vec![5, 6]).stored(&[1, 1], &[0, 1])],
        r#","items":[5,6]"#,
    );
    check(
        "repeated int32 items;",
        &[Values::Int32(vec![5, 6]).stored(&[1, 1], &[0, 1])],
        r#","items":[5,6]"#,
    );
    check(
        "repeated int32 items;",
        &[Values::Int32(vec![]).stored(&[0], &[0])],
        r#","items":[]"#,
    );
}

#[test]
fn experiments_may_be_a_map() {
    for column in [
        "optional group experiments (MAP) { repeated group key_value {
            required binary key (STRING); optional binary value (STRING); } }",
        "optional group experiments (LIST) { repeated group list { required group element {
            required binary key (STRING); optional binary value (STRING); } } }",
    ] {
        let stored = |keys: &[&str], values: &[&str], key: &[i16], value: &[i16], repetition: &[i16]| {
            [
                texts(keys).stored(key, repetition),
                texts(values).stored(value, repetition),
            ]
        };
        check(column, &stored(&[], &[], &[0], &[0], &[0]), "");
        check(
            column,
            &stored(&[], &[], &[1], &[1], &[0]),
            r#","experiments":{}"#,
        );
        check(
            column,
            &stored(&["e", "f", "g"], &["a", "b"], &[2, 2, 2], &[3, 2, 3], &[0, 1, 1]),
            r#","experiments":{"e":"a","g":"b"}"#,
        );
    }
}

#[test]
fn experiments_may_be_a_struct() {
    let column = "optional group experiments { optional binary e (STRING); optional binary f\"g (STRING); }";
    let stored = |values: [&[&str]; 2], definition: [i16; 2]| {
        [0, 1].map(|field| texts(values[field]).stored(&[definition[field]], &[]))
    };
    check(column, &stored([&[], &[]], [0, 0]), r#","experiments":{}"#);
    check(
        column,
        &stored([&[], &["b"]], [1, 2]),
        r#","experiments":{"f\"g":"b"}"#,
    );
    check(
        column,
        &stored([&["a"], &["b"]], [2, 2]),
        r#","experiments":{"e":"a","f\"g":"b"}"#,
    );
}

#[test]
fn experiments_may_be_json_or_else_become_a_string() {
    let column = "required binary experiments (JSON);";
    check(
        column,
        &[texts([r#"{"e": "a"}"#]).required()],
        r#","experiments":{"e": "a"}"#,
    );
    check(
        column,
        &[texts([r#"{},"ts":2"#]).required()],
        r#","experiments":"{},\"ts\":2""#,
    );
    check(column, &[texts([""]).required()], r#","experiments":"""#);
}

#[test]
fn lists_may_be_json() {
    for column in [
        "optional binary items (STRING);",
        "optional binary items (JSON);",
        "optional binary items;",
    ] {
        for (text, expected) in [
            (r#"["a", 5]"#, r#","items":["a", 5]"#),
            ("[]", r#","items":[]"#),
            ("null", r#","items":null"#),
            ("a,b", r#","items":"a,b""#),
            ("['a']", r#","items":"['a']""#),
            (r#"["a"],"ts":2"#, r#","items":"[\"a\"],\"ts\":2""#),
        ] {
            check(column, &[texts([text]).stored(&[1], &[])], expected);
        }
        check(column, &[texts([""; 0]).stored(&[0], &[])], "");
    }
}

#[test]
fn bare_strings_in_a_json_column_are_quoted() {
    for (text, expected) in [("\"i\"", "\"i\""), ("5", "5"), ("i", "\"i\"")] {
        check(
            "required binary item (JSON);",
            &[texts([text]).required()],
            &format!(r#","item":{expected}"#),
        );
    }
    let list = "required group items (LIST) { repeated group list { required binary element (JSON); } }";
    check(
        list,
        &[texts(["\"a\"", "5"]).stored(&[1, 1], &[0, 1])],
        r#","items":["a",5]"#,
    );
}

#[test]
fn nulls_and_columns_of_nulls_are_absent() {
    check(
        "optional binary user_id (STRING);",
        &[texts([""; 0]).stored(&[0], &[])],
        "",
    );
    for name in ["user_id", "experiments", "items", "item"] {
        let nulls = Values::Int32(vec![]).stored(&[0], &[]);
        check(&format!("optional int32 {name} (UNKNOWN);"), &[nulls], "");
    }
    let empty = "optional group items (LIST) { repeated group list { optional int32 element (UNKNOWN); } }";
    check(
        empty,
        &[Values::Int32(vec![]).stored(&[1], &[0])],
        r#","items":[]"#,
    );
}

#[test]
fn ignores_other_columns() {
    let column = "required double score; required group deep { required binary item (STRING); }";
    check(
        column,
        &[Values::Double(vec![0.5]).required(), texts(["i"]).required()],
        "",
    );
}

#[test]
fn counts_rows_across_row_groups_and_reports_all_bytes() {
    let file = file(CLICK, &click(), 3, WriterProperties::default());
    let n_bytes = file.metadata().unwrap().len();
    let n_reported = Cell::new(0);
    let mut numbers = Vec::new();
    read(
        file,
        &EventFields::default(),
        &|n| {
            n_reported.set(n_reported.get() + n);
            Ok(())
        },
        &mut |number, _: RawRecord| numbers.push(number),
    )
    .unwrap();
    assert_eq!(numbers, [1, 2, 3]);
    assert_eq!(n_reported.get(), n_bytes);
}

#[test]
fn a_file_without_rows_has_no_records() {
    assert_eq!(
        records(file(CLICK, &click(), 0, WriterProperties::default())).unwrap(),
        []
    );
}
