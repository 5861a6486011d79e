//! A server in front of a schema registry. It passes requests on, or answers with a fault.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::certificates::Signed;
use super::tools;

/// First 12 bytes of the GUID of every schema. The others are its id.
const GUID: &str = "61626761-7567-6521-8000-0000";

/// A server on its own port of 127.0.0.1.
pub struct Front {
    address: SocketAddr,
    book: Arc<Book>,
    is_tls: bool,
    /// Stops the server when dropped.
    _runtime: Runtime,
}

/// Behavior of the server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Fault {
    #[default]
    None,
    /// Closes each connection at once.
    Down,
    /// Accepts requests and never answers.
    Hangs,
    Status(u16),
    Slow(Duration),
}

#[derive(Default)]
struct Book {
    /// Address of the registry; without one, only `pages` are known.
    registry: Option<String>,
    /// Answers by path.
    pages: Mutex<HashMap<String, String>>,
    fault: Mutex<Fault>,
    /// Authorization that is required.
    password: Mutex<Option<String>>,
    n_requests: Mutex<HashMap<String, u32>>,
}

impl Front {
    /// Starts a server before this registry.
    pub fn before(registry: &str) -> Front {
        Front::start(Some(registry.to_owned()), None)
    }

    /// Starts a server that only has the schemas that the test gives it.
    pub fn alone() -> Front {
        Front::start(None, None)
    }

    pub fn with_tls(registry: Option<String>, signed: &Signed) -> Front {
        Front::start(registry, Some(signed))
    }

    fn start(registry: Option<String>, signed: Option<&Signed>) -> Front {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, tools::free_port()));
        let book = Arc::new(Book {
            registry,
            ..Book::default()
        });
        let acceptor = signed.map(acceptor);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let listener = runtime
            .block_on(TcpListener::bind(address))
            .expect("listen on the port");
        let is_tls = acceptor.is_some();
        runtime.spawn(serve(listener, Arc::clone(&book), acceptor));
        Front {
            address,
            book,
            is_tls,
            _runtime: runtime,
        }
    }

    pub fn url(&self) -> String {
        let scheme = if self.is_tls { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// Changes its behavior from the next request on.
    pub fn set(&self, fault: Fault) {
        *self.book.fault.lock().expect("the fault") = fault;
    }

    /// Adds a schema of Confluent's API.
    pub fn add(&self, id: u32, schema: &Value) {
        let answer = serde_json::json!({"schema": schema.to_string()});
        let mut pages = self.book.pages.lock().expect("the pages");
        pages.insert(format!("/schemas/ids/{id}"), answer.to_string());
    }

    /// Requires a user and a password.
    pub fn protect(&self, user: &str, password: &str) {
        let pair = STANDARD.encode(format!("{user}:{password}"));
        *self.book.password.lock().expect("the password") = Some(format!("Basic {pair}"));
    }

    /// Returns the number of requests so far, by path.
    pub fn requests(&self) -> HashMap<String, u32> {
        self.book.n_requests.lock().expect("the requests").clone()
    }
}

fn acceptor(signed: &Signed) -> TlsAcceptor {
    let certificates = CertificateDer::pem_file_iter(&signed.certificate).expect("certificates");
    let certificates = certificates.collect::<Result<_, _>>().expect("certificates");
    let key = PrivateKeyDer::from_pem_file(&signed.key).expect("a key");
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .expect("a certificate with its key");
    TlsAcceptor::from(Arc::new(config))
}

async fn serve(listener: TcpListener, book: Arc<Book>, acceptor: Option<TlsAcceptor>) {
    let router = Router::new().fallback(answer).with_state(Arc::clone(&book));
    while let Ok((connection, _)) = listener.accept().await {
        let is_down = *book.fault.lock().expect("the fault") == Fault::Down;
        if !is_down {
            tokio::spawn(one(connection, router.clone(), acceptor.clone()));
        }
    }
}

async fn one(connection: TcpStream, router: Router, acceptor: Option<TlsAcceptor>) {
    let service = TowerToHyperService::new(router);
    // Without keep-alive, so that a fault holds from the next request on. Errors are the client's to report.
    let mut http = http1::Builder::new();
    http.keep_alive(false);
    match acceptor {
        None => drop(http.serve_connection(TokioIo::new(connection), service).await),
        Some(acceptor) => {
            if let Ok(connection) = acceptor.accept(connection).await {
                drop(http.serve_connection(TokioIo::new(connection), service).await);
            }
        }
    }
}

async fn answer(State(book): State<Arc<Book>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path().to_owned();
    *book
        .n_requests
        .lock()
        .expect("the requests")
        .entry(path.clone())
        .or_default() += 1;
    let fault = *book.fault.lock().expect("the fault");
    match fault {
        Fault::None | Fault::Down => {}
        Fault::Hangs => std::future::pending().await,
        Fault::Slow(delay) => tokio::time::sleep(delay).await,
        Fault::Status(status) => {
            return StatusCode::from_u16(status).expect("a status").into_response();
        }
    }
    let required = book.password.lock().expect("the password").clone();
    let given = parts
        .headers
        .get("authorization")
        .and_then(|value| value.to_str().ok());
    if required.is_some() && required.as_deref() != given {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    if let Some(page) = book.pages.lock().expect("the pages").get(&path) {
        return page.clone().into_response();
    }
    let Some(registry) = book.registry.clone() else {
        let absent = r#"{"error_code":40403,"message":"Schema not found"}"#;
        return (StatusCode::NOT_FOUND, absent).into_response();
    };
    let body = axum::body::to_bytes(body, usize::MAX)
        .await
        .expect("a whole body");
    let method = parts.method;
    let target = parts
        .uri
        .path_and_query()
        .map_or(path, |target| target.as_str().to_owned());
    tokio::task::spawn_blocking(move || pass_on(&registry, &method, &target, &body))
        .await
        .expect("it does not panic")
}

/// Asks the registry. It has no GUIDs, so each schema gets one that ends in its id.
fn pass_on(registry: &str, method: &Method, target: &str, body: &Bytes) -> Response {
    let target = match target.strip_prefix(&format!("/schemas/guids/{GUID}")) {
        Some(id) => format!("/schemas/ids/{}", u32::from_str_radix(id, 16).expect("an id")),
        None => target.to_owned(),
    };
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .proxy(None)
        .build()
        .into();
    let url = format!("{registry}{target}");
    let answer = match *method {
        Method::POST => agent
            .post(&url)
            .header("content-type", "application/json")
            .send(&body[..]),
        _ => agent.get(&url).call(),
    };
    let Ok(mut answer) = answer else {
        return StatusCode::BAD_GATEWAY.into_response();
    };
    let status = StatusCode::from_u16(answer.status().as_u16()).expect("a status");
    let mut text = answer.body_mut().read_to_string().expect("text");
    if let Ok(Value::Object(mut object)) = serde_json::from_str(&text)
        && let Some(id) = object.get("id").and_then(Value::as_u64)
    {
        object.insert("guid".to_owned(), format!("{GUID}{id:08x}").into());
        text = Value::Object(object).to_string();
    }
    (status, [("content-type", "application/json")], text).into_response()
}
