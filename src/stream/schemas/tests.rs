//! Helpers shared by the tests of the reader and of the client.

mod client;
mod reader;

use std::io;

use super::*;
use crate::settings::{self, Config};

const LIST: &str = r#"{"type":"record","name":"List","fields":[{"name":"id","type":"string"}]}"#;

fn config(more: &str) -> Config {
    let text = format!("kafka.brokers = \"b:1\"\nevents.served.format = \"avro\"\n{more}");
    match settings::load_text("abgauge.toml", &text, std::iter::empty()) {
        Ok(config) => config,
        Err(errors) => panic!("{errors}: {:?}", errors.lines().collect::<Vec<_>>()),
    }
}

/// Waits for a condition.
async fn until(mut is_met: impl FnMut() -> bool) {
    let waited = async {
        while !is_met() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), waited)
        .await
        .expect("it comes to pass");
}

fn framed(id: u32) -> Vec<u8> {
    [&[0][..], &id.to_be_bytes(), &[4], b"r7"].concat()
}

fn json(located: Located) -> String {
    match located {
        Located::Record(record) => String::from_utf8(record.to_json().into_owned()).expect("UTF-8"),
        other => format!("{other:?}"),
    }
}

/// Returns the log of a function.
pub(super) fn logged(run: impl FnOnce()) -> String {
    struct Log(Arc<Mutex<Vec<u8>>>);
    impl io::Write for Log {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("not poisoned").write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let bytes = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&bytes);
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(move || Log(Arc::clone(&log)))
        .finish();
    tracing::subscriber::with_default(subscriber, run);
    String::from_utf8(bytes.lock().expect("not poisoned").clone()).expect("UTF-8")
}
