//! Request ids of several parts, `{ all = ["request_id", "shelf"] }`.
//!
//! All parts together are the id of a list. A click may leave out any part but the first: then it has a partial id, and each list
//! names the partial ids that lead to it.

use super::super::hash::Hashes;
use super::super::shape::{Path, Paths, Shape};
use super::super::value::{Text, Value};
use super::tree::{PathResult, Tree, find_in_both};
use super::{Field, Mapped, MappedFields, Problem, Sink};
use crate::engine::event::{Kind, Reason};

/// Most parts behind the first one.
const MAX: usize = Shape::MAX_ID_PARTS - 1;

/// Locates the parts of an id behind the first one.
#[derive(Debug, Clone)]
pub(super) struct FurtherIds {
    n: usize,
    /// Within an event, and within the record around it.
    trees: [Tree<MAX>; 2],
}

/// The id that an event names, if ids have several parts.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct CompositeId {
    pub hash: u128,
    /// False for a click that lacks parts which lists have.
    pub names_all: bool,
}

impl FurtherIds {
    /// `None` if there are no further parts.
    pub fn new(paths: &[Path]) -> Option<FurtherIds> {
        let tree = |is_outer| {
            let paths: [Option<Paths>; MAX] = std::array::from_fn(|n| {
                let path = paths.get(n).filter(|path| path.is_outer() == is_outer)?;
                Some(Paths::from(path.clone()))
            });
            Tree::new(paths.each_ref().map(Option::as_ref))
        };
        (!paths.is_empty()).then(|| FurtherIds {
            n: paths.len(),
            trees: [tree(false), tree(true)],
        })
    }

    /// The parts as they are in the event; `None` for those that it lacks.
    fn find<'a>(&self, fields: &MappedFields<'a>) -> Result<Vec<PathResult<'a>>, Reason> {
        let found = find_in_both(&self.trees, fields.objects)?.into_iter();
        Ok(found.take(self.n).collect())
    }

    /// The parts; `None` for those that a click lacks.
    fn read<'a>(&self, fields: &MappedFields<'a>, kind: Kind) -> Result<Vec<Option<Text<'a>>>, Reason> {
        let parts = self.find(fields)?.into_iter();
        parts.map(|found| further_id(found, kind)).collect()
    }
}

impl Mapped {
    /// Reads the whole id of an event, if ids have several parts.
    // Inline up to this check: most shapes have ids of one part, and should not pay for others.
    #[inline(always)]
    pub(super) fn composite_id(
        &self,
        fields: &MappedFields,
        kind: Kind,
        sink: &mut Sink,
    ) -> Result<(), Problem> {
        match self.shape.served.further_ids.is_empty() {
            true => Ok(()),
            false => self.set_composite_id(fields, kind, sink),
        }
    }

    #[inline(never)]
    fn set_composite_id(&self, fields: &MappedFields, kind: Kind, sink: &mut Sink) -> Result<(), Problem> {
        let (first, further) = match kind {
            Kind::Served => (Field::ServedRequest, Field::ServedFurther),
            Kind::Click => (Field::ClickRequest, Field::ClickFurther),
        };
        let id = fields.required(first).and_then(Value::id);
        let id = id.map_err(Problem::of(first))?;
        let parts = match &self.further_ids[kind as usize] {
            None => Vec::new(),
            Some(paths) => paths.read(fields, kind).map_err(Problem::of(further))?,
        };
        // Clicks may have paths to fewer parts than lists. The other parts count as absent.
        let n_of_list = self.shape.served.further_ids.len();
        let parts: Vec<Option<&str>> = (0..n_of_list).map(|n| parts.get(n)?.as_deref()).collect();
        let hash = hash_of(sink.hash, &id, parts.iter().copied());
        if kind == Kind::Served {
            // Bit n of a choice means that part n is left out.
            let choice = |left_out: usize| {
                let left = (0..)
                    .zip(&parts)
                    .map(|(n, part)| part.filter(|_| left_out >> n & 1 == 0));
                hash_of(sink.hash, &id, left)
            };
            let partial = (1..1 << n_of_list).map(choice).collect();
            sink.batch.partial_ids.insert(hash, partial);
        }
        if let Some(texts) = &mut sink.texts {
            texts.further_ids = parts.iter().map(|part| part.map(str::to_owned)).collect();
        }
        let names_all = parts.iter().all(Option::is_some);
        sink.composite_id = Some(CompositeId { hash, names_all });
        Ok(())
    }

    /// The path to the first further part that cannot be read.
    pub(super) fn faulty_further_id(&self, kind: Kind, fields: &MappedFields) -> Option<&Path> {
        let further = self.further_ids[kind as usize].as_ref()?;
        let found = further.find(fields).ok()?;
        let faulty = found
            .into_iter()
            .position(|found| further_id(found, kind).is_err())?;
        match kind {
            Kind::Served => self.shape.served.further_ids.get(faulty),
            Kind::Click => self.shape.click.further_ids.get(faulty),
        }
    }
}

/// Reads a further part. A list needs every part. In a click, an absent part or `null` is skipped.
fn further_id(found: PathResult<'_>, kind: Kind) -> Result<Option<Text<'_>>, Reason> {
    match found {
        PathResult::Astray => Err(Reason::WrongType),
        PathResult::Value(value) if !value.is_null() => value.only_text().id().map(Some),
        // `null` counts as absent.
        _ if kind == Kind::Click => Ok(None),
        _ => Err(Reason::MissingField),
    }
}

fn hash_of<'a>(hash: Hashes, first: &'a str, further: impl Iterator<Item = Option<&'a str>>) -> u128 {
    let parts = std::iter::once(Some(first)).chain(further);
    hash.composite(parts.map(|part| part.map(str::as_bytes)))
}
