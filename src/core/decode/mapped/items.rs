//! The items of a list of any shape, in rank order.
//!
//! ```text
//! ["i5","i9"]                                ids
//! [{"sku":"i9","at":2},{"sku":"i5","at":1}]  item_id, position
//! ["i5",null,{"ad":7},"i9"]                  skip_others
//! [["i5","i9"],{"tiles":["i2"]}]             rows, row_items
//! ```

use std::ops::Range;

use super::super::value::{Text, Value};
use super::super::{note, range};
use super::tree::{PathResult, Tree};
use super::{Mapped, Sink};
use crate::decode::shape::ServedShape;
use crate::engine::event::Reason;

/// Paths within an item or a row.
#[derive(Debug, Clone)]
pub(super) struct InItems {
    /// Within an item that is an object: its id, its position, and whether it was clicked.
    item: Option<Tree<3>>,
    has_position: bool,
    says_clicked: bool,
    skips_others: bool,
    has_rows: bool,
    /// Within a row that is an object: its items.
    row: Option<Tree<1>>,
}

/// Reason why an element is not an item, with the part of it that shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ItemFault {
    pub reason: Reason,
    pub part: ItemPart,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ItemPart {
    Element,
    Id,
    Position,
    Clicked,
    /// The items of a row.
    Row,
}

/// An element that makes its list invalid.
pub(super) struct FaultyElement<'a> {
    /// Places, from 1; the row's place comes first.
    pub places: Vec<usize>,
    pub element: Value<'a>,
    pub part: ItemPart,
}

struct Placed<'a> {
    id: Text<'a>,
    /// Position within the row.
    position: i64,
    is_clicked: bool,
}

/// Kind of an element of the array.
enum Element<'a> {
    Row(Value<'a>),
    Item(Placed<'a>),
    /// An element to be skipped.
    Other,
    Faulty(ItemFault),
}

impl InItems {
    pub fn new(shape: &ServedShape) -> Self {
        let paths = [&shape.item_id, &shape.position, &shape.clicked].map(Option::as_ref);
        InItems {
            item: paths.iter().any(Option::is_some).then(|| Tree::new(paths)),
            has_position: shape.position.is_some(),
            says_clicked: shape.clicked.is_some(),
            skips_others: shape.skip_others,
            has_rows: shape.rows,
            row: shape.row_items.as_ref().map(|path| Tree::new([Some(path)])),
        }
    }

    /// Returns the paths within an item that is an object.
    pub fn item(&self) -> Option<&Tree<3>> {
        self.item.as_ref()
    }

    fn element<'a>(&self, element: Value<'a>, may_be_row: bool) -> Element<'a> {
        if may_be_row && self.has_rows {
            match self.row_items(element) {
                Ok(Some(items)) => return Element::Row(items),
                Ok(None) => {}
                Err(reason) => {
                    let part = ItemPart::Row;
                    return Element::Faulty(ItemFault { reason, part });
                }
            }
        }
        match self.read_item(element) {
            Ok(item) => Element::Item(item),
            Err(fault) if self.skips_others && fault.is_of_another_kind() => Element::Other,
            Err(fault) => Element::Faulty(fault),
        }
    }

    /// Returns the array of a row; `None` if the element is not a row.
    fn row_items<'a>(&self, element: Value<'a>) -> Result<Option<Value<'a>>, Reason> {
        if element.is_array() {
            return Ok(Some(element));
        }
        let Some(tree) = self.row.as_ref().filter(|_| element.is_object()) else {
            return Ok(None);
        };
        match tree.find(element)? {
            [PathResult::Value(items)] if items.is_array() => Ok(Some(items)),
            [PathResult::Value(_)] => Err(Reason::WrongType),
            _ => Ok(None),
        }
    }

    fn read_item<'a>(&self, element: Value<'a>) -> Result<Placed<'a>, ItemFault> {
        let fault = |part| move |reason| ItemFault { reason, part };
        let Some(tree) = self.item.as_ref().filter(|_| element.is_object()) else {
            let id = element.id().map_err(fault(ItemPart::Element))?;
            return match self.has_position {
                true => Err(fault(ItemPart::Position)(Reason::MissingField)),
                false => Ok(Placed {
                    id,
                    position: 0,
                    is_clicked: false,
                }),
            };
        };
        let [id, position, clicked] = tree.find(element).map_err(fault(ItemPart::Element))?;
        let id = id.required().and_then(Value::id);
        let id = id.map_err(fault(ItemPart::Id))?;
        let position = match self.has_position {
            true => position
                .required()
                .and_then(Value::integer)
                .map_err(fault(ItemPart::Position))?,
            false => 0,
        };
        let is_clicked = self.says_clicked && is_true(clicked).map_err(fault(ItemPart::Clicked))?;
        Ok(Placed {
            id,
            position,
            is_clicked,
        })
    }
}

impl ItemFault {
    /// Neither an id nor an object with one: not an item that is written wrongly.
    fn is_of_another_kind(self) -> bool {
        !matches!(self.part, ItemPart::Position | ItemPart::Clicked)
            && matches!(self.reason, Reason::MissingField | Reason::WrongType)
    }
}

/// Reads a flag. An absent one is false.
pub(super) fn is_true(found: PathResult) -> Result<bool, Reason> {
    match found {
        PathResult::Nothing => Ok(false),
        found => found.required()?.is_true(),
    }
}

impl Mapped {
    /// Reads the items of a list. Returns their range and the number of skipped elements. A list that is too long is refused as
    /// such, whatever its elements are.
    pub(super) fn items(&self, array: Value, sink: &mut Sink) -> Result<(Range<u32>, u64), Reason> {
        let start = sink.batch.items.len();
        let InItems {
            has_position,
            says_clicked,
            ..
        } = self.in_items;
        let may_be_plain = sink.texts.is_none() && !has_position && !says_clicked;
        if may_be_plain && sink.plain_items(array).is_some() {
            return Ok((range(start, sink.batch.items.len()), 0));
        }
        // The fast path may have pushed items before it gave up.
        sink.batch.items.truncate(start);
        let mut list = NewItems {
            rules: &self.in_items,
            sink,
            n: 0,
            n_skipped: 0,
            row: 0,
            places: Vec::new(),
            problem: None,
        };
        for element in array.elements()? {
            list.take(element, true);
        }
        if list.n > list.sink.max_items {
            return Err(Reason::TooManyItems);
        }
        if let Some(problem) = list.problem {
            return Err(problem);
        }
        list.rank(start);
        Ok((range(start, list.sink.batch.items.len()), list.n_skipped))
    }

    /// The first element that makes its list invalid for this reason.
    pub(super) fn faulty_element<'a>(&self, array: Value<'a>, reason: Reason) -> Option<FaultyElement<'a>> {
        let within = |array: Value<'a>, may_be_row| {
            array
                .elements()
                .into_iter()
                .flatten()
                .zip(1..)
                .map(move |(element, place)| (element, place, self.in_items.element(element, may_be_row)))
        };
        let faulty = |element, places, found: &Element| match found {
            Element::Faulty(fault) if fault.reason == reason => Some(FaultyElement {
                places,
                element,
                part: fault.part,
            }),
            _ => None,
        };
        within(array, true).find_map(|(element, place, found)| match found {
            Element::Row(items) => within(items, false)
                .find_map(|(element, inner, found)| faulty(element, vec![place, inner], &found)),
            found => faulty(element, vec![place], &found),
        })
    }
}

/// The items of a list on their way into the batch.
struct NewItems<'r, 's, 'b> {
    rules: &'r InItems,
    sink: &'s mut Sink<'b>,
    /// Number of elements that were not skipped.
    n: usize,
    n_skipped: u64,
    /// Grows before each row and after it.
    row: u32,
    /// Row and position of each item, if items have positions.
    places: Vec<(u32, i64)>,
    problem: Option<Reason>,
}

impl NewItems<'_, '_, '_> {
    fn take(&mut self, element: Value, may_be_row: bool) {
        match self.rules.element(element, may_be_row) {
            Element::Row(items) => {
                self.row += 1;
                for element in items.elements().into_iter().flatten() {
                    self.take(element, false);
                }
                // Items after this row must not be sorted into it.
                self.row += 1;
            }
            Element::Other => self.n_skipped += 1,
            Element::Item(Placed {
                id,
                position,
                is_clicked,
            }) => {
                self.n += 1;
                // A list that is too long is refused. Its further items are only counted, so memory stays bounded.
                if self.n <= self.sink.max_items {
                    self.sink.item(&id);
                    if is_clicked {
                        self.sink.click(&id);
                    }
                    if self.rules.has_position {
                        self.places.push((self.row, position));
                    }
                }
            }
            Element::Faulty(fault) => {
                self.n += 1;
                if self.n <= self.sink.max_items {
                    note(&mut self.problem, fault.reason);
                }
            }
        }
    }

    /// Puts the items of each row into the order of their positions; equal ones stay as they are.
    fn rank(&mut self, start: usize) {
        let places = &self.places;
        if places.is_sorted() {
            return;
        }
        let mut order: Vec<usize> = (0..places.len()).collect();
        order.sort_by_key(|n| places[*n]);
        let items = &mut self.sink.batch.items[start..];
        let ranked: Vec<u64> = order.iter().map(|n| items[*n]).collect();
        items.copy_from_slice(&ranked);
        if let Some(texts) = &mut self.sink.texts {
            texts.items = order
                .iter()
                .map(|n| std::mem::take(&mut texts.items[*n]))
                .collect();
        }
    }
}
