//! Fingerprints of schemas, by which records of the single-object encoding name theirs.
//!
//! They are the CRC-64-AVRO of the schema's canonical form. Clients differ in that form if a type has attributes besides its
//! name, such as a logical type.

use serde_json::{Map, Value as Json};

use super::names::{full_name, is_primitive};

/// Client that writes a canonical form of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Client {
    /// Java, and the specification: attributes are dropped.
    Java,
    /// apache-avro of Rust: a logical type is dropped, but leaves its type an object; a decimal keeps its digits.
    Rust,
    /// goavro: any attribute leaves its type an object.
    Go,
}

/// Returns the fingerprints that clients give a schema, without repetition. Java's is first.
pub(super) fn fingerprints(schema: &Json) -> Vec<u64> {
    let mut all = Vec::new();
    for client in [Client::Java, Client::Rust, Client::Go] {
        let fingerprint = crc_64_avro(canonical(schema, "", client).as_bytes());
        if !all.contains(&fingerprint) {
            all.push(fingerprint);
        }
    }
    all
}

fn canonical(schema: &Json, namespace: &str, client: Client) -> String {
    match schema {
        Json::String(name) => reference(name, namespace),
        Json::Array(branches) => {
            let branches: Vec<String> = branches
                .iter()
                .map(|branch| canonical(branch, namespace, client))
                .collect();
            format!("[{}]", branches.join(","))
        }
        Json::Object(schema) => match schema.get("type") {
            Some(Json::String(word)) => object(word, schema, namespace, client),
            Some(inner) => canonical(inner, namespace, client),
            None => String::new(),
        },
        _ => String::new(),
    }
}

fn object(word: &str, schema: &Map<String, Json>, around: &str, client: Client) -> String {
    let name = schema.get("name").and_then(Json::as_str).unwrap_or_default();
    let namespace = schema.get("namespace").and_then(Json::as_str).unwrap_or(around);
    let full = full_name(name, namespace);
    let inner = |key: &str| {
        schema
            .get(key)
            .map_or_else(String::new, |of| canonical(of, around, client))
    };
    let digits = || match (client, schema.get("logicalType").and_then(Json::as_str)) {
        (Client::Rust, Some("decimal")) => {
            let number = |key: &str| schema.get(key).and_then(Json::as_u64).unwrap_or(0);
            format!(
                ",\"precision\":{},\"scale\":{}",
                number("precision"),
                number("scale")
            )
        }
        _ => String::new(),
    };
    match word {
        "record" | "error" => {
            let namespace = full.rsplit_once('.').map_or("", |(namespace, _)| namespace);
            let fields = schema
                .get("fields")
                .and_then(Json::as_array)
                .into_iter()
                .flatten();
            let fields = fields.map(|field| {
                let of = field
                    .get("type")
                    .map_or_else(String::new, |of| canonical(of, namespace, client));
                format!("{{\"name\":{},\"type\":{of}}}", quoted(field.get("name")))
            });
            let fields: Vec<String> = fields.collect();
            format!(
                "{{\"name\":\"{full}\",\"type\":\"{word}\",\"fields\":[{}]}}",
                fields.join(",")
            )
        }
        "enum" => {
            let symbols = schema
                .get("symbols")
                .and_then(Json::as_array)
                .into_iter()
                .flatten();
            let symbols: Vec<String> = symbols.map(|symbol| quoted(Some(symbol))).collect();
            format!(
                "{{\"name\":\"{full}\",\"type\":\"enum\",\"symbols\":[{}]}}",
                symbols.join(",")
            )
        }
        "fixed" => {
            let size = schema.get("size").and_then(Json::as_u64).unwrap_or(0);
            format!(
                "{{\"name\":\"{full}\",\"type\":\"fixed\",\"size\":{size}{}}}",
                digits()
            )
        }
        "array" => format!("{{\"type\":\"array\",\"items\":{}}}", inner("items")),
        "map" => format!("{{\"type\":\"map\",\"values\":{}}}", inner("values")),
        word => {
            let stays_object = match client {
                Client::Java => false,
                Client::Rust => schema.contains_key("logicalType"),
                Client::Go => schema.len() > 1,
            };
            match stays_object {
                true => format!("{{\"type\":{}{}}}", reference(word, around), digits()),
                false => reference(word, around),
            }
        }
    }
}

/// Returns the name of a primitive type, or the full name of another type.
fn reference(name: &str, namespace: &str) -> String {
    match is_primitive(name) {
        true => format!("\"{name}\""),
        false => format!("\"{}\"", full_name(name, namespace)),
    }
}

fn quoted(text: Option<&Json>) -> String {
    format!("\"{}\"", text.and_then(Json::as_str).unwrap_or_default())
}

fn crc_64_avro(bytes: &[u8]) -> u64 {
    const EMPTY: u64 = 0xc15d_213a_a4d7_a795;
    bytes.iter().fold(EMPTY, |crc, byte| {
        (0..8).fold(crc ^ u64::from(*byte), |crc, _| {
            crc >> 1 ^ if crc & 1 == 1 { EMPTY } else { 0 }
        })
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// From the tests of Avro itself.
    #[test]
    fn fingerprints_are_those_of_the_specification() {
        for (schema, expected) in [
            (json!("null"), 0x63dd_24e7_cc25_8f8a),
            (json!({"type": "int"}), 0x7275_d51a_3f39_5c8f),
            (
                json!({"type": "long", "logicalType": "timestamp-millis"}),
                0xd054_e144_93f4_1db7,
            ),
        ] {
            assert_eq!(fingerprints(&schema)[0], expected, "{schema}");
        }
    }

    #[test]
    fn canonical_forms_differ_by_client_only_in_attributes() {
        let schema = json!({"type": "record", "name": "List", "namespace": "shop", "doc": "x", "fields": [
            {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-millis"}, "default": 0},
            {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
            {"name": "note", "type": {"type": "string", "avro.java.string": "String"}},
            {"name": "next", "type": ["null", "List"]},
            {"name": "tags", "type": {"type": "array", "items": {"type": "string"}}},
            {"name": "id", "type": {"type": "fixed", "name": "other.Id", "size": 16}},
        ]});
        let form = |ts: &str, price: &str, note: &str| {
            format!(
                r#"{{"name":"shop.List","type":"record","fields":[{{"name":"ts","type":{ts}}},{{"name":"price","type":{price}}},{{"name":"note","type":{note}}},{{"name":"next","type":["null","shop.List"]}},{{"name":"tags","type":{{"type":"array","items":"string"}}}},{{"name":"id","type":{{"name":"other.Id","type":"fixed","size":16}}}}]}}"#
            )
        };
        assert_eq!(
            canonical(&schema, "", Client::Java),
            form("\"long\"", "\"bytes\"", "\"string\"")
        );
        assert_eq!(
            canonical(&schema, "", Client::Rust),
            form(
                r#"{"type":"long"}"#,
                r#"{"type":"bytes","precision":9,"scale":2}"#,
                "\"string\""
            )
        );
        assert_eq!(
            canonical(&schema, "", Client::Go),
            form(
                r#"{"type":"long"}"#,
                r#"{"type":"bytes"}"#,
                r#"{"type":"string"}"#
            )
        );
        assert_eq!(fingerprints(&schema).len(), 3);
        assert_eq!(
            fingerprints(&json!({"type": "enum", "name": "E", "symbols": ["A"]})).len(),
            1
        );
    }
}
