//! Fields of a schema: their paths, and whether those of a shape are among them.

use std::collections::VecDeque;

use super::super::avro::{AvroSchema, AvroType, TypeId};
use super::super::protobuf::{Meaning, ProtobufField, Rule, Types};
use super::super::shape::{Path, Paths, Shape};
use super::Schema;
use crate::engine::event::Kind;

/// Bound on the paths for a message, and on the names of each.
const MAX_PATHS: usize = 40;
const MAX_NAMES: usize = 4;

/// Type in a schema, to which a path leads.
#[derive(Clone, Copy)]
enum Node<'s> {
    Avro(&'s AvroSchema, TypeId),
    Message(&'s Types, u32),
    Field(&'s Types, &'s ProtobufField),
    /// Value that may have any fields.
    Any,
}

impl Schema {
    /// Returns the paths of its fields, outer ones first, up to a bound.
    pub fn field_paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        let mut queue = VecDeque::from([(Vec::new(), self.root())]);
        while let Some((names, node)) = queue.pop_front() {
            for (name, inner) in node.fields() {
                if paths.len() == MAX_PATHS {
                    return paths;
                }
                let names: Vec<&str> = names.iter().copied().chain([name]).collect();
                paths.extend(Path::of(&names).map(|path| path.to_string()));
                if names.len() < MAX_NAMES {
                    queue.push_back((names, inner));
                }
            }
        }
        paths
    }

    /// Returns the settings of a shape whose paths cannot lead anywhere in the schema, of those that a record of this kind
    /// needs: `events.served.ts = "time"`. JSON text inside a record has no schema, so its paths are not checked.
    pub fn lacks(&self, shape: &Shape, kind: Kind) -> Vec<String> {
        if shape.nested.is_some() {
            return Vec::new();
        }
        let root = self.root();
        let events = match &shape.records {
            None => vec![root],
            Some(path) => {
                let arrays = root.at(path.names());
                if arrays.is_empty() {
                    return vec![format!("events.records = \"{path}\"")];
                }
                arrays.into_iter().flat_map(Node::elements).collect()
            }
        };
        let at = |path: &Path| match path.is_outer() {
            true => root.at(path.names()),
            false => events.iter().flat_map(|event| event.at(path.names())).collect(),
        };
        let mut lacking = Vec::new();
        let mut need = |setting: &str, paths: &Paths| {
            let nodes: Vec<Node> = paths.iter().flat_map(at).collect();
            if nodes.is_empty() {
                lacking.push(format!("events.{setting} = {}", text_of(paths)));
            }
            nodes
        };
        match kind {
            Kind::Served => {
                let served = &shape.served;
                need("served.request_id", &served.request_id);
                for part in &served.further_ids {
                    need("served.request_id", &Paths::from(part.clone()));
                }
                need("served.ts", &served.ts);
                if !served.absent_is_empty {
                    let items = need("served.items", &served.items);
                    let elements = items.into_iter().flat_map(Node::elements);
                    let objects: Vec<Node> = elements.filter(|node| !node.fields().is_empty()).collect();
                    if let Some(id) = &served.item_id
                        && !served.rows
                        && !objects.is_empty()
                        && !id
                            .iter()
                            .any(|path| objects.iter().any(|node| !node.at(path.names()).is_empty()))
                    {
                        lacking.push(format!("events.served.item_id = {}", text_of(id)));
                    }
                }
            }
            Kind::Click => {
                need("click.request_id", &shape.click.request_id);
                need("click.ts", &shape.click.ts);
                need("click.item", &shape.click.item);
            }
        }
        lacking
    }

    fn root(&self) -> Node<'_> {
        match self {
            Schema::Avro(schema) => Node::Avro(schema, schema.root()),
            Schema::Protobuf(schema) => Node::Message(schema.types(), schema.root().id),
        }
    }
}

/// Returns paths as settings have them.
fn text_of(paths: &Paths) -> String {
    let texts: Vec<String> = paths.iter().map(|path| format!("\"{path}\"")).collect();
    match &texts[..] {
        [only] => only.clone(),
        several => format!("{{ any = [{}] }}", several.join(", ")),
    }
}

impl<'s> Node<'s> {
    /// Returns what is at a path; nothing if it leads nowhere.
    fn at(self, names: &[String]) -> Vec<Node<'s>> {
        let mut nodes = vec![self];
        for name in names {
            nodes = nodes.into_iter().flat_map(|node| node.inside(name)).collect();
        }
        nodes
    }

    /// Returns what is at a name; paths pass through unions, and through arrays of one element.
    fn inside(self, name: &str) -> Vec<Node<'s>> {
        match self {
            Node::Any => vec![Node::Any],
            Node::Avro(schema, id) => match schema.of(id) {
                AvroType::Union(branches) => {
                    let branches = branches.iter().map(|id| Node::Avro(schema, *id));
                    branches.flat_map(|branch| branch.inside(name)).collect()
                }
                AvroType::Array(of) => Node::Avro(schema, *of).inside(name),
                AvroType::Map(of) => vec![Node::Avro(schema, *of)],
                AvroType::Record(fields) => {
                    let field = fields.iter().find(|field| field.name == name);
                    field
                        .map(|field| Node::Avro(schema, field.of))
                        .into_iter()
                        .collect()
                }
                _ => Vec::new(),
            },
            Node::Message(types, id) => {
                let of = types.message(id);
                match of.meaning {
                    Meaning::Struct | Meaning::JsonValue | Meaning::JsonList => vec![Node::Any],
                    Meaning::Fields => {
                        let fields = of.fields.iter();
                        let mut fields = fields.filter(|field| field.has_name(name));
                        fields
                            .next()
                            .map(|field| Node::Field(types, field))
                            .into_iter()
                            .collect()
                    }
                    Meaning::Timestamp { .. } | Meaning::Wrapper | Meaning::Decimal => Vec::new(),
                }
            }
            Node::Field(types, field) => match (field.of.message(), &field.rule) {
                (Some(entry), Rule::Map) => {
                    let value = types.message(entry).field(2);
                    value.map(|value| Node::Field(types, value)).into_iter().collect()
                }
                (Some(id), _) => Node::Message(types, id).inside(name),
                (None, _) => Vec::new(),
            },
        }
    }

    /// Returns its fields, if they are known.
    fn fields(self) -> Vec<(&'s str, Node<'s>)> {
        match self {
            Node::Any => Vec::new(),
            Node::Avro(schema, id) => match schema.of(id) {
                AvroType::Union(branches) => {
                    let branches = branches.iter().map(|id| Node::Avro(schema, *id));
                    branches.flat_map(Node::fields).collect()
                }
                AvroType::Record(fields) => {
                    let fields = fields.iter();
                    fields
                        .map(|field| (&field.name[..], Node::Avro(schema, field.of)))
                        .collect()
                }
                _ => Vec::new(),
            },
            Node::Message(types, id) => {
                let of = types.message(id);
                let fields = of.fields.iter().filter(|_| of.meaning == Meaning::Fields);
                fields
                    .map(|field| (&field.name[..], Node::Field(types, field)))
                    .collect()
            }
            Node::Field(types, field) => match (field.of.message(), field.is_repeated()) {
                (Some(id), false) => Node::Message(types, id).fields(),
                _ => Vec::new(),
            },
        }
    }

    /// Returns the elements of an array.
    fn elements(self) -> Vec<Node<'s>> {
        match self {
            Node::Any => vec![Node::Any],
            Node::Avro(schema, id) => match schema.of(id) {
                AvroType::Union(branches) => {
                    let branches = branches.iter().map(|id| Node::Avro(schema, *id));
                    branches.flat_map(Node::elements).collect()
                }
                AvroType::Array(of) => vec![Node::Avro(schema, *of)],
                _ => Vec::new(),
            },
            Node::Message(types, id) => match types.message(id).meaning {
                Meaning::JsonList | Meaning::JsonValue => vec![Node::Any],
                _ => Vec::new(),
            },
            Node::Field(types, field) => match (field.of.message(), &field.rule) {
                (Some(id), Rule::Repeated) => vec![Node::Message(types, id)],
                (Some(id), Rule::Optional(_)) => Node::Message(types, id).elements(),
                _ => Vec::new(),
            },
        }
    }
}
