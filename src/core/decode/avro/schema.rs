//! Schemas of Avro 1.12, as far as reading needs them: names and defaults of a reader's schema, aliases and documentation are
//! ignored.

use std::collections::{HashMap, HashSet};
use std::fmt;

use serde_json::{Map, Value as Json};
use xxhash_rust::xxh3::xxh3_64;

use super::super::mapped::{AvroPlan, Plans};
use super::super::name::name_hash;
use super::super::value::Notation;
use super::fingerprint::fingerprints;
use super::names::full_name;

/// Schema of a record.
#[derive(Debug)]
pub struct AvroSchema {
    /// Hash of its text.
    hash: u64,
    fingerprints: Vec<u64>,
    types: Vec<AvroType>,
    /// Types whose values have no bytes.
    are_empty: Vec<bool>,
    root: TypeId,
    plans: Plans<AvroPlan>,
}

/// Index of a type in its schema. Types may contain themselves.
pub(in super::super) type TypeId = u32;

#[derive(Debug)]
pub(in super::super) enum AvroType {
    Null,
    Boolean,
    /// `int` or `long`, which have the same encoding.
    Integer(NumberMeaning),
    Float,
    Double,
    Text,
    Bytes(Option<Notation>),
    Fixed(usize, Notation),
    Enum(Vec<String>),
    Record(Vec<AvroField>),
    Array(TypeId),
    /// Map from text.
    Map(TypeId),
    Union(Vec<TypeId>),
}

/// Meaning of an integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum NumberMeaning {
    /// A number.
    None,
    /// Time since 1970, in UTC or, if `is_local`, in an unspecified zone. A millisecond has `per_ms` units.
    Since { per_ms: i64, is_local: bool },
    /// Days since 1970.
    Days,
}

#[derive(Debug)]
pub(in super::super) struct AvroField {
    pub name: String,
    pub hash: u64,
    pub of: TypeId,
}

/// Reason why a schema cannot be used, for the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaFault(pub String);

/// Bound on the types of a schema.
const MAX_TYPES: usize = 100_000;

impl AvroSchema {
    /// Parses a schema.
    ///
    /// # Errors
    /// Fails if the text is not an Avro schema.
    pub fn parse(text: &str) -> Result<AvroSchema, SchemaFault> {
        AvroSchema::parse_with(text, &[])
    }

    /// Parses a schema, and those that it refers to, each after its own references.
    ///
    /// # Errors
    /// Fails if a text is not an Avro schema.
    pub fn parse_with(text: &str, references: &[String]) -> Result<AvroSchema, SchemaFault> {
        let json = |text: &str| {
            serde_json::from_str(text).map_err(|error| SchemaFault(format!("is not JSON: {error}")))
        };
        let mut parser = Parser::default();
        let mut hash = xxh3_64(text.as_bytes());
        let mut known = HashSet::new();
        // Two schemas may refer to the same one.
        for reference in references
            .iter()
            .filter(|reference| known.insert(reference.as_str()))
        {
            parser.schema(&json(reference)?, "")?;
            hash = hash.rotate_left(1) ^ xxh3_64(reference.as_bytes());
        }
        let schema = json(text)?;
        let root = parser.schema(&schema, "")?;
        let types = parser.types.into_iter();
        let types = types.map(|defined| defined.expect("a named type is defined before the schema ends"));
        Ok(AvroSchema {
            hash,
            fingerprints: fingerprints(&schema),
            types: types.collect(),
            are_empty: parser.are_empty,
            root,
            plans: Plans::default(),
        })
    }

    /// Returns the fingerprints under which clients write single objects: that of Java and of the specification, and those of
    /// clients that keep more of a logical type.
    pub fn fingerprints(&self) -> &[u64] {
        &self.fingerprints
    }

    /// Returns whether its records have no bytes.
    pub fn has_no_bytes(&self) -> bool {
        self.is_empty(self.root)
    }

    /// Returns whether the values of a type have no bytes.
    #[inline]
    pub(super) fn is_empty(&self, id: TypeId) -> bool {
        self.are_empty[id as usize]
    }

    pub(in super::super) fn hash(&self) -> u64 {
        self.hash
    }

    pub(in super::super) fn plans(&self) -> &Plans<AvroPlan> {
        &self.plans
    }

    pub(in super::super) fn root(&self) -> TypeId {
        self.root
    }

    #[inline]
    pub(in super::super) fn of(&self, id: TypeId) -> &AvroType {
        &self.types[id as usize]
    }
}

#[derive(Default)]
struct Parser {
    /// `None` for a named type that is still being defined.
    types: Vec<Option<AvroType>>,
    are_empty: Vec<bool>,
    /// Named types by full name.
    named: HashMap<String, TypeId>,
}

impl Parser {
    fn add(&mut self, of: Option<AvroType>) -> Result<TypeId, SchemaFault> {
        if self.types.len() == MAX_TYPES {
            return Err(SchemaFault(format!("has more than {MAX_TYPES} types")));
        }
        self.are_empty.push(matches!(of, Some(AvroType::Null)));
        self.types.push(of);
        Ok((self.types.len() - 1) as TypeId)
    }

    /// Adds a schema. Names without a namespace of their own are in `namespace`.
    fn schema(&mut self, schema: &Json, namespace: &str) -> Result<TypeId, SchemaFault> {
        match schema {
            Json::String(name) => self.by_name(name, namespace),
            Json::Array(branches) => {
                let branches = branches.iter().map(|branch| self.schema(branch, namespace));
                let branches = branches.collect::<Result<_, _>>()?;
                self.add(Some(AvroType::Union(branches)))
            }
            Json::Object(schema) => match schema.get("type") {
                Some(Json::String(word)) => self.object(word, schema, namespace),
                Some(inner) => self.schema(inner, namespace),
                None => Err(SchemaFault("has a type without `type`".to_owned())),
            },
            other => Err(SchemaFault(format!("has {other} instead of a type"))),
        }
    }

    fn by_name(&mut self, name: &str, namespace: &str) -> Result<TypeId, SchemaFault> {
        if let Some(primitive) = primitive(name, &Map::new()) {
            return self.add(Some(primitive));
        }
        let known = self.named.get(&full_name(name, namespace));
        // As in Java, a name inside a namespace may also be one that has none.
        let known = known.or_else(|| self.named.get(name)).copied();
        known.ok_or_else(|| SchemaFault(format!("uses the type `{name}`, which it does not define")))
    }

    fn object(
        &mut self,
        word: &str,
        schema: &Map<String, Json>,
        namespace: &str,
    ) -> Result<TypeId, SchemaFault> {
        match word {
            "record" | "error" => {
                let (id, namespace) = self.define(schema, namespace)?;
                let fields = schema.get("fields").and_then(Json::as_array);
                let fields = fields.ok_or_else(|| SchemaFault("has a record without `fields`".to_owned()))?;
                let fields = fields.iter().map(|field| {
                    let name = text_of(field.as_object(), "name")?;
                    let of = field.get("type");
                    let of = of.ok_or_else(|| SchemaFault(format!("has a field `{name}` without `type`")))?;
                    Ok(AvroField {
                        name: name.to_owned(),
                        hash: name_hash(name),
                        of: self.schema(of, &namespace)?,
                    })
                });
                let fields = fields.collect::<Result<Vec<AvroField>, SchemaFault>>()?;
                let mut names = HashSet::new();
                if let Some(twice) = fields.iter().find(|field| !names.insert(&field.name)) {
                    return Err(SchemaFault(format!(
                        "has two fields `{}` in one record",
                        twice.name
                    )));
                }
                self.are_empty[id as usize] = fields.iter().all(|field| self.are_empty[field.of as usize]);
                self.types[id as usize] = Some(AvroType::Record(fields));
                Ok(id)
            }
            "enum" => {
                let (id, _) = self.define(schema, namespace)?;
                let symbols = schema.get("symbols").and_then(Json::as_array);
                let symbols = symbols.into_iter().flatten().map(|symbol| {
                    let symbol = symbol.as_str().map(str::to_owned);
                    symbol.ok_or_else(|| SchemaFault("has an enum with a symbol that is not text".to_owned()))
                });
                let symbols = symbols.collect::<Result<_, SchemaFault>>()?;
                self.types[id as usize] = Some(AvroType::Enum(symbols));
                Ok(id)
            }
            "fixed" => {
                let (id, _) = self.define(schema, namespace)?;
                let size = schema.get("size").and_then(Json::as_u64);
                let size = size.and_then(|size| usize::try_from(size).ok());
                let size = size.ok_or_else(|| SchemaFault("has a fixed type without `size`".to_owned()))?;
                let notation = match logical_type(schema) {
                    Some("uuid") if size == 16 => Notation::Uuid,
                    Some("decimal") => Notation::Decimal { scale: scale(schema) },
                    _ => Notation::Hex,
                };
                self.are_empty[id as usize] = size == 0;
                self.types[id as usize] = Some(AvroType::Fixed(size, notation));
                Ok(id)
            }
            "array" | "map" => {
                let key = if word == "array" { "items" } else { "values" };
                let inner = schema.get(key);
                let inner =
                    inner.ok_or_else(|| SchemaFault(format!("has a type `{word}` without `{key}`")))?;
                let inner = self.schema(inner, namespace)?;
                self.add(Some(match word {
                    "array" => AvroType::Array(inner),
                    _ => AvroType::Map(inner),
                }))
            }
            word => match primitive(word, schema) {
                Some(primitive) => self.add(Some(primitive)),
                None => self.by_name(word, namespace),
            },
        }
    }

    /// Reserves the place of a named type, and returns it with the type's namespace.
    fn define(&mut self, schema: &Map<String, Json>, around: &str) -> Result<(TypeId, String), SchemaFault> {
        let name = text_of(Some(schema), "name")?;
        let namespace = schema.get("namespace").and_then(Json::as_str).unwrap_or(around);
        let full = full_name(name, namespace);
        let id = self.add(None)?;
        if self.named.insert(full.clone(), id).is_some() {
            return Err(SchemaFault(format!("defines `{full}` twice")));
        }
        let namespace = full.rsplit_once('.').map_or("", |(namespace, _)| namespace);
        Ok((id, namespace.to_owned()))
    }
}

/// Returns a primitive type by its name; `None` for any other name. A logical type that does not fit is ignored, as Avro
/// requires.
fn primitive(word: &str, schema: &Map<String, Json>) -> Option<AvroType> {
    let logical = logical_type(schema);
    let since = |per_ms, is_local| AvroType::Integer(NumberMeaning::Since { per_ms, is_local });
    Some(match (word, logical) {
        ("null", _) => AvroType::Null,
        ("boolean", _) => AvroType::Boolean,
        ("int", Some("date")) => AvroType::Integer(NumberMeaning::Days),
        ("long", Some("timestamp-millis")) => since(1, false),
        ("long", Some("timestamp-micros")) => since(1_000, false),
        ("long", Some("timestamp-nanos")) => since(1_000_000, false),
        ("long", Some("local-timestamp-millis")) => since(1, true),
        ("long", Some("local-timestamp-micros")) => since(1_000, true),
        ("long", Some("local-timestamp-nanos")) => since(1_000_000, true),
        ("int" | "long", _) => AvroType::Integer(NumberMeaning::None),
        ("float", _) => AvroType::Float,
        ("double", _) => AvroType::Double,
        ("string", _) => AvroType::Text,
        ("bytes", Some("decimal")) => AvroType::Bytes(Some(Notation::Decimal { scale: scale(schema) })),
        ("bytes", _) => AvroType::Bytes(None),
        _ => return None,
    })
}

fn logical_type(schema: &Map<String, Json>) -> Option<&str> {
    schema.get("logicalType").and_then(Json::as_str)
}

fn scale(schema: &Map<String, Json>) -> u32 {
    let scale = schema.get("scale").and_then(Json::as_u64).unwrap_or(0);
    scale.try_into().unwrap_or(u32::MAX)
}

fn text_of<'a>(schema: Option<&'a Map<String, Json>>, key: &str) -> Result<&'a str, SchemaFault> {
    let text = schema.and_then(|schema| schema.get(key)).and_then(Json::as_str);
    text.ok_or_else(|| SchemaFault(format!("has a type or field without `{key}`")))
}

impl fmt::Display for SchemaFault {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        write!(out, "the schema {}", self.0)
    }
}

impl std::error::Error for SchemaFault {}
