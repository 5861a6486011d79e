//! The reader of framed records and the client, against a registry in this process.

use std::collections::HashMap;
use std::ffi::CStr;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use abgauge_core::decode::framing::{Framing, Headers, NoHeaders};
use abgauge_core::decode::schema::RawRecord;
use abgauge_core::engine::event::Reason;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse as _, Response};
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::settings::{self, Config};

const LIST: &str = r#"{"type":"record","name":"List","fields":[{"name":"id","type":"string"}]}"#;

/// Address that nothing listens to.
const CLOSED: &str = "http://127.0.0.1:1";

/// Schema that refers to the other.
const OUTER: &str = r#"{"type":"record","name":"Outer","fields":[{"name":"list","type":"List"}]}"#;

/// Answers by path, and what was asked.
#[derive(Default)]
struct Book {
    pages: Mutex<HashMap<String, String>>,
    /// Status of every answer; 0 for the usual one.
    status: AtomicUsize,
    /// Path that is never answered.
    hangs_at: Mutex<Option<String>>,
    asked: Mutex<Vec<(String, Option<String>)>>,
}

struct FakeRegistry {
    book: Arc<Book>,
    url: String,
    stop: CancellationToken,
}

impl FakeRegistry {
    async fn start() -> FakeRegistry {
        let book = Arc::new(Book::default());
        let router = Router::new().fallback(answer).with_state(Arc::clone(&book));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                let service = TowerToHyperService::new(router.clone());
                let served = http1::Builder::new().serve_connection(TokioIo::new(connection), service);
                tokio::spawn(stopped.clone().run_until_cancelled_owned(served));
            }
        });
        FakeRegistry { book, url, stop }
    }

    fn write(&self, path: &str, schema: &serde_json::Value) {
        let mut pages = self.book.pages.lock().expect("not poisoned");
        pages.insert(path.to_owned(), schema.to_string());
    }

    fn n_asked(&self) -> usize {
        self.book.asked.lock().expect("not poisoned").len()
    }

    fn is_asked(&self, target: &str) -> bool {
        let asked = self.book.asked.lock().expect("not poisoned");
        asked.iter().any(|(other, _)| other == target)
    }

    /// Starts a client with these further settings.
    fn client(&self, more: &str) -> Arc<Schemas> {
        self.client_at("", more)
    }

    /// The same, with this path in the address.
    fn client_at(&self, path: &str, more: &str) -> Arc<Schemas> {
        self.client_of(&format!("{}{path}", self.url), more)
    }

    /// The same, with these addresses.
    fn client_of(&self, urls: &str, more: &str) -> Arc<Schemas> {
        let config = config(&format!("registry.url = \"{urls}\"\n{more}"));
        let schemas = Arc::new(Schemas::open(&config).expect("no files"));
        let client = RegistryClient::open(&schemas).expect("no files");
        let client = client
            .expect("a registry")
            .denying_after(Duration::from_millis(300));
        tokio::spawn(client.run(self.stop.clone()));
        schemas
    }
}

impl Drop for FakeRegistry {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn answer(State(book): State<Arc<Book>>, request: Request) -> Response {
    let (path, target) = (request.uri().path().to_owned(), request.uri().to_string());
    let authorization = request.headers().get("authorization");
    let authorization = authorization.and_then(|value| Some(value.to_str().ok()?.to_owned()));
    book.asked
        .lock()
        .expect("not poisoned")
        .push((target, authorization));
    let hangs = book.hangs_at.lock().expect("not poisoned").as_ref() == Some(&path);
    if hangs {
        std::future::pending::<()>().await;
    }
    let status = book.status.load(Ordering::Relaxed);
    if status > 0 {
        return StatusCode::from_u16(status as u16)
            .expect("a status")
            .into_response();
    }
    match book.pages.lock().expect("not poisoned").get(&path) {
        Some(page) => page.clone().into_response(),
        None if path.starts_with("/login/") => Html("<html>who are you?</html>").into_response(),
        None => (StatusCode::NOT_FOUND, absence_of(&path)).into_response(),
    }
}

/// Returns the body of a registry's 404: of Apicurio's own API for a path below it, else of Confluent's.
fn absence_of(path: &str) -> &'static str {
    match path {
        path if path.starts_with("/wrong/") => "<html>nothing here</html>",
        path if path.starts_with("/apis/registry/v3/") => {
            r#"{"error_code":404,"message":"Could not find resource for full path","name":"NotFoundException"}"#
        }
        path if path.starts_with("/apis/registry/v2/") => {
            r#"{"error_code":404,"message":"No artifact","name":"ArtifactNotFoundException"}"#
        }
        _ => r#"{"error_code":40403,"message":"Schema not found"}"#,
    }
}

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

/// A busy registry would hold up all shards.
#[test]
fn records_of_an_unusable_schema_take_no_lock() {
    let schemas = Arc::new(Schemas::open(&config("registry.url = \"http://a\"")).expect("no files"));
    let denied = Some(Instant::now() + DENIED_AFTER);
    for (id, until) in [(7, denied), (8, None)] {
        schemas.arrived(
            SchemaId::Id(id),
            Known::Unusable {
                until,
                fault: String::new(),
            },
            0,
        );
    }
    let mut reader = schemas.reader(Side::Served);
    let mut locate = || [7, 8].map(|id| json(reader.locate(&framed(id), &NoHeaders)));
    assert_eq!(locate(), ["Invalid(UnknownSchema)"; 2]);
    let (done, is_done) = mpsc::channel();
    thread::scope(|scope| {
        let locked = schemas.state();
        scope.spawn(move || done.send(locate()));
        let located = is_done.recv_timeout(Duration::from_secs(10));
        drop(locked);
        assert_eq!(
            located.expect("no wait for the lock"),
            ["Invalid(UnknownSchema)"; 2]
        );
    });
}

#[tokio::test]
async fn a_denied_schema_is_used_once_it_is_registered() {
    let schemas = Arc::new(Schemas::open(&config("registry.url = \"http://a\"")).expect("no files"));
    let until_ = Some(Instant::now() + DENIED_AFTER);
    schemas.arrived(
        SchemaId::Id(7),
        Known::Unusable {
            until: until_,
            fault: String::new(),
        },
        0,
    );
    let mut reader = schemas.reader(Side::Served);
    assert_eq!(
        json(reader.locate(&framed(7), &NoHeaders)),
        "Invalid(UnknownSchema)"
    );
    let file = SchemaFile::parse(Format::Avro, LIST, &[]).expect("a schema");
    schemas.arrived(SchemaId::Id(7), Known::Usable(Arc::new(file)), 0);
    until(|| json(reader.locate(&framed(7), &NoHeaders)) == r#"{"id":"r7"}"#).await;
}

#[tokio::test]
async fn a_schema_is_fetched_once_with_its_references() {
    let registry = FakeRegistry::start().await;
    let reference = serde_json::json!({"name": "List", "subject": "list/value", "version": 3});
    registry.write(
        "/schemas/ids/7",
        &serde_json::json!({"schema": OUTER, "references": [reference]}),
    );
    registry.write(
        "/subjects/list%2Fvalue/versions/3",
        &serde_json::json!({"schema": LIST}),
    );
    let schemas = registry.client("");
    let mut reader = schemas.reader(Side::Served);
    let record = framed(7);
    assert!(matches!(
        reader.locate(&record, &NoHeaders),
        Located::Awaits(SchemaId::Id(7))
    ));
    until(|| schemas.is_known(SchemaId::Id(7))).await;
    for _ in 0..3 {
        assert_eq!(
            json(reader.locate(&record, &NoHeaders)),
            r#"{"list":{"id":"r7"}}"#
        );
    }
    assert_eq!(registry.n_asked(), 2);
    // A version that was deleted since is needed as well.
    assert!(registry.is_asked("/subjects/list%2Fvalue/versions/3?deleted=true"));
}

#[tokio::test]
async fn a_schema_whose_reference_is_absent_is_denied_and_names_it() {
    let registry = FakeRegistry::start().await;
    let reference = serde_json::json!({"name": "List", "subject": "list", "version": 3});
    registry.write(
        "/schemas/ids/7",
        &serde_json::json!({"schema": OUTER, "references": [reference]}),
    );
    let schemas = registry.client("");
    let id = SchemaId::Id(7);
    schemas.ask(id, Format::Avro);
    until(|| schemas.problem(id).is_some()).await;
    let problem = schemas.problem(id).expect("a problem");
    let expected = "it refers to version 3 of the subject list, which is not in the registry; after";
    assert!(problem.starts_with(expected), "{problem}");
    until(|| schemas.is_known(id)).await;
    assert!(matches!(
        schemas.ask(id, Format::Avro),
        Some(Known::Unusable { until: Some(_), .. })
    ));
}

#[tokio::test]
async fn a_schema_of_apicurio_is_fetched_with_its_references() {
    for (version, content) in [("v2", ""), ("v3", "/content")] {
        let registry = FakeRegistry::start().await;
        let json = |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("JSON");
        let root = format!("/apis/registry/{version}");
        let page = |path: &str, body: &serde_json::Value| registry.write(&format!("{root}{path}"), body);
        let refers_to = |name: &str, group: Option<&str>, artifact: &str| serde_json::json!([{"name": name, "groupId": group, "artifactId": artifact, "version": "3"}]);
        page("/ids/globalIds/9", &json(OUTER));
        page(
            "/ids/globalIds/9/references",
            &refers_to("List", Some("my lists"), "list/value"),
        );
        let list = "/groups/my%20lists/artifacts/list%2Fvalue/versions/3";
        let fields = serde_json::json!([{"name": "id", "type": "Id"}]);
        page(
            &format!("{list}{content}"),
            &serde_json::json!({"type": "record", "name": "List", "fields": fields}),
        );
        page(&format!("{list}/references"), &refers_to("Id", None, "id"));
        let id = "/groups/default/artifacts/id/versions/3";
        let fields = serde_json::json!([{"name": "text", "type": "string"}]);
        page(
            &format!("{id}{content}"),
            &serde_json::json!({"type": "record", "name": "Id", "fields": fields}),
        );
        page(&format!("{id}/references"), &serde_json::json!([]));
        let schemas = registry.client("events.served.framing = \"apicurio2\"");
        let mut reader = schemas.reader(Side::Served);
        let record = [&[0][..], &9_u64.to_be_bytes(), &[4], b"r7"].concat();
        assert!(matches!(reader.locate(&record, &NoHeaders), Located::Awaits(_)));
        until(|| schemas.is_known(SchemaId::Global(9))).await;
        let located = self::json(reader.locate(&record, &NoHeaders));
        assert_eq!(located, r#"{"list":{"id":{"text":"r7"}}}"#, "{version}");
    }
}

#[tokio::test]
async fn a_registry_that_fails_is_asked_again_until_it_answers() {
    let registry = FakeRegistry::start().await;
    registry.write("/schemas/ids/7", &serde_json::json!({"schema": LIST}));
    registry.book.status.store(500, Ordering::Relaxed);
    let schemas = registry.client("");
    let mut reader = schemas.reader(Side::Served);
    let id = SchemaId::Id(7);
    assert!(matches!(
        reader.locate(&framed(7), &NoHeaders),
        Located::Awaits(_)
    ));
    until(|| schemas.problem(id).is_some()).await;
    let problem = schemas.problem(id).expect("a problem");
    assert_eq!(
        problem,
        format!(
            "{}: it answers 500 Internal Server Error to /schemas/ids/7: check the log of the registry",
            registry.url
        )
    );
    // However long it fails, the record waits.
    until(|| registry.n_asked() >= 3).await;
    assert!(!schemas.is_known(id));
    registry.book.status.store(0, Ordering::Relaxed);
    until(|| schemas.is_known(id)).await;
    assert_eq!(schemas.problem(id), None);
    assert_eq!(json(reader.locate(&framed(7), &NoHeaders)), r#"{"id":"r7"}"#);
}

#[tokio::test]
async fn a_denied_schema_is_unknown_only_after_a_while() {
    let registry = FakeRegistry::start().await;
    let schemas = registry.client("");
    let mut reader = schemas.reader(Side::Served);
    let id = SchemaId::Id(8);
    assert!(matches!(
        reader.locate(&framed(8), &NoHeaders),
        Located::Awaits(_)
    ));
    until(|| schemas.problem(id).is_some()).await;
    let problem = schemas.problem(id).expect("a problem");
    assert!(problem.starts_with("it is not in the registry"), "{problem}");
    assert!(!schemas.is_known(id));
    until(|| schemas.is_known(id)).await;
    assert!(matches!(
        reader.locate(&framed(8), &NoHeaders),
        Located::Invalid(Reason::UnknownSchema)
    ));
}

#[test]
fn an_error_names_an_absent_schema_by_its_code_or_its_exception() {
    for (body, is_denial) in [
        (r#"{"error_code":40401,"message":"Subject not found"}"#, true),
        (r#"{"name":"ContentNotFoundException","status":404}"#, true),
        (r#"{"error_code":404,"message":"HTTP 404 Not Found"}"#, false),
        (r#"{"error_code":404,"name":"NotFoundException"}"#, false),
        ("<html>nothing here</html>", false),
    ] {
        assert_eq!(registry::is_denial(body.as_bytes()), is_denial, "{body}");
    }
}

/// A wrong path also returns 404, and a proxy its own page. No record may be lost because of it.
#[tokio::test]
async fn an_answer_of_something_else_is_neither_denial_nor_schema() {
    let registry = FakeRegistry::start().await;
    for (path, id) in [
        ("/wrong", SchemaId::Id(8)),
        ("/login", SchemaId::Id(8)),
        ("/login", SchemaId::Global(8)),
    ] {
        let schemas = registry.client_at(path, "");
        let before = registry.n_asked();
        schemas.ask(id, Format::Avro);
        // Longer than a denial takes.
        until(|| registry.n_asked() >= before + 4).await;
        assert!(!schemas.is_known(id));
        let problem = schemas.problem(id).expect("a problem");
        assert!(problem.contains("check the path in registry.url"), "{problem}");
    }
}

#[tokio::test]
async fn a_schema_that_apicurio_does_not_have_is_denied_though_v3_is_absent() {
    let registry = FakeRegistry::start().await;
    let schemas = registry.client("events.served.framing = \"apicurio2\"");
    let id = SchemaId::Global(8);
    schemas.ask(id, Format::Avro);
    until(|| schemas.is_known(id)).await;
    assert!(matches!(
        schemas.ask(id, Format::Avro),
        Some(Known::Unusable { .. })
    ));
}

#[tokio::test]
async fn credentials_are_sent_and_a_refusal_names_the_settings() {
    let registry = FakeRegistry::start().await;
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), "hünter2\n").expect("it is written");
    let more = format!(
        "registry.username = \"ä\"\nregistry.password_file = {:?}",
        file.path()
    );
    registry.book.status.store(401, Ordering::Relaxed);
    let schemas = registry.client(&more);
    schemas.ask(SchemaId::Id(7), Format::Avro);
    until(|| schemas.problem(SchemaId::Id(7)).is_some()).await;
    let problem = schemas.problem(SchemaId::Id(7)).expect("a problem");
    assert!(
        problem.contains("check registry.username and registry.password_file"),
        "{problem}"
    );
    let asked = registry.book.asked.lock().expect("not poisoned")[0].clone();
    assert_eq!(
        asked,
        (
            "/schemas/ids/7".to_owned(),
            Some("Basic w6Q6aMO8bnRlcjI=".to_owned())
        )
    );
}

#[tokio::test]
async fn the_next_address_answers_for_one_that_is_down() {
    let registry = FakeRegistry::start().await;
    registry.write("/schemas/ids/7", &serde_json::json!({"schema": LIST}));
    let schemas = registry.client_of(&format!("{CLOSED},{}", registry.url), "");
    schemas.ask(SchemaId::Id(7), Format::Avro);
    until(|| schemas.is_known(SchemaId::Id(7))).await;
}

#[tokio::test]
async fn the_address_that_answered_last_is_asked_first() {
    let [broken, registry] = [FakeRegistry::start().await, FakeRegistry::start().await];
    broken.book.status.store(500, Ordering::Relaxed);
    let schemas = registry.client_of(&format!("{},{}", broken.url, registry.url), "");
    for id in [7, 8] {
        registry.write(
            &format!("/schemas/ids/{id}"),
            &serde_json::json!({"schema": LIST}),
        );
        schemas.ask(SchemaId::Id(id), Format::Avro);
        until(|| schemas.is_known(SchemaId::Id(id))).await;
    }
    assert_eq!(broken.n_asked(), 1);
}

#[tokio::test]
async fn a_denial_counts_although_another_address_is_gone_but_not_if_it_answers_an_error() {
    let [broken, registry] = [FakeRegistry::start().await, FakeRegistry::start().await];
    broken.book.status.store(503, Ordering::Relaxed);
    let id = SchemaId::Id(8);
    let beside_closed = registry.client_of(&format!("{CLOSED},{}", registry.url), "");
    let beside_broken = registry.client_of(&format!("{},{}", registry.url, broken.url), "");
    for schemas in [&beside_closed, &beside_broken] {
        schemas.ask(id, Format::Avro);
        until(|| schemas.problem(id).is_some()).await;
    }
    let problem = beside_closed.problem(id).expect("a problem");
    let expected = format!("it is not in the registry (not every address can be reached: {CLOSED}");
    assert!(problem.starts_with(&expected), "{problem}");
    until(|| beside_closed.is_known(id)).await;
    // By then, a denial would count even with another address unreachable.
    until(|| broken.n_asked() >= 4).await;
    assert!(!beside_broken.is_known(id));
    let problem = beside_broken.problem(id).expect("a problem");
    assert!(problem.contains("it answers 503"), "{problem}");
}

#[tokio::test]
async fn a_new_schema_does_not_wait_for_the_answer_to_another() {
    let registry = FakeRegistry::start().await;
    *registry.book.hangs_at.lock().expect("not poisoned") = Some("/schemas/ids/7".to_owned());
    registry.write("/schemas/ids/8", &serde_json::json!({"schema": LIST}));
    let schemas = registry.client("registry.timeout = \"25s\"");
    schemas.ask(SchemaId::Id(7), Format::Avro);
    until(|| registry.n_asked() == 1).await;
    schemas.ask(SchemaId::Id(8), Format::Avro);
    until(|| schemas.is_known(SchemaId::Id(8))).await;
    assert_eq!(
        schemas.problem(SchemaId::Id(7)),
        None,
        "it still waits for its answer"
    );
}

#[test]
fn few_schemas_are_wanted_ahead_of_their_records() {
    let schemas = Arc::new(Schemas::open(&config("registry.url = \"http://a\"")).expect("no files"));
    let mut reader = schemas.reader(Side::Served);
    for id in 0..2_000 {
        reader.ask_ahead(&framed(id), &NoHeaders);
    }
    assert_eq!(schemas.take_new().len(), MAX_WANTED_AHEAD);
    // A record that is held is not one of them.
    let held = framed(3_000);
    let located = reader.locate(&held, &NoHeaders);
    assert!(matches!(located, Located::Awaits(SchemaId::Id(3_000))));
    assert_eq!(schemas.take_new(), [(SchemaId::Id(3_000), Format::Avro)]);
}

#[tokio::test]
async fn ids_of_apicurio_are_fetched_by_its_own_api() {
    let registry = FakeRegistry::start().await;
    let list: serde_json::Value = serde_json::from_str(LIST).expect("JSON");
    registry.write("/apis/registry/v2/ids/globalIds/9", &list);
    let schemas = registry.client_at("/apis/ccompat/v7", "events.served.framing = \"apicurio2\"");
    let mut reader = schemas.reader(Side::Served);
    let record = [&[0][..], &9_u64.to_be_bytes(), &[4], b"r7"].concat();
    assert!(matches!(
        reader.locate(&record, &NoHeaders),
        Located::Awaits(SchemaId::Global(9))
    ));
    until(|| schemas.is_known(SchemaId::Global(9))).await;
    assert_eq!(json(reader.locate(&record, &NoHeaders)), r#"{"id":"r7"}"#);
}

#[test]
fn a_file_reads_records_with_and_without_framing() {
    let file = tempfile::NamedTempFile::with_suffix(".avsc").expect("a file");
    std::fs::write(file.path(), LIST).expect("it is written");
    let config = config(&format!("schemas.served = {:?}", file.path()));
    let schemas = Arc::new(Schemas::open(&config).expect("a file"));
    let mut reader = schemas.reader(Side::Served);
    let mut deflated = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut deflated, b"\x04r7").expect("it is compressed");
    let deflated = deflated.finish().expect("it is compressed");
    let glue = [&[3, 5][..], &[9; 16], &deflated].concat();
    for record in [b"\x04r7".to_vec(), framed(7), glue] {
        assert_eq!(json(reader.locate(&record, &NoHeaders)), r#"{"id":"r7"}"#);
    }
    // An empty id begins like a prefix.
    assert_eq!(json(reader.locate(&[0], &NoHeaders)), r#"{"id":""}"#);
    let other = [&[0xc3, 1][..], &[7; 8], &[4], b"r7"].concat();
    assert!(matches!(
        reader.locate(&other, &NoHeaders),
        Located::Invalid(Reason::UnknownSchema)
    ));
}

/// A record that starts with a zero may be framed, or a bare record of the file. The registry decides.
#[test]
fn a_record_without_framing_is_read_with_the_file_once_the_registry_denies_its_id() {
    let file = tempfile::NamedTempFile::with_suffix(".avsc").expect("a file");
    let fields = r#"[{"name":"user","type":"string"},{"name":"id","type":"string"}]"#;
    let schema = format!(r#"{{"type":"record","name":"List","fields":{fields}}}"#);
    std::fs::write(file.path(), schema).expect("it is written");
    let schemas = |more: &str| {
        let text = format!(
            "registry.url = \"http://a\"\nschemas.served = {:?}\n{more}",
            file.path()
        );
        Arc::new(Schemas::open(&config(&text)).expect("a file"))
    };
    let (record, id) = (b"\0\x08r-12", SchemaId::Id(u32::from_be_bytes(*b"\x08r-1")));
    let (whole, cut) = (&record[..], &record[..record.len() - 1]);
    let as_read = r#"{"user":"","id":"r-12"}"#;

    let detecting = schemas("");
    let mut reader = detecting.reader(Side::Served);
    assert!(matches!(reader.locate(whole, &NoHeaders), Located::Awaits(awaited) if awaited == id));
    let until = Some(Instant::now() + DENIED_AFTER);
    detecting.arrived(
        id,
        Known::Unusable {
            until,
            fault: String::new(),
        },
        0,
    );
    assert_eq!(json(reader.locate(whole, &NoHeaders)), as_read);
    assert_eq!(json(reader.locate(cut, &NoHeaders)), "Invalid(UnknownSchema)");
    // A schema that the registry has is another one, even if it cannot be used.
    detecting.arrived(
        id,
        Known::Unusable {
            until: None,
            fault: String::new(),
        },
        0,
    );
    let mut reader = detecting.reader(Side::Served);
    assert_eq!(json(reader.locate(whole, &NoHeaders)), "Invalid(UnknownSchema)");

    let unframed = schemas("events.served.framing = \"none\"");
    assert_eq!(
        json(unframed.reader(Side::Served).locate(whole, &NoHeaders)),
        as_read
    );
}

#[test]
fn json_is_read_behind_any_prefix() {
    let schemas = |more: &str| {
        let config = config(&format!("registry.url = \"http://a\"\n{more}"));
        Arc::new(Schemas::open(&config).expect("no files"))
    };
    let by = |framing: Framing, record: &[u8]| {
        let (word, _) = Framing::ALL
            .iter()
            .find(|(_, of)| *of == framing)
            .expect("a word");
        let schemas = schemas(&format!("events.click.framing = \"{word}\""));
        let mut reader = schemas.reader(Side::Clicks);
        match reader.locate(record, &NoHeaders) {
            Located::Record(RawRecord { bytes, schema: None }) => bytes.to_vec(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(by(Framing::Detect, b"{}"), b"{}");
    assert_eq!(by(Framing::Detect, b"\0\0\0\0\x07{}"), b"{}");
    assert_eq!(by(Framing::Apicurio2, b"\0\0\0\0\0\0\0\0\x07{}"), b"{}");
    assert_eq!(by(Framing::Detect, b"\0"), b"\0");
    assert_eq!(by(Framing::None, b"\0\0\0\0\x07{}"), b"\0\0\0\0\x07{}");
}

/// The decoder refuses such records as `not_json`, which does not name the setting.
#[test]
fn binary_records_of_a_json_topic_are_reported_with_the_setting_of_the_format() {
    #[derive(Debug)]
    struct OfApicurio;

    impl Headers for OfApicurio {
        fn last(&self, name: &CStr) -> Option<&[u8]> {
            (name == c"apicurio.value.globalId").then_some(&[0, 0, 0, 0, 0, 0, 0, 9])
        }
    }

    let of_registry = "records that name schemas of a registry and are not JSON are invalid (not_json): set events.click.format = \"avro\" (or \"protobuf\") and registry.url";
    let bare = "records that are binary, not JSON, are invalid (not_json): if they are Avro or Protobuf, set events.click.format";
    let glue = [&[3, 0][..], &[9; 16], b"\x04r7"].concat();
    let cases: [(&[u8], &dyn Headers, Option<&str>); 7] = [
        (&framed(7), &NoHeaders, Some(of_registry)),
        (&glue, &NoHeaders, Some(of_registry)),
        (b"\x04r7", &OfApicurio, Some(of_registry)),
        (b"\x04r7", &NoHeaders, Some(bare)),
        (b"{", &OfApicurio, None),
        (b"\0\0\0\0\x07{", &NoHeaders, None),
        (b"\xef\xbb\xbf{}", &NoHeaders, None),
    ];
    for (record, headers, message) in cases {
        let schemas = Arc::new(Schemas::open(&config("registry.url = \"http://a\"")).expect("no files"));
        let mut reader = schemas.reader(Side::Clicks);
        let located = reader.locate(record, headers);
        assert!(matches!(located, Located::Record(_)), "{located:?}");
        let messages = schemas.record_faults(Side::Clicks);
        assert_eq!(
            messages.len(),
            usize::from(message.is_some()),
            "{record:?}: {messages:?}"
        );
        assert!(
            messages
                .iter()
                .all(|it| it.starts_with(message.unwrap_or_default())),
            "{messages:?}"
        );
    }
}

#[test]
fn json_without_the_required_framing_is_invalid() {
    for framing in ["confluent", "apicurio2", "header", "glue"] {
        let text = format!("events.click.framing = \"{framing}\"\nregistry.url = \"http://a\"");
        let schemas = Arc::new(Schemas::open(&config(&text)).expect("no files"));
        let mut reader = schemas.reader(Side::Clicks);
        assert_eq!(
            json(reader.locate(b"{}", &NoHeaders)),
            "Invalid(Malformed)",
            "{framing}"
        );
    }
}

/// Bare Avro, with the id of its schema in the content type.
#[test]
fn records_of_azure_are_read_with_a_file() {
    #[derive(Debug)]
    struct OfAzure;

    impl Headers for OfAzure {
        fn last(&self, name: &CStr) -> Option<&[u8]> {
            (name == c"content-type").then_some(b"avro/binary+0102030405060708090a0b0c0d0e0f10")
        }
    }

    let file = tempfile::NamedTempFile::with_suffix(".avsc").expect("a file");
    std::fs::write(file.path(), LIST).expect("it is written");
    let with_file = format!("schemas.served = {:?}\n", file.path());
    let registry = "registry.url = \"http://a\"\n";
    for (settings, read) in [
        (with_file.clone(), r#"{"id":"r7"}"#),
        (format!("{with_file}{registry}"), r#"{"id":"r7"}"#),
        (
            format!("{with_file}events.served.framing = \"header\""),
            r#"{"id":"r7"}"#,
        ),
        // A registry does not have such an id, so no record waits for it.
        (registry.to_owned(), "Invalid(UnknownSchema)"),
    ] {
        let schemas = Arc::new(Schemas::open(&config(&settings)).expect("a file"));
        let mut reader = schemas.reader(Side::Served);
        assert_eq!(json(reader.locate(b"\x04r7", &OfAzure)), read, "{settings}");
    }
}

#[test]
fn a_file_that_is_no_schema_is_refused_with_its_setting() {
    let file = tempfile::NamedTempFile::with_suffix(".avsc").expect("a file");
    std::fs::write(file.path(), "{\"type\":\"recrod\"}").expect("it is written");
    let config = config(&format!("schemas.served = {:?}", file.path()));
    let Err(error) = Schemas::open(&config) else {
        panic!("it is accepted");
    };
    assert_eq!(error.setting, "schemas.served");
    assert!(
        error.message.contains("the schema uses the type `recrod`"),
        "{error}"
    );
}

const PROTO: &str = r#"syntax = "proto3"; package shop;
message List { string id = 1; message Inner { string id = 1; } }
message Click { string id = 1; }"#;

#[test]
fn a_protobuf_record_is_read_by_the_message_that_it_names() {
    let file = SchemaFile::parse(Format::Protobuf, PROTO, &[]).expect("a schema");
    let schemas = |more: &str| {
        let config = config(&format!(
            "registry.url = \"http://a\"\nevents.click.format = \"protobuf\"\n{more}"
        ));
        Arc::new(Schemas::open(&config).expect("no files"))
    };
    let read = |schemas: &Arc<Schemas>, indexes: &[u8]| {
        let record = [&[0, 0, 0, 0, 7], indexes, &[0x0a, 2], b"r7"].concat();
        json(schemas.reader(Side::Clicks).locate(&record, &NoHeaders))
    };
    let any = schemas("");
    let wanted = schemas("events.click.message = \"shop.Click\"");
    let known = Known::Usable(Arc::new(file));
    for schemas in [&any, &wanted] {
        schemas.arrived(SchemaId::Id(7), known.clone(), 0);
    }
    for indexes in [&[0][..], &[2, 0], &[2, 2], &[4, 0, 0]] {
        assert_eq!(read(&any, indexes), r#"{"id":"r7"}"#, "{indexes:?}");
    }
    assert_eq!(read(&any, &[2, 4]), "Invalid(UnknownSchema)");
    assert_eq!(read(&wanted, &[2, 2]), r#"{"id":"r7"}"#);
    assert_eq!(read(&wanted, &[0]), "Ignored");
    // The form of Apicurio.
    let click = b"\x07\x0a\x05Click";
    assert_eq!(read(&any, click), r#"{"id":"r7"}"#);
    assert_eq!(read(&wanted, click), r#"{"id":"r7"}"#);
    assert_eq!(read(&wanted, b"\x06\x0a\x04List"), "Ignored");
    // No message is named, so the setting decides, or the record is not read.
    assert_eq!(read(&wanted, &[]), r#"{"id":"r7"}"#);
    assert_eq!(read(&any, &[]), "Invalid(UnknownSchema)");
}

#[test]
fn a_record_that_the_settings_exclude_is_reported_once_with_the_fix() {
    let list = SchemaFile::parse(Format::Avro, LIST, &[]).expect("a schema");
    let proto = SchemaFile::parse(Format::Protobuf, PROTO, &[]).expect("a schema");
    let known = [Known::Usable(Arc::new(list)), Known::Usable(Arc::new(proto))];
    let single_object = [&[0xc3, 1][..], &[7; 8]].concat();
    let cases: [(&str, &[u8], &str); 9] = [
        (
            "events.click.format = \"avro\"",
            b"{\"id\":\"r7\"}\n",
            "are JSON, although their topic has another format, are invalid (malformed): set events.click.format = \"json\"",
        ),
        (
            "events.click.format = \"protobuf\"\nevents.click.framing = \"header\"",
            b"{}",
            "are JSON, although their topic has another format, are invalid (malformed): set events.click.format = \"json\"",
        ),
        (
            "events.click.format = \"avro\"",
            b"\x04r7",
            "name no schema are invalid (unknown_schema): set schemas.click to the file",
        ),
        (
            "events.click.format = \"avro\"",
            &[&[3, 0][..], &[9; 16]].concat(),
            "name a schema of AWS Glue are invalid (unknown_schema): set schemas.click to the file",
        ),
        (
            "events.click.format = \"avro\"",
            &single_object,
            "does not match schemas.click are invalid (unknown_schema): set schemas.click to the file",
        ),
        (
            "events.click.format = \"avro\"\nevents.click.framing = \"header\"",
            b"\x04r7",
            "lack the framing that events.click.framing requires are invalid (malformed): set it to",
        ),
        (
            "events.click.format = \"avro\"",
            b"\0\0\0\0\x01\0",
            "not in the format of events.click.format are invalid (unknown_schema)",
        ),
        (
            "events.click.format = \"protobuf\"",
            b"\0\0\0\0\x01\x0a\x02r7",
            "name none of the messages of their schema are invalid (unknown_schema): set events.click.message to one of shop.List, shop.Click",
        ),
        (
            "events.click.format = \"protobuf\"",
            b"\0\0\0\0\x01\x05\x0a\x03Tap\x0a\x02r7",
            "name a message other than those of their schema, shop.List, shop.Click, are invalid",
        ),
    ];
    for (settings, record, message) in cases {
        let config = config(&format!("registry.url = \"http://a\"\n{settings}"));
        let schemas = Arc::new(Schemas::open(&config).expect("no files"));
        for (id, known) in (0..).zip(&known) {
            schemas.arrived(SchemaId::Id(id), known.clone(), 0);
        }
        let log = logged(|| {
            // Two shards, each with several records.
            for _ in 0..2 {
                let mut reader = schemas.reader(Side::Clicks);
                for _ in 0..3 {
                    let located = reader.locate(record, &NoHeaders);
                    assert!(matches!(located, Located::Invalid(_)), "{message}: {located:?}");
                }
            }
        });
        assert_eq!(log.lines().count(), 1, "{log}");
        assert!(
            log.contains(message) && log.contains("topic=\"clicks\""),
            "{message}: {log}"
        );
    }
}

#[test]
fn a_file_with_several_messages_needs_the_name_of_one() {
    let file = tempfile::NamedTempFile::with_suffix(".proto").expect("a file");
    std::fs::write(file.path(), PROTO).expect("it is written");
    let open = |message: &str| {
        let text = format!(
            "events.click.format = \"protobuf\"\n{message}\nregistry.url = \"http://a\"\nschemas.click = {:?}",
            file.path()
        );
        Schemas::open(&config(&text)).map(Arc::new)
    };
    for (message, fault) in [
        ("", "has several messages"),
        (
            "events.click.message = \"shop.Clik\"",
            "has no message `shop.Clik`",
        ),
    ] {
        let Err(error) = open(message) else {
            panic!("{message}");
        };
        assert_eq!(error.setting, "events.click.message");
        assert!(error.message.contains(fault), "{error}");
        assert!(
            error.remedy.ends_with("shop.List, shop.Click"),
            "{}",
            error.remedy
        );
    }
    let schemas = open("events.click.message = \"shop.Click\"").expect("it is there");
    let located = json(schemas.reader(Side::Clicks).locate(b"\x0a\x02r7", &NoHeaders));
    assert_eq!(located, r#"{"id":"r7"}"#);
}

/// Names the paths that a schema lacks, and not those that another kind in the same topic has.
#[test]
fn a_schema_without_the_needed_fields_is_told_apart() {
    let list = SchemaFile::parse(Format::Avro, LIST, &[]).expect("a schema");
    let SchemaFile::Avro { schema, .. } = list else {
        panic!("another format")
    };
    let lacks = |more: &str| {
        let text = format!(
            "kafka.brokers = \"b:1\"\nevents.served.format = \"avro\"\nregistry.url = \"http://a\"\n{more}"
        );
        let config = settings::load_text("abgauge.toml", &text, std::iter::empty());
        let schemas = Schemas::open(&config.expect("valid")).expect("no files");
        schemas.lacks(Side::Served, &schema)
    };
    let needed = [
        "events.served.request_id = \"request_id\"",
        "events.served.ts = \"ts\"",
        "events.served.items = \"items\"",
    ];
    assert_eq!(lacks(""), needed);
    let mapped = "events.served.request_id = \"id\"\nevents.served.ts = \"id\"\nevents.served.items = \"id\"";
    assert_eq!(lacks(mapped), Vec::<String>::new());
    let click = "kafka.clicks_topic = \"served\"\nevents.click.request_id = \"id\"\nevents.click.ts = \"id\"\nevents.click.item = \"id\"";
    assert_eq!(lacks(click), Vec::<String>::new());
}

/// Registries count from 1, so a zero is the start of an id of 8 bytes.
#[tokio::test]
async fn a_denial_of_id_0_suggests_the_framing_of_apicurio_2() {
    let registry = FakeRegistry::start().await;
    let schemas = registry.client("");
    for (id, is_hinted) in [(0, true), (7, false)] {
        let id = SchemaId::Id(id);
        schemas.ask(id, Format::Avro);
        let hint = "if Apicurio 2 wrote these records, set events.served.framing";
        until(|| schemas.problem(id).is_some()).await;
        let problem = schemas.problem(id).unwrap_or_default();
        until(|| schemas.is_known(id)).await;
        let fault = schemas.fault(id).unwrap_or_default();
        for text in [problem, fault] {
            assert_eq!(text.contains(hint), is_hinted, "{text}");
        }
    }
}

#[tokio::test]
async fn tls_on_a_plain_port_suggests_http() {
    let registry = FakeRegistry::start().await;
    let authority = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), authority.cert.pem()).expect("it is written");
    let more = format!("registry.ca_file = {:?}", file.path());
    let schemas = registry.client_of(&registry.url.replace("http://", "https://"), &more);
    let id = SchemaId::Id(7);
    schemas.ask(id, Format::Avro);
    until(|| schemas.problem(id).is_some()).await;
    let problem = schemas.problem(id).expect("a problem");
    assert!(
        problem.ends_with(": if this port has no TLS, write http:// in registry.url"),
        "{problem}"
    );
}
