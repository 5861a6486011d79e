//! Descriptors of `google/protobuf/descriptor.proto`, as far as reading records needs them. Those of the library lack editions.

use prost::Message;

#[derive(Clone, PartialEq, Message)]
pub(super) struct FileSet {
    #[prost(message, repeated, tag = "1")]
    pub files: Vec<FileDescriptor>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct FileDescriptor {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub package: String,
    #[prost(string, repeated, tag = "3")]
    pub imports: Vec<String>,
    #[prost(message, repeated, tag = "4")]
    pub messages: Vec<MessageDescriptor>,
    #[prost(message, repeated, tag = "5")]
    pub enums: Vec<EnumDescriptor>,
    #[prost(message, optional, tag = "8")]
    pub options: Option<FileOptions>,
    /// Empty for proto2.
    #[prost(string, tag = "12")]
    pub syntax: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct MessageDescriptor {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(message, repeated, tag = "2")]
    pub fields: Vec<FieldDescriptor>,
    #[prost(message, repeated, tag = "3")]
    pub messages: Vec<MessageDescriptor>,
    #[prost(message, repeated, tag = "4")]
    pub enums: Vec<EnumDescriptor>,
    #[prost(message, optional, tag = "7")]
    pub options: Option<MessageOptions>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct FieldDescriptor {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(int32, tag = "3")]
    pub number: i32,
    #[prost(int32, tag = "4")]
    pub label: i32,
    #[prost(int32, tag = "5")]
    pub of: i32,
    /// Full name of a message or enum, with a dot before it.
    #[prost(string, tag = "6")]
    pub type_name: String,
    #[prost(string, optional, tag = "7")]
    pub default: Option<String>,
    #[prost(message, optional, tag = "8")]
    pub options: Option<FieldOptions>,
    #[prost(int32, optional, tag = "9")]
    pub oneof: Option<i32>,
    #[prost(string, tag = "10")]
    pub json_name: String,
    #[prost(bool, tag = "17")]
    pub is_proto3_optional: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct EnumDescriptor {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(message, repeated, tag = "2")]
    pub values: Vec<EnumValueDescriptor>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct EnumValueDescriptor {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(int32, tag = "2")]
    pub number: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct FileOptions {
    #[prost(message, optional, tag = "50")]
    pub features: Option<Features>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct MessageOptions {
    #[prost(bool, tag = "7")]
    pub is_map_entry: bool,
    #[prost(message, optional, tag = "12")]
    pub features: Option<Features>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct FieldOptions {
    #[prost(message, optional, tag = "21")]
    pub features: Option<Features>,
}

/// Features of an edition.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct Features {
    #[prost(int32, optional, tag = "1")]
    pub presence: Option<i32>,
    #[prost(int32, optional, tag = "5")]
    pub encoding: Option<i32>,
}

impl Features {
    /// Presence of a scalar without presence.
    pub const IMPLICIT: i32 = 2;
    /// Encoding of messages as groups.
    pub const DELIMITED: i32 = 2;

    /// Adds the features that an inner element states.
    pub fn with(self, inner: Option<Features>) -> Features {
        let inner = inner.unwrap_or_default();
        Features {
            presence: inner.presence.or(self.presence),
            encoding: inner.encoding.or(self.encoding),
        }
    }
}
