//! Choice of the fields with times, and detection of their format.

use std::collections::BTreeMap;

use abgauge_core::decode;
use abgauge_core::decode::shape::{TsUnit, Zone};
use serde_json::Value;

use super::columns::{FieldChoice, Members, SampleColumn, SampleColumns, choice, share};
use super::words::{TIME, hint};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TimeForm {
    /// Number in a unit. A plain number consists of digits only, and needs no `ts_unit` if it is in milliseconds.
    Number {
        unit: TsUnit,
        is_plain: bool,
    },
    Zoned,
    Zoneless,
}

/// Fields and format of the times in a sample.
pub(super) struct SampleTimes {
    pub unit: Option<TsUnit>,
    pub zone: Option<Zone>,
    pub served: Option<FieldChoice>,
    pub click: Option<FieldChoice>,
    /// An unreadable value of lists and of clicks, if the field was chosen by its name alone.
    pub unread: [Option<String>; 2],
}

/// Chooses the times of lists and of clicks, in the most frequent unit.
pub(super) fn times(columns: &SampleColumns, lists: &Members, clicks: &Members) -> SampleTimes {
    let served = of(columns, lists, None);
    let click = of(columns, clicks, served.as_ref());
    let forms = [(&served, lists), (&click, clicks)].map(|(choice, members)| {
        let column = choice.as_ref().and_then(|choice| columns.get(&choice.path));
        let values = column.into_iter().flat_map(|column| column.within(members));
        values.filter_map(form).collect::<Vec<_>>()
    });
    let forms = forms.concat();
    let mut of_unit: BTreeMap<&str, (usize, bool)> = BTreeMap::new();
    for form in &forms {
        if let TimeForm::Number { unit, is_plain } = form {
            let (n, are_plain) = of_unit.entry(name(*unit)).or_insert((0, true));
            *n += 1;
            *are_plain &= is_plain;
        }
    }
    let most = of_unit.iter().max_by_key(|(_, (n, _))| *n);
    // Plain milliseconds are the default, so they need no setting.
    let unit = most.filter(|(unit, (_, are_plain))| !(**unit == "ms" && *are_plain));
    let unit = unit.and_then(|(word, _)| TsUnit::ALL.iter().find(|(name, _)| name == word));
    let unread = |choice: &Option<FieldChoice>, members: &Members| {
        let named = choice.as_ref().filter(|choice| choice.n == 0)?;
        columns
            .get(&named.path)?
            .within(members)
            .next()
            .map(Value::to_string)
    };
    SampleTimes {
        unread: [unread(&served, lists), unread(&click, clicks)],
        unit: unit.map(|(_, unit)| *unit),
        zone: forms.contains(&TimeForm::Zoneless).then_some(Zone::UTC),
        served,
        click,
    }
}

fn name(unit: TsUnit) -> &'static str {
    let of = TsUnit::ALL.iter().find(|(_, other)| *other == unit);
    of.map_or("", |(name, _)| name)
}

/// Returns the best field, and prefers the one of the other kind. If no times can be read, the name decides.
fn of(columns: &SampleColumns, members: &Members, other: Option<&FieldChoice>) -> Option<FieldChoice> {
    let judged: Vec<(f64, &SampleColumn, usize)> = columns
        .iter()
        .filter_map(|column| {
            let n = column.count(members, is_time);
            let is_called = hint(&column.called(), &TIME) > 0.0 && column.count(members, is_plain) > 0;
            (n > 0 || is_called).then(|| (score(column, n, members, other), column, n))
        })
        .collect();
    let can_be_read = judged.iter().any(|(_, _, n)| *n > 0);
    choice(
        judged
            .into_iter()
            .filter(|(_, _, n)| *n > 0 || !can_be_read)
            .collect(),
    )
}

fn is_plain(value: &Value) -> bool {
    value.is_string() || value.is_number()
}

fn score(column: &SampleColumn, n: usize, members: &Members, other: Option<&FieldChoice>) -> f64 {
    let is_same = other.is_some_and(|other| other.path == column.path);
    3.0 * share(n, members.len()) + hint(&column.called(), &TIME) + if is_same { 1.0 } else { 0.0 }
}

/// Returns true if a value looks like a time.
pub(super) fn is_time(value: &Value) -> bool {
    form(value).is_some()
}

fn form(value: &Value) -> Option<TimeForm> {
    let text = match value {
        Value::Number(number) => {
            let is_plain = number.is_u64();
            return unit(number.as_f64()?).map(|unit| TimeForm::Number { unit, is_plain });
        }
        Value::String(text) => text,
        Value::Array(_) if decode::is_time_array(&value.to_string()) => return Some(TimeForm::Zoneless),
        _ => return None,
    };
    // Digits in quotes are a number and not the text of a time.
    if let Ok(number) = text.parse() {
        let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
        return unit(number).map(|unit| TimeForm::Number { unit, is_plain });
    }
    match () {
        () if decode::is_time(text, None) => Some(TimeForm::Zoned),
        () if decode::is_time(text, Some(Zone::UTC)) => Some(TimeForm::Zoneless),
        () => None,
    }
}

/// Guesses the unit of a number, from the magnitude of times between 2001 and 2286.
fn unit(number: f64) -> Option<TsUnit> {
    match number {
        1e9..1e10 => Some(TsUnit::Seconds),
        1e12..1e13 => Some(TsUnit::Milliseconds),
        1e15..1e16 => Some(TsUnit::Microseconds),
        1e18..1e19 => Some(TsUnit::Nanoseconds),
        _ => None,
    }
}
