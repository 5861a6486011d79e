//! Programs that write encoded records as producers do: each uses the clients of its language, in `tests/encodings/`.

use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::kafka::Kafka;
use super::{brought, tools};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Client {
    /// franz-go and its client of Confluent's registry, hamba/avro and Go's Protobuf.
    Go,
    /// Apicurio's serializer, and Apache Avro.
    Java,
    /// kafkajs and its client of Confluent's registry.
    JavaScript,
    /// confluent-kafka, and fastavro.
    Python,
}

/// A record to write.
#[derive(Debug, Clone)]
pub struct Written {
    pub topic: String,
    pub partition: i32,
    /// How the record names its schema, in the words of `tests/encodings/`.
    pub framing: &'static str,
    /// Index of its schema.
    pub schema: usize,
    pub value: Value,
}

impl Client {
    /// Writes the records with these schemas. All are acknowledged when it returns. `url` is the address of Confluent's API,
    /// `root` the one above Apicurio's.
    #[track_caller]
    pub fn write(self, kafka: &Kafka, [url, root]: [&str; 2], schemas: &[Value], records: &[Written]) {
        let dir = tools::temporary_dir("client");
        let path = dir.path().join("records");
        let mut file = File::create(&path).expect("a file");
        let settings =
            json!({"brokers": kafka.brokers(), "registry": url, "registry_root": root, "schemas": schemas});
        writeln!(file, "{settings}").expect("write the settings");
        for Written {
            topic,
            partition,
            framing,
            schema,
            value,
        } in records
        {
            let record = json!({"topic": topic, "partition": partition, "framing": framing, "schema": schema, "value": value});
            writeln!(file, "{record}").expect("write a record");
        }
        let output = self
            .command()
            .stdin(File::open(&path).expect("just written"))
            .output();
        let output = output.unwrap_or_else(|error| panic!("start {self:?}: {error}"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{self:?}: {said}");
    }

    fn command(self) -> Command {
        match self {
            Client::Go => Command::new(brought::cached("encodings-go/write")),
            Client::Java => {
                let mut command = brought::command("java");
                command
                    .args(["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp"])
                    .arg(format!("{}:{}/*", compiled().path().display(), jars().display()))
                    .arg("Write");
                command
            }
            Client::JavaScript => {
                let mut command = brought::command("node");
                let modules = brought::cached("encodings/node_modules");
                command
                    .arg(tools::repository("tests/encodings/write.mjs"))
                    .env("ABGAUGE_ENCODINGS_MODULES", modules);
                command
            }
            Client::Python => {
                let mut command = brought::command("python3");
                command
                    .arg(tools::repository("tests/encodings/write.py"))
                    .env("PYTHONPATH", brought::cached("encodings/python"));
                command
            }
        }
    }
}

fn jars() -> PathBuf {
    brought::cached("encodings/libs")
}

/// Compiles Write.java once, by a compiler that needs no JDK.
fn compiled() -> &'static TempDir {
    static COMPILED: OnceLock<TempDir> = OnceLock::new();
    COMPILED.get_or_init(|| {
        let dir = tools::temporary_dir("java");
        let jars = jars().read_dir().expect("the jars");
        let jars: Vec<String> = jars
            .map(|jar| jar.expect("a jar").path().display().to_string())
            .collect();
        let output = brought::command("java")
            .args([
                "-XX:TieredStopAtLevel=1",
                "-XX:+UseSerialGC",
                "-cp",
                &jars.join(":"),
            ])
            .args([
                "org.eclipse.jdt.internal.compiler.batch.Main",
                "-17",
                "-nowarn",
                "-proc:none",
                "-cp",
            ])
            .args([&jars.join(":"), "-d"])
            .arg(dir.path())
            .arg(tools::repository("tests/encodings/Write.java"))
            .output()
            .expect("the compiler starts");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        dir
    })
}
