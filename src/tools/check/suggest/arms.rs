//! Drafts of the fields in which lists name their experiments and arms.

use std::collections::BTreeSet;

use abgauge_core::decode::MAX_LABEL_BYTES;
use abgauge_core::decode::shape::{ArmsShape, Path, Paths};
use serde_json::Value;

use super::columns::{Members, SampleColumn, SampleColumns, share};
use super::words::{ARM, CHOOSER, EXPERIMENT, NAME, VALUE, hint, hints};

/// Maximum number of arms in a field. A field with more values means something else.
const MAX_ARMS: usize = 50;

/// Number of lists from which on more than one arm is expected.
const MANY: usize = 20;

/// One way to read the arms.
pub(super) struct ArmsDraft {
    pub shape: ArmsShape,
    /// Number of lists in which it names an arm.
    pub n: usize,
    pub score: f64,
}

/// Returns the best way, or `None` if no field seems to name an experiment or an arm.
pub(super) fn arms(columns: &SampleColumns, lists: &Members) -> Option<ArmsDraft> {
    let of_one = columns.iter().flat_map(|column| {
        let ways = [
            object(column, lists),
            array(column, lists),
            attributes(column, lists),
            texts(column, lists),
        ];
        ways.into_iter().flatten()
    });
    let all = of_one
        .chain(prefixed(columns, lists))
        .chain(in_record(columns, lists));
    let mut best = all
        .filter(|draft| draft.n > 0)
        .max_by(|one, other| one.score.total_cmp(&other.score))?;
    best.shape.not_in = not_in(&best.shape, columns, lists);
    Some(best)
}

/// Values that producers write for "not in the experiment".
const NOT_IN: [&str; 3] = ["false", "", "none"];

/// Returns the values of [`NOT_IN`] that occur among the arms.
fn not_in(shape: &ArmsShape, columns: &SampleColumns, lists: &Members) -> Vec<String> {
    let is_arm = |column: &&SampleColumn| match &shape.prefix {
        Some(prefix) => column.name().starts_with(prefix.as_str()),
        None => {
            let mut paths = shape.experiments.iter().chain(&shape.arm);
            paths.any(|path| *path.first() == column.path)
        }
    };
    let values = columns
        .iter()
        .filter(is_arm)
        .flat_map(|column| column.within(lists));
    let inner = |value: &'_ Value| match value {
        Value::Object(fields) => fields.values().cloned().collect(),
        value => vec![value.clone()],
    };
    let seen: Vec<Value> = values.flat_map(inner).collect();
    let is_seen = |word: &&str| {
        seen.iter().any(|value| match value {
            Value::String(text) => text == word,
            Value::Bool(is_set) => is_set.to_string() == **word,
            _ => false,
        })
    };
    NOT_IN
        .iter()
        .filter(|word| is_seen(word))
        .map(|word| (*word).to_owned())
        .collect()
}

/// Candidates for `arm_separator`.
const SEPARATORS: [&str; 5] = [":", "=", "/", "|", "."];
/// Candidates for `pair_separator`.
const BETWEEN: [&str; 4] = [";", ",", "|", " "];

/// Drafts a shape for `["ranker:neural","layout:grid"]`, `"ranker:neural;layout:grid"`, or an object that is JSON text.
fn texts(column: &SampleColumn, lists: &Members) -> Option<ArmsDraft> {
    if !hints(&column.called(), &EXPERIMENT) && !hints(&column.called(), &ARM) {
        return None;
    }
    let values: Vec<&Value> = column.within(lists).collect();
    let draft = |shape: ArmsShape, n: usize| ArmsDraft {
        shape: ArmsShape {
            experiments: Some(column.path.clone().into()),
            ..shape
        },
        n,
        score: 4.0 + share(n, lists.len()),
    };
    let is_json = |value: &&&Value| {
        value
            .as_str()
            .is_some_and(|text| serde_json::from_str::<serde_json::Map<String, Value>>(text).is_ok())
    };
    let n_json = values.iter().filter(is_json).count();
    if 2 * n_json > values.len() {
        return Some(draft(ArmsShape::default(), n_json));
    }
    // A second separator would make it ambiguous where the experiment ends.
    let is_pair = |text: &str, separator: &str| {
        let pair = text.split_once(separator);
        pair.is_some_and(|(experiment, arm)| !experiment.trim().is_empty() && !arm.contains(separator))
    };
    let arrays = values.iter().filter_map(|value| value.as_array());
    let elements: Vec<&str> = arrays.clone().flatten().filter_map(Value::as_str).collect();
    let all = |texts: &[&str], separator: &str| {
        !texts.is_empty() && texts.iter().all(|text| is_pair(text, separator))
    };
    if let Some(separator) = SEPARATORS.iter().find(|separator| all(&elements, separator)) {
        let shape = ArmsShape {
            arm_separator: Some((*separator).to_owned()),
            ..ArmsShape::default()
        };
        return Some(draft(shape, arrays.filter(|array| !array.is_empty()).count()));
    }
    let whole: Vec<&str> = values.iter().filter_map(|value| value.as_str()).collect();
    let mut ways = SEPARATORS
        .iter()
        .flat_map(|separator| BETWEEN.map(|between| (*separator, between)));
    let (separator, between) = ways.find(|(separator, between)| {
        let parts: Vec<&str> = whole
            .iter()
            .flat_map(|text| text.split(between))
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .collect();
        // At least one text must hold several pairs. Otherwise nothing shows that `between` separates them.
        separator != between && parts.len() > whole.len() && all(&parts, separator)
    })?;
    let shape = ArmsShape {
        arm_separator: Some(separator.to_owned()),
        pair_separator: Some(between.to_owned()),
        ..ArmsShape::default()
    };
    Some(draft(shape, whole.len()))
}

/// Drafts a shape for `"$feature/ranker":"neural"`: fields with a common prefix that contains a word for an experiment.
fn prefixed(columns: &SampleColumns, lists: &Members) -> Option<ArmsDraft> {
    let of = |column: &SampleColumn| {
        let name = column.name();
        let end = name.rfind(['/', ':', '.', '$'])? + 1;
        let prefix = name.get(..end).filter(|_| end < name.len())?;
        let says =
            hints(prefix, &EXPERIMENT) || hints(prefix, &ARM) || hints(prefix, &["feature", "features"]);
        // An empty text means that the list is not in the experiment.
        let n = column.count(lists, |value| is_label(value) || value.as_str() == Some(""));
        let (_, parents) = column.path.names().split_last()?;
        (says && n > 0).then(|| (parents.to_vec(), prefix.to_owned()))
    };
    let (parents, prefix) = columns.iter().find_map(of)?;
    let is_one = |column: &&SampleColumn| of(column).as_ref() == Some(&(parents.clone(), prefix.clone()));
    let fields: Vec<&SampleColumn> = columns.iter().filter(is_one).collect();
    let n = lists
        .iter()
        .filter(|number| fields.iter().any(|column| column.values.contains_key(number)))
        .count();
    let parents: Vec<&str> = parents.iter().map(String::as_str).collect();
    Some(ArmsDraft {
        shape: ArmsShape {
            experiments: match parents.is_empty() {
                true => None,
                false => Some(Path::of(&parents)?.into()),
            },
            prefix: Some(prefix),
            ..ArmsShape::default()
        },
        n,
        score: 4.5 + share(n, lists.len()),
    })
}

fn is_label(value: &Value) -> bool {
    match value {
        Value::String(text) => (1..=MAX_LABEL_BYTES).contains(&text.len()),
        Value::Number(number) => number.is_i64() || number.is_u64(),
        Value::Bool(_) => true,
        _ => false,
    }
}

/// Drafts a shape for `{"ranker":"neural"}`, or for objects that describe arms.
fn object(column: &SampleColumn, lists: &Members) -> Option<ArmsDraft> {
    if !hints(&column.called(), &EXPERIMENT) && !hints(&column.called(), &ARM) {
        return None;
    }
    let n = column.count(lists, |value| {
        value.as_object().is_some_and(|object| !object.is_empty())
    });
    let values: Vec<(&str, &Value)> = column
        .within(lists)
        .filter_map(Value::as_object)
        .flatten()
        .map(|(name, value)| (name.as_str(), value))
        .collect();
    let inner = SampleColumns::of(
        values
            .iter()
            .map(|(_, value)| *value)
            .filter(|value| value.is_object()),
    );
    let arm = best(&inner, &[&ARM, &VALUE]);
    let is_arm = |value: &Value| match (value, &arm) {
        (Value::Object(_), Some(arm)) => super::items::at(value, arm).is_some_and(is_label),
        (value, _) => is_label(value),
    };
    let sound = |name: &str| {
        values
            .iter()
            .all(|(other, value)| *other != name || is_arm(value))
    };
    let names: BTreeSet<&str> = values.iter().map(|(name, _)| *name).collect();
    let good: Vec<String> = names
        .iter()
        .filter(|name| sound(name))
        .map(|name| (*name).to_owned())
        .collect();
    let are_texts = values.iter().all(|(_, value)| value.is_string());
    (!good.is_empty()).then(|| ArmsDraft {
        shape: ArmsShape {
            experiments: Some(column.path.clone().into()),
            // With a path to the arm, plain values may also be numbers.
            arm: arm
                .clone()
                .or_else(|| (!are_texts).then(|| Path::of(&["arm"])).flatten())
                .map(Paths::from),
            // Some names have values that cannot be arms, so the usable experiments are listed.
            only: if good.len() < names.len() {
                good
            } else {
                Vec::new()
            },
            ..ArmsShape::default()
        },
        n,
        score: 4.0 + share(n, lists.len()),
    })
}

/// Returns the field that occurs in all objects, by the first word list that hints at one.
fn best(columns: &SampleColumns, words: &[&[&str]]) -> Option<Path> {
    let n_all = columns.iter().map(|column| column.values.len()).max()?;
    let of_all = || {
        let all = columns.iter().filter(move |column| column.values.len() == n_all);
        all.filter(|column| column.values.values().all(|value| is_label(value)))
    };
    words.iter().find_map(|words| {
        let hinting = of_all().filter(|column| hint(&column.called(), words) > 0.0);
        hinting.map(|column| column.path.clone()).next()
    })
}

/// Drafts a shape for `[{"name":"ranker","arm":"neural"}]`.
fn array(column: &SampleColumn, lists: &Members) -> Option<ArmsDraft> {
    if !hints(&column.called(), &EXPERIMENT) && !hints(&column.called(), &ARM) {
        return None;
    }
    let n = column.count(lists, |value| {
        value.as_array().is_some_and(|array| !array.is_empty())
    });
    let inner = elements(column, lists)?;
    let experiment = best(&inner, &[&EXPERIMENT, &NAME])?;
    let labels: Vec<&SampleColumn> = inner
        .iter()
        .filter(|column| column.path != experiment && column.values.values().all(|value| is_label(value)))
        .collect();
    let first = |is_it: &dyn Fn(&SampleColumn) -> bool| labels.iter().find(|column| is_it(column));
    // The arm is preferably a field named like one, then a field inside an object named like one, then a field named like a
    // value.
    let arm = first(&|column| hints(&column.called(), &ARM))
        .or_else(|| first(&|column| column.path.names().iter().any(|name| hints(name, &ARM))))
        .or_else(|| first(&|column| hints(&column.called(), &VALUE)))?;
    Some(ArmsDraft {
        shape: ArmsShape {
            experiments: Some(column.path.clone().into()),
            experiment: Some(experiment.into()),
            arm: Some(arm.path.clone().into()),
            ..ArmsShape::default()
        },
        n,
        score: 4.0 + share(n, lists.len()),
    })
}

fn elements<'a>(column: &SampleColumn<'a>, lists: &Members) -> Option<SampleColumns<'a>> {
    let elements: Vec<&Value> = column
        .within(lists)
        .filter_map(Value::as_array)
        .flatten()
        .collect();
    let are_objects = elements.iter().all(|element| element.is_object());
    (are_objects && !elements.is_empty()).then(|| SampleColumns::of(elements))
}

/// Drafts a shape for `[{"name":"experiment","value":"neural"},{"name":"query","value":"socks"}]`.
fn attributes(column: &SampleColumn, lists: &Members) -> Option<ArmsDraft> {
    let inner = elements(column, lists)?;
    let named = |words: &[&str]| {
        let mut inner = inner.iter();
        inner.find(|column| column.path.names().len() == 1 && words.contains(&column.name()))
    };
    let (name, value) = (named(&["name", "key"])?, named(&["value"])?);
    let says = |words: &[&str]| {
        let names = name.values.values().filter_map(|name| name.as_str());
        names
            .filter(|name| hints(name, words))
            .map(str::to_owned)
            .collect::<BTreeSet<_>>()
    };
    let experiments = says(&EXPERIMENT);
    // Other attributes of the list must not become experiments.
    let only: Vec<String> = match experiments.is_empty() {
        true => says(&ARM).into_iter().collect(),
        false => experiments.into_iter().collect(),
    };
    let is_one = |element: &Value| {
        let name = element.get(name.name()).and_then(Value::as_str);
        name.is_some_and(|name| only.iter().any(|only| only == name))
    };
    let n = column.count(lists, |value| {
        value.as_array().is_some_and(|array| array.iter().any(is_one))
    });
    (!only.is_empty()).then(|| ArmsDraft {
        shape: ArmsShape {
            experiments: Some(column.path.clone().into()),
            experiment: Some(name.path.clone().into()),
            arm: Some(value.path.clone().into()),
            only,
            ..ArmsShape::default()
        },
        n,
        score: 3.0 + share(n, lists.len()),
    })
}

/// Drafts a shape for `"test":"ranker","variant":"neural"`, or an arm alone.
fn in_record(columns: &SampleColumns, lists: &Members) -> Option<ArmsDraft> {
    let plain = |words: &[&str]| {
        let fields = columns.iter().filter(|column| hints(&column.called(), words));
        let fields = fields.filter(|column| {
            let n = column.count(lists, is_label);
            n > 0 && n == column.within(lists).count() && distinct(column, lists) <= MAX_ARMS
        });
        fields.max_by(|one, other| {
            // The field in most lists wins, then the one with the shorter path.
            let n = |column: &SampleColumn| column.within(lists).count();
            n(one)
                .cmp(&n(other))
                .then_with(|| other.path.names().len().cmp(&one.path.names().len()))
        })
    };
    // A field with one value in many lists does not distinguish arms.
    let differs = |column: &&SampleColumn| lists.len() < MANY || distinct(column, lists) > 1;
    let (experiment, arm) = (plain(&EXPERIMENT), plain(&ARM));
    let (experiment, arm, score) = match (experiment, arm) {
        (Some(experiment), Some(arm)) if experiment.path != arm.path => (Some(experiment), arm, 3.5),
        (_, Some(arm)) => (None, arm, 2.5),
        (experiment, None) => match experiment.filter(differs) {
            Some(experiment) => (None, experiment, 2.0),
            None => (None, plain(&CHOOSER).filter(differs)?, 1.0),
        },
    };
    let n = arm.within(lists).count();
    let name = match hints(arm.name(), &ARM) {
        true => "main",
        false => arm.name(),
    };
    Some(ArmsDraft {
        shape: ArmsShape {
            experiments: None,
            experiment: experiment.map(|column| column.path.clone().into()),
            arm: Some(arm.path.clone().into()),
            experiment_name: experiment.is_none().then(|| name.to_owned()),
            ..ArmsShape::default()
        },
        n,
        score: score + share(n, lists.len()),
    })
}

fn distinct(column: &SampleColumn, lists: &Members) -> usize {
    let values: BTreeSet<String> = column.within(lists).map(Value::to_string).collect();
    values.len()
}
