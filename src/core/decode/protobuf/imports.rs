//! Compiles schema text, with the files that registries leave out.

use std::collections::HashSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use prost::Message as _;
use protox::Compiler;
use protox::file::{ChainFileResolver, File, FileResolver, GoogleFileResolver};
use protox::prost_reflect::prost_types::FileDescriptorProto;

use super::super::avro::SchemaFault;
use super::descriptors::{FileDescriptor, FileSet};

/// Name of the main file, which no import has.
const MAIN: &str = "abgauge/main.proto";

/// Files that Confluent's clients bring along.
const CONFLUENT: [(&str, &str); 2] = [
    ("confluent/meta.proto", include_str!("confluent/meta.proto")),
    (
        "confluent/types/decimal.proto",
        include_str!("confluent/types/decimal.proto"),
    ),
];

/// Files that are given as text.
struct GivenFiles {
    files: Vec<(String, String)>,
}

impl FileResolver for GivenFiles {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        match self.files.iter().find(|(known, _)| known == name) {
            Some((_, text)) => match described(name, text) {
                Some(file) => Ok(file),
                None => File::from_source(name, text),
            },
            None => Err(protox::Error::file_not_found(name)),
        }
    }
}

/// Reads a descriptor in base64, which Confluent's clients for Python and JavaScript register instead of the text of a file. Not
/// every registry turns it into text. No text in the language of Protobuf is base64.
fn described(name: &str, text: &str) -> Option<File> {
    let bytes = STANDARD.decode(text.trim()).ok()?;
    let mut descriptor = FileDescriptorProto::decode(&bytes[..]).ok()?;
    descriptor.name = Some(name.to_owned());
    Some(File::from_file_descriptor_proto(descriptor))
}

/// Compiles a text to a descriptor set. Its last file is the text's own.
pub(in super::super) fn compile(text: &str, imports: &[(String, String)]) -> Result<Vec<u8>, SchemaFault> {
    let mut files = vec![(MAIN.to_owned(), text.to_owned())];
    files.extend(imports.iter().cloned());
    compile_file(MAIN, files)
}

fn compile_file(name: &str, mut files: Vec<(String, String)>) -> Result<Vec<u8>, SchemaFault> {
    files.extend(CONFLUENT.map(|(name, text)| (name.to_owned(), text.to_owned())));
    let mut resolver = ChainFileResolver::new();
    resolver.add(GivenFiles { files });
    resolver.add(GoogleFileResolver::new());
    let mut compiler = Compiler::with_file_resolver(resolver);
    compiler.include_imports(true);
    let opened = compiler.open_file(name);
    opened.map_err(|error| SchemaFault(format!("cannot be compiled: {error}")))?;
    Ok(compiler.encode_file_descriptor_set())
}

/// Returns the well-known files that a set imports, but does not contain.
pub(super) fn missing(set: &FileSet, main: &FileDescriptor) -> Result<Vec<FileDescriptor>, SchemaFault> {
    let all = || set.files.iter().chain([main]);
    let mut names: HashSet<String> = all().map(|file| file.name.clone()).collect();
    let mut missing = Vec::new();
    for name in all().flat_map(|file| &file.imports) {
        let is_known =
            name.starts_with("google/protobuf/") || CONFLUENT.iter().any(|(known, _)| known == name);
        if names.contains(name) || !is_known {
            continue;
        }
        // If the file is unknown here, fields with its types are just not read.
        let Ok(bytes) = compile_file(name, Vec::new()) else {
            continue;
        };
        let compiled = FileSet::decode(&bytes[..]).map_err(|error| SchemaFault(error.to_string()))?;
        let files = compiled.files.into_iter();
        missing.extend(files.filter(|file| names.insert(file.name.clone())));
    }
    Ok(missing)
}
