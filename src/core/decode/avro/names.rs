//! Names of Avro types.

/// Types without a schema of their own.
const PRIMITIVES: [&str; 8] = [
    "null", "boolean", "int", "long", "float", "double", "bytes", "string",
];

/// Returns whether this is the name of a primitive type, which has no namespace.
pub(super) fn is_primitive(name: &str) -> bool {
    PRIMITIVES.contains(&name)
}

/// Returns the name with the namespace around it, unless it has its own.
pub(super) fn full_name(name: &str, namespace: &str) -> String {
    match (name.contains('.'), namespace) {
        (true, _) | (false, "") => name.to_owned(),
        (false, namespace) => format!("{namespace}.{name}"),
    }
}
