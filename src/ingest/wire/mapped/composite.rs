//! Request ids of several parts, `{ all = ["request_id", "shelf"] }`.
//!
//! All parts together are the id of a list. A click may leave out any part but the first: then it has a partial id, and each list
//! names the partial ids that lead to it.

use std::borrow::Cow;

use super::super::hash::Hashes;
use super::super::json;
use super::super::shape::{Path, Paths, Shape};
use super::tree::{Found, Tree};
use super::{Field, Fields, Mapped, Problem, Sink, only_text};
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

/// The id that an event names.
#[derive(Debug)]
pub(in super::super) struct RequestId<'a> {
    pub first: Cow<'a, str>,
    /// Empty if the id has one part.
    pub further: Vec<Option<Cow<'a, str>>>,
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
    fn find<'a>(&self, fields: &Fields<'a>) -> Result<Vec<Found<'a>>, Reason> {
        let [inner, outer] = &self.trees;
        let [event, record] = fields.objects;
        let found = inner.find(event)?.into_iter().zip(outer.find(record)?);
        let found = found.map(|(inner, outer)| match inner {
            Found::Nothing => outer,
            inner => inner,
        });
        Ok(found.take(self.n).collect())
    }
}

impl Mapped {
    /// The id of a list, or the one that a click names.
    pub(super) fn request_id<'a>(&self, fields: &Fields<'a>, kind: Kind) -> Result<RequestId<'a>, Problem> {
        let (first, further) = match kind {
            Kind::Served => (Field::ServedRequest, Field::ServedFurther),
            Kind::Click => (Field::ClickRequest, Field::ClickFurther),
        };
        let id = fields.required(first).and_then(json::id);
        let id = id.map_err(Problem::of(first))?;
        Ok(RequestId {
            first: id,
            further: self
                .read_further_ids(fields, kind)
                .map_err(Problem::of(further))?,
        })
    }

    fn read_further_ids<'a>(
        &self,
        fields: &Fields<'a>,
        kind: Kind,
    ) -> Result<Vec<Option<Cow<'a, str>>>, Reason> {
        let Some(further) = &self.further_ids[kind as usize] else {
            return Ok(Vec::new());
        };
        let parts = further.find(fields)?.into_iter();
        parts.map(|found| further_id(found, kind)).collect()
    }

    /// The path to the first further part that cannot be read.
    pub(super) fn faulty_further_id(&self, kind: Kind, fields: &Fields) -> Option<&Path> {
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

    /// The hash of a list's id. Its partial ids go to the batch.
    pub(super) fn id_of_list(&self, id: &RequestId, sink: &mut Sink) -> u128 {
        let first = id.first.as_bytes();
        if id.further.is_empty() {
            return sink.hash.request(first);
        }
        // Bit n of a choice means that part n is left out.
        let choice = |left_out: usize| {
            let further = (0..).zip(&id.further);
            let further = further.map(|(n, part)| part.as_ref().filter(|_| left_out >> n & 1 == 0));
            hash_of(
                sink.hash,
                first,
                further.map(|part| part.map(|part| part.as_bytes())),
            )
        };
        let whole = choice(0);
        let partial = (1..1 << id.further.len()).map(choice).collect();
        sink.batch.partial_ids.insert(whole, partial);
        whole
    }

    /// The hash of the id that a click names, and whether it names all parts that lists have.
    pub(super) fn id_of_click(&self, id: &RequestId, hash: Hashes) -> (u128, bool) {
        let n_of_list = self.shape.served.further_ids.len();
        let first = id.first.as_bytes();
        if n_of_list == 0 {
            return (hash.request(first), true);
        }
        let part = |n: usize| id.further.get(n)?.as_deref().map(str::as_bytes);
        let names_all = (0..n_of_list).all(|n| part(n).is_some());
        (hash_of(hash, first, (0..n_of_list).map(part)), names_all)
    }

    /// The further parts, as many as lists have.
    pub(super) fn further_ids_as_text(&self, id: &RequestId) -> Vec<Option<String>> {
        let n_of_list = self.shape.served.further_ids.len();
        let text = |n: usize| id.further.get(n)?.as_deref().map(str::to_owned);
        (0..n_of_list).map(text).collect()
    }
}

/// A list needs every part. What a click leaves out, or sends as `null`, is no part.
fn further_id(found: Found<'_>, kind: Kind) -> Result<Option<Cow<'_, str>>, Reason> {
    match (found, kind) {
        (Found::Nothing | Found::Value("null"), Kind::Click) => Ok(None),
        // `null` is as good as nothing there.
        (Found::Nothing | Found::Value("null"), Kind::Served) => Err(Reason::MissingField),
        (Found::Value(raw), _) => json::id(only_text(raw)).map(Some),
        (Found::Astray, _) => Err(Reason::WrongType),
    }
}

fn hash_of<'a>(hash: Hashes, first: &'a [u8], further: impl Iterator<Item = Option<&'a [u8]>>) -> u128 {
    hash.composite(std::iter::once(Some(first)).chain(further))
}
