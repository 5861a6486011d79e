//! Finds the fields of a record by their paths, in one go through the objects that paths lead through.
//!
//! Each path has a slot of its own: first paths have the slots of their fields, alternatives those behind them. Once all slots
//! are filled, the first alternative that is there takes the slot of its field.
//!
//! ```text
//! ctx.id         ctx ─┬─ id     → field 0
//! ctx.exp.name        └─ exp ─── name → field 1
//! ```

use std::ops::Range;

use super::super::json;
use super::super::name::name_hash;
use super::super::no_user::NoUser;
use super::super::scan::Scanner;
use super::super::shape::{Path, Paths};
use super::super::value::Value;
use crate::engine::event::Reason;

/// Paths to `N` fields.
#[derive(Debug, Clone)]
pub(super) struct Tree<const N: usize> {
    below_record: Vec<Node>,
    /// Fields with more than one path. Empty for most shapes, which are then read without any of this.
    choices: Vec<PathChoice>,
}

/// A field with more than one path.
#[derive(Debug, Clone)]
struct PathChoice {
    /// The field, and the slot of its first path.
    field: usize,
    /// Slots of its other paths.
    others: Range<usize>,
    /// Values that count as absent.
    absent: Option<NoUser>,
}

#[derive(Debug, Clone)]
pub(super) struct Node {
    pub name: String,
    /// Hash of the name, for fields of a schema.
    pub hash: u64,
    /// The bits of the slots whose paths end here.
    pub here: u64,
    /// Fields whose paths end further below.
    pub below: u64,
    pub nodes: Vec<Node>,
}

/// Most paths of one tree: each is a bit.
pub(super) const MAX_PATHS: usize = u64::BITS as usize;

/// Result of following a path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum PathResult<'a> {
    Nothing,
    Value(Value<'a>),
    /// The path passes through a value that is neither an object nor an array of one.
    Astray,
}

impl<const N: usize> Tree<N> {
    /// Builds the tree of these paths. A field without a path is `None`.
    ///
    /// # Panics
    /// If there are more than [`MAX_PATHS`] paths.
    pub fn new(paths: [Option<&Paths>; N]) -> Self {
        let mut tree = Tree {
            below_record: Vec::new(),
            choices: Vec::new(),
        };
        let mut n_slots = N;
        for (field, paths) in paths.into_iter().enumerate() {
            let Some(paths) = paths else {
                continue;
            };
            tree.plant(paths.first(), field);
            let start = n_slots;
            for path in paths.others() {
                tree.plant(path, n_slots);
                n_slots += 1;
            }
            if paths.has_alternatives() {
                tree.choices.push(PathChoice {
                    field,
                    others: start..n_slots,
                    absent: None,
                });
            }
        }
        tree
    }

    /// Makes a placeholder user id in `field` give way to a later path.
    pub fn skipping(mut self, field: usize, no_user: &NoUser) -> Self {
        let mut choices = self.choices.iter_mut();
        if let Some(choice) = choices.find(|choice| choice.field == field) {
            choice.absent = Some(no_user.clone());
        }
        self
    }

    /// Returns the names in a record, if each field has one path.
    pub fn nodes(&self) -> Option<&[Node]> {
        self.choices.is_empty().then_some(&self.below_record)
    }

    fn plant(&mut self, path: &Path, slot: usize) {
        assert!(slot < MAX_PATHS, "a shape has at most {MAX_PATHS} paths");
        plant(&mut self.below_record, path.names(), 1 << slot);
    }

    /// The fields of an object. JSON must be valid, and nested no deeper than a record may be.
    ///
    /// # Errors
    /// [`Reason::NotJson`] if an object on a path repeats a key of that path, or has a key that is not valid UTF-8.
    pub fn find<'a>(&self, object: Value<'a>) -> Result<[PathResult<'a>; N], Reason> {
        if self.choices.is_empty() {
            return self.walk(object);
        }
        self.walk(object).map(|slots| self.choose(&slots))
    }

    fn walk<'a, const SLOTS: usize>(&self, object: Value<'a>) -> Result<[PathResult<'a>; SLOTS], Reason> {
        let mut found = [PathResult::Nothing; SLOTS];
        walk(&self.below_record, object, &mut found)?;
        Ok(found)
    }

    /// Finds the values in any text, in one pass with the syntax check. `None` if it cannot tell whether the text is an object
    /// without escapes.
    pub fn find_plain<'a>(&self, text: &'a str) -> Option<Result<[PathResult<'a>; N], Reason>> {
        if self.choices.is_empty() {
            return self.scan(text);
        }
        let slots = self.scan(text)?;
        Some(slots.map(|slots| self.choose(&slots)))
    }

    fn scan<'a, const SLOTS: usize>(&self, text: &'a str) -> Option<Result<[PathResult<'a>; SLOTS], Reason>> {
        let mut found = [PathResult::Nothing; SLOTS];
        let mut seen = 0;
        let mut read = Ok(());
        Scanner::entries(text.as_bytes(), |key, place| {
            // Continue scanning after an error: if the text turns out not to be plain, the parser decides instead.
            if read.is_ok() {
                read = take_named(
                    &self.below_record,
                    key,
                    Value::Json(text.get(place)?),
                    &mut seen,
                    &mut found,
                );
            }
            Some(())
        })?;
        Some(read.map(|()| found))
    }

    /// The fields, each from its first path that is there. If none is there, the first path that has anything decides, so that
    /// its record is read as with that path alone.
    fn choose<'a>(&self, slots: &[PathResult<'a>; MAX_PATHS]) -> [PathResult<'a>; N] {
        let mut found = std::array::from_fn(|field| slots[field]);
        for choice in &self.choices {
            let others = &slots[choice.others.clone()];
            let candidates = || std::iter::once(found[choice.field]).chain(others.iter().copied());
            let there = candidates().find(|found| found.is_there(choice.absent.as_ref()));
            let something = || candidates().find(|found| *found != PathResult::Nothing);
            found[choice.field] = there.or_else(something).unwrap_or(PathResult::Nothing);
        }
        found
    }
}

/// Finds fields by trees of paths within an event and within the record around it. The event comes first.
pub(super) fn find_in_both<'a, const N: usize>(
    [inner, outer]: &[Tree<N>; 2],
    [event, record]: [Value<'a>; 2],
) -> Result<[PathResult<'a>; N], Reason> {
    let mut found = inner.find(event)?;
    for (found, outer) in found.iter_mut().zip(outer.find(record)?) {
        if *found == PathResult::Nothing {
            *found = outer;
        }
    }
    Ok(found)
}

impl PathResult<'_> {
    /// Returns true for a value other than `null`, and other than an id that means no user.
    pub fn is_there(self, no_user: Option<&NoUser>) -> bool {
        let PathResult::Value(value) = self else {
            return false;
        };
        let is_no_user = |no_user: &NoUser| match value {
            Value::Json(raw) => no_user.contains(raw.trim_matches('"').as_bytes()),
            value => value
                .text_or_integer()
                .is_ok_and(|id| no_user.contains(id.as_bytes())),
        };
        !value.is_null() && !no_user.is_some_and(is_no_user)
    }
}

fn plant(nodes: &mut Vec<Node>, names: &[String], slot: u64) {
    let Some((name, rest)) = names.split_first() else {
        return;
    };
    let place = nodes
        .iter()
        .position(|node| node.name == *name)
        .unwrap_or_else(|| {
            nodes.push(Node {
                name: name.clone(),
                hash: name_hash(name),
                here: 0,
                below: 0,
                nodes: Vec::new(),
            });
            nodes.len() - 1
        });
    let node = &mut nodes[place];
    if rest.is_empty() {
        node.here |= slot;
    } else {
        node.below |= slot;
        plant(&mut node.nodes, rest, slot);
    }
}

fn walk<'a>(nodes: &[Node], object: Value<'a>, found: &mut [PathResult<'a>]) -> Result<(), Reason> {
    match object {
        Value::Json(raw) => {
            let mut seen = 0;
            for (key, value) in json::entries(raw)? {
                take_named(
                    nodes,
                    json::text(key)?.as_bytes(),
                    Value::Json(value),
                    &mut seen,
                    found,
                )?;
            }
            Ok(())
        }
        Value::Object(object) => object.each(
            |name| nodes.iter().find(|node| name.is(node.hash, &node.name)),
            |node, value| take(node, value, found),
        ),
        _ => Err(Reason::WrongType),
    }
}

/// Takes the value of a key of JSON; `seen` has the bits of the nodes with earlier keys.
fn take_named<'a>(
    nodes: &[Node],
    key: &[u8],
    value: Value<'a>,
    seen: &mut u64,
    found: &mut [PathResult<'a>],
) -> Result<(), Reason> {
    let Some(place) = nodes.iter().position(|node| node.name.as_bytes() == key) else {
        return Ok(());
    };
    // Which of two equal keys is meant is unknown.
    if *seen & 1 << place != 0 {
        return Err(Reason::NotJson);
    }
    *seen |= 1 << place;
    take(&nodes[place], value, found)
}

fn take<'a>(node: &Node, value: Value<'a>, found: &mut [PathResult<'a>]) -> Result<(), Reason> {
    set(node.here, PathResult::Value(value), found);
    match node.below {
        0 => Ok(()),
        _ => enter(node, value, found),
    }
}

/// Descends into a value that paths lead through: an object, or an array with nothing but one object.
fn enter<'a>(node: &Node, mut value: Value<'a>, found: &mut [PathResult<'a>]) -> Result<(), Reason> {
    while let Ok(mut elements) = value.elements() {
        match (elements.next(), elements.next()) {
            (None, _) => return Ok(()),
            (Some(only), None) => value = only,
            _ => break,
        }
    }
    match value {
        value if value.is_object() => return walk(&node.nodes, value, found),
        value if value.is_null() => {} // As if it were not there.
        Value::Malformed => return Err(Reason::Malformed),
        _ => set(node.below, PathResult::Astray, found),
    }
    Ok(())
}

fn set<'a>(mut slots: u64, what: PathResult<'a>, found: &mut [PathResult<'a>]) {
    while slots != 0 {
        found[slots.trailing_zeros() as usize] = what;
        slots &= slots - 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check<const N: usize>(paths: [&str; N], json: &str, expected: Result<[PathResult; N], Reason>) {
        let paths = paths.map(|path| Paths::parse(path).expect(path));
        let tree = Tree::new(paths.each_ref().map(Some));
        assert_eq!(tree.find(super::Value::Json(json)), expected, "{json}");
    }

    use PathResult::{Astray, Nothing};

    #[allow(non_snake_case)]
    fn Value(raw: &str) -> PathResult<'_> {
        PathResult::Value(super::Value::Json(raw))
    }

    #[test]
    fn fields_are_found_at_any_position() {
        let json = r#"{"x":{"id":0},"ctx":{"exp":{"name":"e","n":[1]},"id":7},"ts":5}"#;
        check(
            ["ctx.id", "ctx.exp.name", "ts", "ctx.exp", "id"],
            json,
            Ok([
                Value("7"),
                Value("\"e\""),
                Value("5"),
                Value(r#"{"name":"e","n":[1]}"#),
                Nothing,
            ]),
        );
        check(["a", "a"], r#"{ "a" : [ ] }"#, Ok([Value("[ ]"), Value("[ ]")]));
        check(
            ["\"a.b\"", "a.b"],
            r#"{"a.b":1,"a":{"b":2}}"#,
            Ok([Value("1"), Value("2")]),
        );
        check(["é"], r#"{"\u00e9":1}"#, Ok([Value("1")]));
    }

    #[test]
    fn a_path_passes_through_an_array_of_one() {
        for json in [r#"{"a":[{"b":1}]}"#, r#"{"a":[[{"b":1}]]}"#] {
            check(["a.b"], json, Ok([Value("1")]));
        }
        check(["a.b"], r#"{"a":[]}"#, Ok([Nothing]));
        check(
            ["a.b", "c"],
            r#"{"a":[{"b":1},{"b":2}],"c":[1,2]}"#,
            Ok([Astray, Value("[1,2]")]),
        );
    }

    #[test]
    fn null_on_the_path_is_absent_and_other_scalars_are_errors() {
        check(["a.b", "a"], r#"{"a":null}"#, Ok([Nothing, Value("null")]));
        for value in ["1", "\"b\"", "true", "[1]", "[null,null]"] {
            check(["a.b"], &format!("{{\"a\":{value}}}"), Ok([Astray]));
        }
    }

    #[test]
    fn duplicate_keys_are_errors_only_in_objects_on_the_path() {
        for twice in [
            r#"{"a":{"b":1},"a":{}}"#,
            r#"{"a":{"b":1,"\u0062":1}}"#,
            r#"{"a":[{"b":1,"b":1}]}"#,
            r#"{"\ud83d":1}"#,
            r#"{"a":{"\ud83d":1}}"#,
        ] {
            check(["a.b"], twice, Err(Reason::NotJson));
        }
        check(["a.b"], r#"{"x":1,"x":{"b":1,"b":1},"b":1,"b":2}"#, Ok([Nothing]));
    }
}
