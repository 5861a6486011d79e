//! Fast path through messages of Protobuf.
//!
//! A plan has the fields of a message type by their tags. Everything that its reader would have to put together is left to
//! [`Mapped::read`](super::super::Mapped::read): a field that occurs again, or a oneof with several values.

use super::super::super::hash::Hashes;
use super::super::super::protobuf::{
    Extent, FieldType, Meaning, MessageType, ProtobufField, ProtobufSchema, Raw, Rule, Types, Wire,
};
use super::super::super::value::Value;
use super::super::super::{range, time};
use super::{
    ArmsBy, Direct, DirectReader, EventPart, Found, Leads, Place, checked_id, item_of, part_of_text,
    part_of_value, set,
};
use crate::engine::event::{Body, Kind};

/// Places of a shape in a message type.
#[derive(Debug)]
pub(in super::super::super) struct ProtobufPlan {
    /// The record first, then the messages inside it.
    messages: Vec<MessagePlan>,
}

#[derive(Debug)]
struct MessagePlan {
    /// By tags of one byte, the step plus one; 0 for fields that are skipped.
    short: [u8; 128],
    /// Steps of longer tags.
    long: Vec<(u32, usize)>,
    steps: Vec<Step>,
    /// Steps that have a value even if their field is absent.
    if_absent: Vec<usize>,
}

#[derive(Debug, Clone, Copy)]
struct Step {
    /// Bit of the field, or of its oneof.
    bit: u64,
    /// Index of the field in its message type, and that type.
    field: usize,
    message: u32,
    action: Action,
}

#[derive(Debug, Clone, Copy)]
enum Action {
    /// Enter the message with this plan.
    Enter(usize),
    /// Take a part, of lists, of clicks, or of both.
    Take(EventPart, [bool; 2]),
    /// The same for text, which most parts are.
    TakeText(EventPart, [bool; 2]),
    /// The same for a time that is an integer of milliseconds.
    TakeMs([bool; 2]),
    /// Take items that are texts, messages with this plan, or any other values.
    TextItems,
    MessageItems(usize),
    OtherItems,
    /// Take a repeated field or map as the experiments.
    Experiments,
    /// Other value of a oneof.
    Override,
}

impl Direct {
    /// Reads a record of Protobuf.
    pub fn protobuf(
        &self,
        schema: &ProtobufSchema,
        bytes: &[u8],
        topic_kind: Option<Kind>,
        reader: &mut DirectReader,
    ) -> Option<Body> {
        let plan = schema
            .plans()
            .of_shape(self.id, || ProtobufPlan::new(self, schema))?;
        let mut found = Found::default();
        plan.read(0, schema.types(), bytes, &mut found, reader)?;
        found.body(topic_kind, ArmsBy::Key, reader)
    }
}

impl ProtobufPlan {
    /// Returns `None` if the shape has no fast path through the schema.
    fn new(direct: &Direct, schema: &ProtobufSchema) -> Option<ProtobufPlan> {
        let mut plan = ProtobufPlan { messages: Vec::new() };
        plan.add(direct, &direct.record, schema.types(), schema.root())?;
        Some(plan)
    }

    /// Adds the plan of a message type, and returns its index.
    fn add(&mut self, direct: &Direct, places: &[Place], types: &Types, of: &MessageType) -> Option<usize> {
        let index = self.messages.len();
        if of.meaning != Meaning::Fields {
            return None;
        }
        self.messages.push(MessagePlan {
            short: [0; 128],
            long: Vec::new(),
            steps: Vec::new(),
            if_absent: Vec::new(),
        });
        let mut taken = vec![false; of.fields.len()];
        for place in places {
            let Some(n) = of
                .fields
                .iter()
                .position(|field| field.is_named(place.hash, &place.name))
            else {
                continue;
            };
            if std::mem::replace(&mut taken[n], true) {
                return None;
            }
            let action = self.action(direct, place, types, &of.fields[n])?;
            self.messages[index].add(of, n, action)?;
        }
        // The other fields of a oneof make its earlier value void.
        let with_places = of.fields.iter().zip(&taken).filter(|(_, taken)| **taken);
        let oneofs: Vec<u32> = with_places.filter_map(|(field, _)| field.oneof).collect();
        for (n, field) in of.fields.iter().enumerate() {
            if !taken[n] && field.oneof.is_some_and(|oneof| oneofs.contains(&oneof)) {
                self.messages[index].add(of, n, Action::Override)?;
            }
        }
        Some(index)
    }

    fn action(
        &mut self,
        direct: &Direct,
        place: &Place,
        types: &Types,
        field: &ProtobufField,
    ) -> Option<Action> {
        let message = field.of.message().map(|id| types.message(id));
        let is_text = field.of == FieldType::Text;
        Some(match (&place.leads, &field.rule) {
            (_, Rule::Optional(Some(_))) if field.oneof.is_some() => return None,
            (Leads::Below(places), Rule::Optional(_)) => {
                Action::Enter(self.add(direct, places, types, message?)?)
            }
            (Leads::To(EventPart::Items, _), Rule::Repeated) => match message {
                Some(of) if !direct.item.is_empty() && of.meaning == Meaning::Fields => {
                    let item = self.add(direct, &direct.item, types, of)?;
                    let steps = &self.messages[item].steps;
                    let is_simple = steps.iter().all(|step| !matches!(step.action, Action::Enter(_)));
                    is_simple.then_some(Action::MessageItems(item))?
                }
                None if is_text => Action::TextItems,
                _ => Action::OtherItems,
            },
            (Leads::To(EventPart::Experiments, _), Rule::Repeated | Rule::Map) => Action::Experiments,
            (Leads::To(EventPart::Time, of), Rule::Implicit | Rule::Optional(None))
                if direct.has_milliseconds && matches!(field.of, FieldType::Int64 | FieldType::Uint64) =>
            {
                Action::TakeMs(*of)
            }
            (Leads::To(part, of), Rule::Implicit | Rule::Optional(_)) => match is_text {
                true => Action::TakeText(*part, *of),
                false => Action::Take(*part, *of),
            },
            _ => return None,
        })
    }

    fn read<'a>(
        &'a self,
        message: usize,
        types: &'a Types,
        all: &'a [u8],
        found: &mut Found<'a>,
        reader: &mut DirectReader,
    ) -> Option<()> {
        let plan = &self.messages[message];
        let mut wire = Wire::of(all);
        let mut seen = 0;
        let mut experiments_start = 0;
        while !wire.is_at_end() {
            let before = wire;
            let (tag, step) = plan.next(&mut wire)?;
            let Some(step) = step else {
                wire.pass(tag)?;
                continue;
            };
            let is_first = seen & step.bit == 0;
            seen |= step.bit;
            match step.action {
                Action::TextItems => {
                    if is_first {
                        found.items = Some(range(reader.batch.items.len(), reader.batch.items.len()));
                    }
                    text_items(tag, &mut wire, reader)?;
                    found.items.as_mut()?.end = reader.batch.items.len() as u32;
                }
                Action::MessageItems(item) => {
                    if is_first {
                        found.items = Some(range(reader.batch.items.len(), reader.batch.items.len()));
                    }
                    self.message_items(item, tag, types, &mut wire, reader)?;
                    found.items.as_mut()?.end = reader.batch.items.len() as u32;
                }
                Action::OtherItems => {
                    if is_first {
                        found.items = Some(range(reader.batch.items.len(), reader.batch.items.len()));
                    }
                    other_items(step.field_in(types), tag, types, &mut wire, reader)?;
                    found.items.as_mut()?.end = reader.batch.items.len() as u32;
                }
                Action::Experiments => {
                    if is_first {
                        experiments_start = all.len() - before.rest.len();
                    }
                    wire.pass(tag)?;
                    let bytes = &all[experiments_start..all.len() - wire.rest.len()];
                    found.experiments = Some(step.extent(types, bytes).value());
                }
                // It must be merged, or overrides another value.
                _ if !is_first => return None,
                Action::Override => wire.pass(tag)?,
                Action::Enter(inner) => {
                    let (Raw::Sized(bytes) | Raw::Group(bytes)) = wire.raw(tag)? else {
                        return None;
                    };
                    self.read(inner, types, bytes, found, reader)?;
                }
                Action::TakeText(part, of) => {
                    let text = wire.sized()?;
                    // It may count as absent.
                    if text.is_empty() {
                        return None;
                    }
                    part_of_text(part, of, text, found, reader)?;
                }
                Action::TakeMs(of) => {
                    // An invalid time may still count as absent.
                    let ms = i64::try_from(wire.varint()?).ok()?;
                    set(&mut found.times, of, time::integer_ms(ms).ok()?);
                }
                Action::Take(part, of) => {
                    let raw = wire.raw(tag)?;
                    let value = types.singular(step.field_in(types), raw, 0)??;
                    if !(value.is_null() && part.may_be_null()) {
                        part_of_value(part, of, value, found, reader)?;
                    }
                }
            }
        }
        for step in &plan.if_absent {
            let step = &plan.steps[*step];
            if seen & step.bit == 0 {
                step.take_absent(types, found, reader)?;
            }
        }
        Some(())
    }

    #[inline(never)]
    fn message_items<'a>(
        &self,
        item: usize,
        tag: u32,
        types: &'a Types,
        wire: &mut Wire<'a>,
        reader: &mut DirectReader,
    ) -> Option<()> {
        let hash = reader.hash;
        let items = &mut reader.batch.items;
        let plan = &self.messages[item];
        let mut own = *wire;
        loop {
            let (Raw::Sized(bytes) | Raw::Group(bytes)) = own.raw(tag)? else {
                return None;
            };
            items.push(plan.item(types, bytes, &hash)?);
            if !own.comes(tag) {
                break;
            }
        }
        *wire = own;
        reader.check_items()
    }
}

impl MessagePlan {
    /// Adds a step for field `n` of a message type.
    fn add(&mut self, of: &MessageType, n: usize, action: Action) -> Option<()> {
        let field = &of.fields[n];
        let steps = self.steps.iter();
        let in_oneof = field.oneof.and_then(|oneof| {
            let mut steps = steps.filter(|step| of.fields[step.field].oneof == Some(oneof));
            steps.next().map(|step| step.bit)
        });
        let index = self.steps.len();
        let step = Step {
            bit: in_oneof.or_else(|| 1_u64.checked_shl(index as u32))?,
            field: n,
            message: of.id,
            action,
        };
        self.steps.push(step);
        for wire_type in (0..8).filter(|wire_type| field.accepts(*wire_type)) {
            let tag = field.number << 3 | u32::from(wire_type);
            match self.short.get_mut(tag as usize) {
                Some(short) => *short = index as u8 + 1,
                None => self.long.push((tag, index)),
            }
        }
        let has_default = matches!(field.rule, Rule::Optional(Some(_)));
        let has_zero =
            field.rule == Rule::Implicit && !matches!(field.of, FieldType::Text | FieldType::Bytes);
        if field.is_repeated() || has_default || has_zero {
            self.if_absent.push(index);
        }
        Some(())
    }

    /// Passes a tag, and returns the step of its field.
    #[inline(always)]
    fn next(&self, wire: &mut Wire) -> Option<(u32, Option<&Step>)> {
        let (first, rest) = wire.rest.split_first()?;
        // No field has the number 0.
        if let (Some(index), 8..) = (self.short.get(usize::from(*first)), *first) {
            wire.rest = rest;
            return Some((
                u32::from(*first),
                self.steps.get(usize::from(*index).wrapping_sub(1)),
            ));
        }
        let tag = wire.tag()?;
        let step = self.long.iter().find(|(long, _)| *long == tag);
        Some((tag, step.map(|(_, index)| &self.steps[*index])))
    }

    /// Returns the hash of an item that is a message.
    #[inline(always)]
    fn item(&self, types: &Types, bytes: &[u8], hash: &Hashes) -> Option<u64> {
        let mut wire = Wire::of(bytes);
        let mut item = None;
        while !wire.is_at_end() {
            let (tag, step) = self.next(&mut wire)?;
            match step.map(|step| step.action) {
                None => wire.pass(tag)?,
                Some(_) if item.is_some() => return None,
                Some(Action::TakeText(..)) => item = Some(hash.item(checked_id(wire.sized()?)?)),
                Some(Action::Take(..)) => {
                    let field = step?.field_in(types);
                    item = Some(item_of(types.singular(field, wire.raw(tag)?, 0)??, hash)?);
                }
                Some(_) => return None,
            }
        }
        item
    }
}

impl Step {
    #[inline]
    fn field_in<'a>(&self, types: &'a Types) -> &'a ProtobufField {
        &types.message(self.message).fields[self.field]
    }

    fn extent<'a>(&self, types: &'a Types, bytes: &'a [u8]) -> Extent<'a> {
        Extent {
            types,
            field: self.field_in(types),
            bytes,
            depth: 0,
        }
    }

    /// Takes the value of a field that is not in its message.
    #[inline(never)]
    fn take_absent<'a>(
        &self,
        types: &'a Types,
        found: &mut Found<'a>,
        reader: &mut DirectReader,
    ) -> Option<()> {
        match self.action {
            Action::TextItems | Action::MessageItems(_) | Action::OtherItems => {
                let end = reader.batch.items.len();
                found.items = Some(range(end, end));
                Some(())
            }
            Action::Experiments => {
                found.experiments = Some(self.extent(types, &[]).value());
                Some(())
            }
            Action::Take(part, of) | Action::TakeText(part, of) => {
                match types.absent(self.field_in(types))? {
                    // Another kind of record has no such time.
                    Value::Zero if part == EventPart::Time => Some(()),
                    value => part_of_value(part, of, value, found, reader),
                }
            }
            // A record of the other kind has no such time.
            Action::Enter(_) | Action::Override | Action::TakeMs(_) => Some(()),
        }
    }
}

/// Takes an item, and those that follow it at once.
#[inline(never)]
fn text_items(tag: u32, wire: &mut Wire, reader: &mut DirectReader) -> Option<()> {
    let hash = reader.hash;
    let items = &mut reader.batch.items;
    let all = wire.rest;
    let mut own = *wire;
    loop {
        let id = own.sized()?;
        items.push(hash.checked_item(id)?);
        // Usually the tag is one byte.
        match own.rest {
            [next, rest @ ..] if u32::from(*next) == tag => own.rest = rest,
            _ => {
                if !own.comes(tag) {
                    break;
                }
            }
        }
    }
    // Tags and lengths of one byte are ASCII too, so one look at the bytes of all items is enough for most lists.
    if !all[..all.len() - own.rest.len()].is_ascii() {
        check_texts(tag, *wire)?;
    }
    *wire = own;
    reader.check_items()
}

/// Checks a text, and those that follow it at once.
#[inline(never)]
fn check_texts(tag: u32, mut wire: Wire) -> Option<()> {
    loop {
        std::str::from_utf8(wire.sized()?).ok()?;
        if !wire.comes(tag) {
            return Some(());
        }
    }
}

#[inline(never)]
fn other_items(
    field: &ProtobufField,
    tag: u32,
    types: &Types,
    wire: &mut Wire,
    reader: &mut DirectReader,
) -> Option<()> {
    let mut push = |raw| {
        let item = item_of(types.value(field.of, raw, 0)?, &reader.hash)?;
        reader.batch.items.push(item);
        Some(())
    };
    match wire.raw(tag)? {
        Raw::Sized(packed) if field.is_packable() => {
            let mut packed = Wire::of(packed);
            while !packed.is_at_end() {
                push(packed.raw(u32::from(field.of.wire_type()))?)?;
            }
        }
        raw => push(raw)?,
    }
    reader.check_items()
}
