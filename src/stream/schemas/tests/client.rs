//! The client, against a registry in this process.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use abgauge_core::decode::framing::NoHeaders;
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

/// Address that nothing listens to.
const CLOSED: &str = "http://127.0.0.1:1";

/// Schema that refers to the other.
const OUTER: &str = r#"{"type":"record","name":"Outer","fields":[{"name":"list","type":"List"}]}"#;

/// Answers by path, and the requests so far.
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
