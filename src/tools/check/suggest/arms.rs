//! Drafts of the fields in which lists name their experiments and arms.
//!
//! ```text
//! columns ──▶ candidates, best first ──▶ trial of each ──▶ refined: `only` and `not_in` from the arms that were read
//! ```

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use abgauge_core::decode::MAX_LABEL_BYTES;
use abgauge_core::decode::shape::{ArmsShape, Path, Paths};
use serde_json::Value;

use super::columns::{Members, SampleColumn, SampleColumns, is_json_text, share};
use super::fields::FEW;
use super::times::is_time;
use super::words::{
    ARM, ASSIGNMENT, CHOOSER, ENROLLED, EXCLUDED, EXPERIMENT, FACT, FEATURE, NAME, OF_FLAG, TIME, USER,
    VALUE, hint, hints, words,
};

/// Maximum number of arms in a field. A field with more values means something else.
const MAX_ARMS: usize = 50;

/// Number of arms from which on each may belong to one user.
const MANY_ARMS: usize = 5;

/// Maximum number of experiments. A field with more names means something else.
const MAX_EXPERIMENTS: usize = 50;

/// Number of lists from which on more than one arm is expected.
pub(super) const MANY: usize = 20;

/// Maximum number of ways to try.
const MAX_TRIED: usize = 6;

/// One way to read the arms.
pub(super) struct ArmsDraft {
    pub shape: ArmsShape,
    /// Number of lists that have these fields.
    n: usize,
    score: f64,
    /// Flag for lists in their experiment, and the number of lists for which it is not set.
    pub outside: Option<(String, usize)>,
}

/// Returns the ways to read the arms, best first; none if no field seems to name an experiment or an arm.
pub(super) fn candidates(columns: &SampleColumns, lists: &Members) -> Vec<ArmsDraft> {
    let in_text = json_texts(columns, lists);
    let parsed = in_text.iter().map(|(path, values)| SampleColumn {
        path: path.clone(),
        values: values.iter().map(|(number, value)| (*number, value)).collect(),
    });
    let parsed: Vec<SampleColumn> = parsed.collect();
    let of_one = |column: &SampleColumn, is_text: bool| {
        let mut ways = array(column, lists);
        ways.extend(attributes(column, lists));
        ways.extend(texts(column, lists));
        match as_one(column, lists) {
            // No path leads into JSON text.
            Some(way) => ways.extend((!is_text).then_some(way)),
            None => ways.extend(object(column, lists)),
        }
        ways
    };
    let plain = columns.iter().flat_map(|column| of_one(column, false));
    let parsed = parsed.iter().flat_map(|column| of_one(column, true));
    let ways = plain.chain(parsed);
    let mut all: Vec<ArmsDraft> = ways
        .chain(prefixed(columns, lists))
        .chain(common_prefix(columns, lists))
        .chain(in_record(columns, lists))
        .filter(|draft| draft.n > 0)
        .collect();
    all.sort_by(|one, other| other.score.total_cmp(&one.score));
    all.truncate(MAX_TRIED);
    for draft in &mut all {
        draft.outside = outside(columns, lists, &draft.shape);
    }
    all
}

/// Returns the objects and arrays in columns of JSON text.
fn json_texts(columns: &SampleColumns, lists: &Members) -> Vec<(Path, BTreeMap<usize, Value>)> {
    let mut all = Vec::new();
    for column in columns.iter().filter(|column| is_of_arms(column)) {
        let inner = lists.iter().filter_map(|number| {
            let text = column.values.get(number).filter(|value| is_json_text(value))?;
            Some((*number, serde_json::from_str(text.as_str()?).ok()?))
        });
        let inner: BTreeMap<usize, Value> = inner.collect();
        if !inner.is_empty() && 2 * inner.len() >= column.within(lists).count() {
            all.push((column.path.clone(), inner));
        }
    }
    all
}

/// Returns true if the name of a field hints at an experiment or an arm. Experiments may be numbered.
pub(super) fn is_of_arms(column: &SampleColumn) -> bool {
    let called = column.called();
    let without_number = called.trim_end_matches(|c: char| c.is_ascii_digit());
    hints(&called, &EXPERIMENT) || hints(&called, &ARM) || hints(without_number, &EXPERIMENT)
}

/// Values that producers write for "not in the experiment", without spaces, dashes and underscores.
const NOT_IN: [&str; 14] = [
    "false",
    "",
    "none",
    "null",
    "undefined",
    "n/a",
    "excluded",
    "ineligible",
    "unassigned",
    "notassigned",
    "notenrolled",
    "notin",
    "notinexperiment",
    "notintest",
];

fn means_not_in(arm: &str) -> bool {
    let arm = arm.to_lowercase().replace([' ', '-', '_'], "");
    NOT_IN.contains(&arm.as_str())
}

/// The arms of an experiment in a sample, with their lists.
#[derive(Default)]
pub(super) struct SampleArms {
    pub n_lists: BTreeMap<String, usize>,
    /// Arms with their users.
    users: BTreeSet<(String, String)>,
    /// Number of lists whose arm is their user.
    n_users: usize,
    /// Number of lists whose arm is invalid.
    pub n_bad: usize,
}

impl SampleArms {
    /// Adds a list.
    pub fn take(&mut self, arm: String, user: Option<&str>) {
        self.n_users += usize::from(user == Some(arm.as_str()));
        if let Some(user) = user {
            self.users.insert((arm.clone(), user.to_owned()));
        }
        *self.n_lists.entry(arm).or_default() += 1;
    }

    /// Returns true if each arm has a user of its own, as an email address has.
    fn follows_users(&self) -> bool {
        let users: BTreeSet<&String> = self.users.iter().map(|(_, user)| user).collect();
        let n_arms = self.n_lists.len();
        n_arms >= MANY_ARMS && users.len() == n_arms && self.users.len() == n_arms
    }

    /// Returns true if this is not an experiment: a user, a time, JSON text, or an id.
    fn is_other(&self, name: &str, is_key: bool) -> bool {
        let n_lists: usize = self.n_lists.values().sum();
        let n_arms = self.n_lists.len();
        let is_user = self.follows_users() || 2 * self.n_users > n_lists;
        let is_other = |arm: &str| {
            let arm = Value::from(arm);
            is_time(&arm) || is_json_text(&arm)
        };
        let are_ids = n_arms > MAX_ARMS || (n_arms >= FEW && 2 * n_arms > n_lists);
        self.n_lists.is_empty()
            || are_ids
            || is_user
            || is_called_other(name, is_key)
            || self.n_lists.keys().any(|arm| is_other(arm))
    }
}

/// Returns true if all words of a name are those of users and times or, for a key next to experiments, of other facts about an
/// assignment.
fn is_called_other(name: &str, is_key: bool) -> bool {
    let of_key: &[&str] = if is_key { &ASSIGNMENT } else { &[] };
    let is_one = |word: &&String| {
        [&USER[..], &TIME, of_key]
            .iter()
            .any(|words| words.contains(&word.as_str()))
    };
    let words: Vec<String> = words(name).into_iter().filter(|word| word != "id").collect();
    !words.is_empty() && words.iter().filter(is_one).count() == words.len()
}

/// Corrects a way to read the arms by the arms that it reads: leaves out names that are not experiments, and values that mean
/// "not in it". Returns `None` if no experiment remains.
pub(super) fn refined(shape: &ArmsShape, arms: &BTreeMap<String, SampleArms>) -> Option<ArmsShape> {
    // The only experiment has its name from the draft, but its values come from a field.
    let name_of = |experiment: &str| match (&shape.experiment_name, &shape.arm) {
        (Some(_), Some(path)) => path.first().names().last().cloned().unwrap_or_default(),
        _ => experiment.to_owned(),
    };
    let is_key = shape.experiment_name.is_none() && shape.experiment.is_none();
    let (good, bad): (Vec<_>, Vec<_>) = arms
        .iter()
        .partition(|(name, arms)| !arms.is_other(&name_of(name), is_key));
    // A map with the keys "experiment" and "variant" is one experiment, and not two.
    let is_pair = is_key
        && good.iter().any(|(name, _)| is_arm_name(name))
        && arms.keys().any(|name| is_experiment_name(name));
    if is_pair || good.is_empty() || good.len() > MAX_EXPERIMENTS {
        return None;
    }
    let mut refined = shape.clone();
    if !bad.is_empty() {
        refined.only = good.iter().map(|(name, _)| (*name).clone()).collect();
    }
    let arms = good.iter().flat_map(|(_, arms)| arms.n_lists.keys());
    let not_in: BTreeSet<&String> = arms.filter(|arm| means_not_in(arm)).collect();
    refined.not_in = not_in.into_iter().cloned().collect();
    // An invalid arm may be an empty text.
    if good.iter().any(|(_, arms)| arms.n_bad > 0) {
        refined.not_in.insert(0, String::new());
    }
    Some(refined)
}

/// Candidates for `arm_separator`.
const SEPARATORS: [&str; 5] = [":", "=", "/", "|", "."];
/// Candidates for `pair_separator`.
const BETWEEN: [&str; 5] = [";", ",", "|", "&", " "];

/// Drafts a shape for `["ranker:neural","layout:grid"]` or `"ranker:neural;layout:grid"`.
fn texts(column: &SampleColumn, lists: &Members) -> Option<ArmsDraft> {
    if !is_of_arms(column) {
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
        outside: None,
    };
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
    let whole: Vec<&str> = values
        .iter()
        .filter(|value| !is_json_text(value))
        .filter_map(|value| value.as_str())
        .filter(|text| !text.is_empty())
        .collect();
    // One pair in each list, of few experiments: other texts with a colon are names.
    let separator = [":", "="].into_iter().find(|separator| all(&whole, separator));
    if let Some(separator) = separator.filter(|_| hints(&column.called(), &EXPERIMENT)) {
        let experiments = whole.iter().filter_map(|text| text.split_once(separator));
        let experiments: BTreeSet<&str> = experiments.map(|(experiment, _)| experiment.trim()).collect();
        let has_more = |text: &&str| BETWEEN.iter().any(|between| text.contains(between));
        if experiments.len() <= FEW && !whole.iter().any(has_more) {
            let shape = ArmsShape {
                arm_separator: Some(separator.to_owned()),
                ..ArmsShape::default()
            };
            return Some(draft(shape, whole.len()));
        }
    }
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
        let n = column.count(lists, is_label_or_empty);
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
        outside: None,
    })
}

/// Drafts a shape for `"exp_ranker":"neural","exp_layout":"grid"`: several fields of a record with a common prefix.
fn common_prefix(columns: &SampleColumns, lists: &Members) -> Option<ArmsDraft> {
    let all = columns.iter().filter_map(|column| {
        let (name, parents) = column.path.names().split_last()?;
        let end = name.find(['_', '-'])? + 1;
        let (prefix, rest) = name.split_at(end);
        let is_prefix = hints(prefix, &["ab", "abtest", "exp", "experiment"]);
        (parents.is_empty() && is_prefix && !rest.is_empty()).then_some((prefix, rest, column))
    });
    let all: Vec<(&str, &str, &SampleColumn)> = all.collect();
    let (prefix, ..) = all.first()?;
    // In `exp_id`, `exp_arm` and the like, the fields describe one experiment or something else.
    let is_fact = |rest: &str| {
        let words = [&NAME[..], &VALUE, &ARM, &USER, &TIME, &ASSIGNMENT, &FACT];
        words.iter().any(|words| hints(rest, words))
    };
    let is_one = |(other, rest, column): &(&str, &str, &SampleColumn)| {
        let are_arms = column.count(lists, is_label_or_empty) == column.within(lists).count();
        other == prefix && !is_fact(rest) && are_arms && distinct(column, lists) <= MAX_ARMS
    };
    if all.len() < 2 || !all.iter().all(is_one) {
        return None;
    }
    Some(ArmsDraft {
        shape: ArmsShape {
            experiments: None,
            prefix: Some((*prefix).to_owned()),
            ..ArmsShape::default()
        },
        n: lists.len(),
        // Below a field that is named like an arm, above one that is named like an experiment.
        score: 2.4 + share(lists.len(), lists.len()),
        outside: None,
    })
}

/// Finds a flag next to an arm or inside of its experiment, and counts the lists for which it is not set. No setting can read
/// such a flag.
fn outside(columns: &SampleColumns, lists: &Members, shape: &ArmsShape) -> Option<(String, usize)> {
    let flag_of = |fields: &serde_json::Map<String, Value>| -> Option<(String, bool)> {
        // Objects next to an arm of the record are about something else.
        let values = fields.values().filter(|_| shape.experiments.is_some());
        let inner = values.filter_map(Value::as_object).flatten();
        let all = fields.iter().chain(inner);
        let plain = |name: &str| name.to_lowercase().replace(['_', '-'], "");
        let flags = all.map(|(name, value)| (name, plain(name), value));
        let is_flag = |(_, name, _): &(&String, String, &Value)| {
            ENROLLED.contains(&name.as_str()) || EXCLUDED.contains(&name.as_str())
        };
        let (name, plain, value) = flags.into_iter().find(is_flag)?;
        let text = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_lowercase);
        let is_set = !["false", "0", "no", "null", ""].contains(&text.as_str());
        Some((name.clone(), is_set != EXCLUDED.contains(&plain.as_str())))
    };
    let (mut name, mut n_in, mut n_out, mut n_without) = (None, 0, 0, 0);
    let mut take = |fields: &serde_json::Map<String, Value>| match flag_of(fields) {
        Some((flag, is_in)) => {
            name = Some(flag);
            n_in += usize::from(is_in);
            n_out += usize::from(!is_in);
        }
        None => n_without += 1,
    };
    match (&shape.experiments, &shape.arm) {
        (Some(experiments), _) => {
            let column = columns.get(experiments.first())?;
            for value in column.within(lists) {
                let text = value.as_str().and_then(|text| serde_json::from_str(text).ok());
                let elements = match text.as_ref().unwrap_or(value) {
                    Value::Array(elements) => elements.iter().collect(),
                    Value::Object(fields) => fields.values().collect(),
                    _ => Vec::new(),
                };
                elements
                    .into_iter()
                    .filter_map(Value::as_object)
                    .for_each(&mut take);
            }
        }
        (None, Some(arm)) => {
            let (_, parents) = arm.first().names().split_last()?;
            let beside = columns.iter().filter(|column| {
                let inner = column.path.names().split_last();
                inner.is_some_and(|(_, other)| other == parents)
            });
            let beside: Vec<&SampleColumn> = beside.collect();
            for number in lists {
                let fields = beside.iter().filter_map(|column| {
                    Some((column.name().to_owned(), (*column.values.get(number)?).clone()))
                });
                take(&fields.collect());
            }
        }
        (None, None) => {}
    }
    // Some systems set the flag only if it is true.
    let is_for_members = name.as_ref().is_some_and(|name| !hints(name, &["excluded"]));
    let n_out = n_out + if n_in > 0 && is_for_members { n_without } else { 0 };
    name.filter(|_| n_out > 0).map(|name| (name, n_out))
}

/// Returns true for an arm, or for an empty text: it means that the list is not in the experiment.
fn is_label_or_empty(value: &Value) -> bool {
    is_label(value) || value.as_str() == Some("")
}

/// Returns true for a value that may be the name of an experiment.
fn is_name(value: &Value) -> bool {
    is_label(value) && !value.is_boolean()
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
    let is_of_flags = || {
        let mut values = column.within(lists).filter_map(Value::as_object).flatten();
        let is_flag = |value: &Value| {
            let fields = value.as_object();
            fields.is_some_and(|fields| fields.keys().any(|name| OF_FLAG.contains(&name.as_str())))
        };
        hints(column.name(), &FEATURE) && values.all(|(_, value)| is_flag(value))
    };
    if !is_of_arms(column) && !is_of_flags() {
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
    let arm = best(&inner, &[&ARM, &VALUE], is_label);
    if arm.is_none() && !is_of_arms(column) {
        return None;
    }
    let is_arm = |value: &Value| match (value, &arm) {
        (Value::Object(_), Some(arm)) => super::items::at(value, arm).is_some_and(is_label),
        (value, _) => is_label(value),
    };
    // Some names may have values that cannot be arms.
    let of_arms: Vec<&Value> = values
        .iter()
        .map(|(_, value)| *value)
        .filter(|value| is_arm(value))
        .collect();
    let are_texts = of_arms.iter().all(|value| value.is_string());
    (!of_arms.is_empty()).then(|| ArmsDraft {
        shape: ArmsShape {
            experiments: Some(column.path.clone().into()),
            // With a path to the arm, plain values may also be numbers.
            arm: arm
                .clone()
                .or_else(|| (!are_texts).then(|| Path::of(&["arm"])).flatten())
                .map(Paths::from),
            ..ArmsShape::default()
        },
        n,
        score: 4.0 + share(n, lists.len()),
        outside: None,
    })
}

/// Drafts a shape for `{"id":"ranker","variant":"neural","enabled":true}`: an object that describes one experiment.
fn as_one(column: &SampleColumn, lists: &Members) -> Option<ArmsDraft> {
    if !is_of_arms(column) {
        return None;
    }
    let objects: Vec<&serde_json::Map<String, Value>> =
        column.within(lists).filter_map(Value::as_object).collect();
    let names: BTreeSet<&String> = objects.iter().flat_map(|object| object.keys()).collect();
    let all_are = |name: &str, is_one: &dyn Fn(&Value) -> bool| {
        let mut values = objects.iter().filter_map(|object| object.get(name));
        values.all(|value| value.is_null() || is_one(value))
    };
    let are_arms = |name: &&&String| is_arm_name(name) && all_are(name, &is_label_or_empty);
    let arm = (*names.iter().filter(are_arms).min_by_key(|name| arm_rank(name))?).clone();
    let is_name = |name: &&&String| {
        let is_called = hint(name, &NAME) == 2.0 || hints(name, &EXPERIMENT);
        let is_text = |value: &Value| is_label(value) && !value.is_boolean();
        **name != &arm && is_called && !hints(name, &USER) && all_are(name, &is_text)
    };
    let experiment = names.iter().filter(is_name).max_by(|one, other| {
        let rank = |name: &str| hint(name, &NAME).max(hint(name, &EXPERIMENT));
        rank(one).total_cmp(&rank(other)).then_with(|| other.cmp(one))
    });
    let experiment = experiment.map(|name| (*name).clone());
    // Alone, words such as "bucket" may be facts about the experiments beside them.
    if experiment.is_none() && arm_rank(&arm) > 1 {
        return None;
    }
    let inner = |name: &String| {
        let names = column.path.names().iter().chain([name]).map(String::as_str);
        Path::of(&names.collect::<Vec<_>>()).map(Paths::from)
    };
    let n = objects
        .iter()
        .filter(|object| object.get(&arm).is_some_and(is_label))
        .count();
    Some(ArmsDraft {
        shape: ArmsShape {
            experiments: None,
            experiment_name: experiment.is_none().then(|| "main".to_owned()),
            experiment: experiment.as_ref().and_then(inner),
            arm: inner(&arm),
            ..ArmsShape::default()
        },
        n,
        score: 4.0 + share(n, lists.len()),
        outside: None,
    })
}

/// Returns true if a name consists of words for an arm. In `{"ranker_variant":"neural"}` it is the name of an experiment.
fn is_arm_name(name: &str) -> bool {
    let words: Vec<String> = words(name)
        .into_iter()
        .filter(|word| !NAME.contains(&word.as_str()))
        .collect();
    !words.is_empty() && words.iter().all(|word| ARM.contains(&word.as_str()))
}

fn is_experiment_name(name: &str) -> bool {
    hint(name, &EXPERIMENT) == 2.0 || hint(name, &NAME) == 2.0
}

/// Ranks names of arms: `variant` before `bucket`, which may be the hash of a user.
fn arm_rank(name: &str) -> usize {
    const SURE: [&str; 6] = ["arm", "variant", "variation", "treatment", "arms", "variants"];
    match () {
        () if hint(name, &SURE) == 2.0 => 0,
        () if hints(name, &SURE) => 1,
        () if hints(name, &["bucket"]) => 3,
        () => 2,
    }
}

/// Returns the field that occurs in all objects, by the first word list that hints at one.
fn best(columns: &SampleColumns, words: &[&[&str]], is_one: impl Fn(&Value) -> bool) -> Option<Path> {
    let n_all = columns.iter().map(|column| column.values.len()).max()?;
    let of_all = || {
        let all = columns.iter().filter(move |column| column.values.len() == n_all);
        all.filter(|column| column.values.values().all(|value| is_one(value)))
    };
    words.iter().find_map(|words| {
        let hinting = of_all().filter(|column| hint(&column.called(), words) > 0.0);
        let first = hinting.min_by_key(|column| arm_rank(&column.called()));
        first.map(|column| column.path.clone())
    })
}

/// Drafts shapes for `[{"name":"ranker","arm":"neural"}]`, one for each field that may be the arm.
fn array(column: &SampleColumn, lists: &Members) -> Vec<ArmsDraft> {
    if !is_of_arms(column) {
        return Vec::new();
    }
    let n = column.count(lists, |value| {
        value.as_array().is_some_and(|array| !array.is_empty())
    });
    let inner = elements(column, lists);
    let Some((inner, experiment)) = inner.and_then(|inner| {
        let experiment = best(&inner, &[&EXPERIMENT, &NAME], is_name)?;
        Some((inner, experiment))
    }) else {
        return Vec::new();
    };
    let are_labels = |column: &&SampleColumn| {
        column.path != experiment && column.values.values().all(|value| is_label_or_empty(value))
    };
    // The arm is preferably a field named like one, then a field inside an object named like one, then a field named like a
    // value.
    let rank = |column: &SampleColumn| match () {
        () if hints(&column.called(), &ARM) => Some(arm_rank(&column.called())),
        () if column.path.names().iter().any(|name| hints(name, &ARM)) => Some(4),
        () if hints(&column.called(), &VALUE) => Some(5),
        () => None,
    };
    let arms = inner
        .iter()
        .filter(are_labels)
        .filter_map(|column| Some((rank(column)?, column)));
    arms.map(|(rank, arm)| ArmsDraft {
        shape: ArmsShape {
            experiments: Some(column.path.clone().into()),
            experiment: Some(experiment.clone().into()),
            arm: Some(arm.path.clone().into()),
            ..ArmsShape::default()
        },
        n,
        score: 4.0 + share(n, lists.len()) - 0.1 * rank as f64,
        outside: None,
    })
    .collect()
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
        outside: None,
    })
}

/// Drafts a shape for `"test":"ranker","variant":"neural"`, or an arm alone.
fn in_record(columns: &SampleColumns, lists: &Members) -> Option<ArmsDraft> {
    // `exp_version` or `ab_group` is no name of an experiment.
    let is_fact = |column: &SampleColumn| {
        let words = words(&column.called()).into_iter();
        let mut rest = words.filter(|word| !EXPERIMENT.contains(&word.as_str()));
        rest.any(|word| {
            let is_among = |words: &[&str]| words.contains(&word.as_str());
            is_among(&ARM) || (word != "key" && is_among(&ASSIGNMENT)) || (word != "id" && is_among(&FACT))
        })
    };
    let plain = |words: &[&str], beside: Option<&SampleColumn>| {
        let fields = columns.iter().filter(|column| hints(&column.called(), words));
        let fields = fields.filter(|column| {
            let n = column.count(lists, is_label_or_empty);
            let is_other = |value: &Value| is_time(value) || is_json_text(value);
            let is_user = hints(&column.called(), &USER) && words != &ARM[..];
            n > 0
                && n == column.within(lists).count()
                && column.count(lists, is_other) == 0
                && distinct(column, lists) <= MAX_ARMS
                && !is_user
                && !(words == &CHOOSER[..] && column.path.names().iter().any(|name| hints(name, &FEATURE)))
                && beside.is_none_or(|arm| !is_same(column, arm, lists))
                && (words != &EXPERIMENT[..] || !is_fact(column))
                && !is_called_other(&column.called(), false)
        });
        // The field in most lists wins, then the one that is surely named like an arm, then the one with the shorter path.
        let parent = |column: &SampleColumn| {
            column
                .path
                .names()
                .split_last()
                .map(|(_, parents)| parents.to_vec())
        };
        fields.max_by_key(|column| {
            let n = column.within(lists).count();
            (
                beside.is_some_and(|arm| parent(arm) == parent(column)),
                n,
                // `ab_group` before `age_group`.
                beside.is_none() && hints(&column.called(), &EXPERIMENT),
                Reverse(arm_rank(&column.called())),
                Reverse(column.path.names().len()),
            )
        })
    };
    let are_names = |column: &&SampleColumn| column.count(lists, Value::is_boolean) == 0;
    // A field with one value in many lists does not distinguish arms.
    let differs = |column: &&SampleColumn| lists.len() < MANY || distinct(column, lists) > 1;
    let arm = plain(&ARM, None);
    let experiment = plain(&EXPERIMENT, arm);
    let (experiment, arm, score) = match (experiment, arm) {
        (Some(experiment), Some(arm)) if experiment.path != arm.path && are_names(&experiment) => {
            (Some(experiment), arm, 3.5)
        }
        (_, Some(arm)) => (None, arm, 2.5),
        (experiment, None) => match experiment.filter(differs) {
            Some(experiment) => (None, experiment, 2.0),
            None => (None, plain(&CHOOSER, None).filter(differs)?, 1.0),
        },
    };
    let n = arm.within(lists).count();
    let name = match hints(arm.name(), &ARM) {
        true => experiment_of(arm.name()).unwrap_or_else(|| "main".to_owned()),
        false => arm.name().to_owned(),
    };
    Some(ArmsDraft {
        shape: ArmsShape {
            experiments: None,
            experiment: experiment.map(|column| column.path.clone().into()),
            arm: Some(arm.path.clone().into()),
            experiment_name: experiment.is_none().then_some(name),
            ..ArmsShape::default()
        },
        n,
        score: score + share(n, lists.len()),
        outside: None,
    })
}

/// Returns the experiment in a name such as `ranker_variant`.
fn experiment_of(name: &str) -> Option<String> {
    let words = words(name);
    let (last, first) = words.split_last()?;
    let is_named = hints(last, &ARM)
        && ![&EXPERIMENT[..], &USER, &ARM, &NAME]
            .iter()
            .any(|words| hints(&first.join(" "), words));
    (is_named && !first.is_empty()).then(|| first.join("_"))
}

/// Returns the values of a field that most lists have and that may name an arm, with the number of their lists.
pub(super) fn few_values(column: &SampleColumn, lists: &Members) -> Option<BTreeMap<String, usize>> {
    let is_other = |value: &Value| !is_label(value) || is_time(value) || is_json_text(value);
    let n_lists = column.within(lists).count();
    if 2 * n_lists < lists.len()
        || column.count(lists, is_other) > 0
        || is_called_other(&column.called(), false)
    {
        return None;
    }
    let mut values = BTreeMap::new();
    for value in column.within(lists) {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        *values.entry(text).or_default() += 1;
    }
    ((2..MANY_ARMS).contains(&values.len()) && 2 * values.len() <= n_lists).then_some(values)
}

/// Returns true if two fields have the same value in most lists.
fn is_same(one: &SampleColumn, other: &SampleColumn, lists: &Members) -> bool {
    let both = lists
        .iter()
        .filter_map(|number| one.values.get(number).zip(other.values.get(number)));
    let (same, different): (Vec<_>, Vec<_>) = both.partition(|(one, other)| one == other);
    same.len() > different.len()
}

fn distinct(column: &SampleColumn, lists: &Members) -> usize {
    let values: BTreeSet<String> = column.within(lists).map(Value::to_string).collect();
    values.len()
}
