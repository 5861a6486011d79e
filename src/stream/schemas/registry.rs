//! Client of a schema registry: fetches the schemas that records wait for, by the APIs of Confluent and Apicurio.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use abgauge_core::decode::framing::{Format, SchemaId};
use anyhow::{Context as _, anyhow};
use axum::body::{self, Body};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::{StreamExt as _, stream};
use hyper::header::{ACCEPT, AUTHORIZATION, HeaderValue, USER_AGENT};
use hyper::{Request, StatusCode};
use serde::Deserialize;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::{DENIED_AFTER, Known, SchemaFile, Schemas};
use crate::https::{self, AGENT, HttpsClient, Identity, Named};
use crate::settings::{HttpUrl, Registry, RegistryCredentials, UnusableFile};

/// Number of simultaneous requests.
const AT_ONCE: usize = 8;
/// Maximum size of an answer.
const MAX_ANSWER: usize = 16 << 20;
/// Maximum size of an error.
const MAX_ERROR: usize = 64 << 10;
/// Maximum number of schemas that one schema refers to, directly and indirectly.
const MAX_REFERENCES: usize = 1_000;
/// Wait after the first failure. It doubles with each further one.
const FIRST_WAIT: Duration = Duration::from_millis(250);
const LONGEST_WAIT: Duration = Duration::from_secs(15);
/// Wait after a denial: a replica may lag.
const AFTER_DENIAL: Duration = Duration::from_secs(2);
/// Time until a schema that is denied for good is asked for again.
const ASK_AGAIN: Duration = Duration::from_secs(60);

/// Background task that fetches schemas.
pub struct RegistryClient {
    schemas: Arc<Schemas>,
    registry: Arc<Registry>,
    attempts: BTreeMap<SchemaId, Attempts>,
    denied_after: Duration,
}

/// Attempts to fetch a schema so far.
#[derive(Debug, Clone, Copy)]
struct Attempts {
    n_failed: u32,
    next: Instant,
    /// Time since which every answer has been a denial.
    denied_since: Option<Instant>,
}

/// Answer of a registry.
#[derive(Debug)]
enum Answer {
    Schema(Box<Fetched>),
    /// The registry does not know the schema.
    Denied,
}

/// Schema with those that it refers to, dependencies first.
#[derive(Debug)]
struct Fetched {
    format: Format,
    text: String,
    references: Vec<(String, String)>,
}

/// Schema in Confluent's API.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ConfluentSchema {
    schema: String,
    /// Absent for Avro.
    #[serde(default)]
    schema_type: Option<String>,
    #[serde(default)]
    references: Option<Vec<Reference>>,
}

#[derive(Debug, Deserialize)]
struct Reference {
    name: String,
    subject: String,
    version: i64,
}

/// Connection to the registry, with the credentials of one round.
struct Session<'a> {
    registry: &'a Registry,
    client: HttpsClient,
    authorization: Option<HeaderValue>,
}

impl RegistryClient {
    /// Returns the client; `None` without a registry.
    ///
    /// # Errors
    /// A file of `[registry]` cannot be used.
    pub fn open(schemas: &Arc<Schemas>) -> Result<Option<RegistryClient>, UnusableFile> {
        let Some(registry) = &schemas.formats.registry else {
            return Ok(None);
        };
        // Read again for each round, so that renewed files need no restart.
        Session::open(registry)?;
        Ok(Some(RegistryClient {
            registry: Arc::new(registry.clone()),
            schemas: Arc::clone(schemas),
            attempts: BTreeMap::new(),
            denied_after: DENIED_AFTER,
        }))
    }

    /// Replaces the time for which the registry must deny a schema.
    pub fn denying_after(self, denied_after: Duration) -> RegistryClient {
        RegistryClient { denied_after, ..self }
    }

    /// Runs until `stop`.
    pub async fn run(mut self, stop: CancellationToken) {
        tokio::select! {
            () = stop.cancelled() => {}
            () = async { loop { self.round().await } } => {}
        }
    }

    /// Fetches the wanted schemas, once. Afterwards each of them is known or has a problem.
    ///
    /// # Errors
    /// If no runtime can be started.
    pub fn fetch_once(&mut self) -> anyhow::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.context("start the asynchronous runtime")?;
        self.attempts.clear();
        if !self.schemas.wanted().is_empty() {
            runtime.block_on(self.round());
        }
        Ok(())
    }

    /// Fetches the schemas that are due, or waits until one is.
    async fn round(&mut self) {
        let now = Instant::now();
        let wanted = self.schemas.wanted();
        self.attempts.retain(|id, _| wanted.contains_key(id));
        let next_of = |id: &SchemaId| self.attempts.get(id).map_or(now, |attempts| attempts.next);
        let due: Vec<(SchemaId, Format)> = wanted
            .iter()
            .map(|(id, format)| (*id, *format))
            .filter(|(id, _)| next_of(id) <= now)
            .collect();
        if due.is_empty() {
            let next = wanted.keys().map(next_of).min();
            let pause = next.map_or(ASK_AGAIN, |next| next.saturating_duration_since(now));
            tokio::select! {
                () = self.schemas.wakes_client.notified() => {}
                () = tokio::time::sleep(pause) => {}
            }
            return;
        }
        let registry = Arc::clone(&self.registry);
        // Files may be on a slow volume, so they are not read on a thread of the runtime.
        let session = tokio::task::spawn_blocking({
            let registry = Arc::clone(&registry);
            move || Session::open(&registry).map(|session| (session.client, session.authorization))
        });
        let session = session
            .await
            .context("read the files")
            .and_then(|opened| Ok(opened?));
        let (client, authorization) = match session {
            Ok(opened) => opened,
            Err(error) => {
                for (id, _) in due {
                    self.take(id, Err(anyhow!("{error:#}")));
                }
                return;
            }
        };
        let session = &Session {
            registry: &registry,
            client,
            authorization,
        };
        let mut answers = stream::iter(due)
            .map(async |(id, format)| (id, session.fetch(id, format).await))
            .buffer_unordered(AT_ONCE);
        while let Some((id, answer)) = answers.next().await {
            self.take(id, answer);
        }
    }

    fn take(&mut self, id: SchemaId, answer: anyhow::Result<Answer>) {
        let now = Instant::now();
        let attempts = self.attempts.entry(id).or_insert(Attempts {
            n_failed: 0,
            next: now,
            denied_since: None,
        });
        match answer {
            Ok(Answer::Schema(fetched)) => {
                self.attempts.remove(&id);
                self.schemas.take_fetched(id, &fetched);
            }
            Ok(Answer::Denied) => {
                let since = *attempts.denied_since.get_or_insert(now);
                attempts.n_failed = 0;
                attempts.next = now + AFTER_DENIAL;
                if now.duration_since(since) >= self.denied_after {
                    self.attempts.remove(&id);
                    self.schemas.deny(id, ASK_AGAIN);
                    return;
                }
                let problem = format!(
                    "it is not in the registry; after {} s such records count as invalid (unknown_schema)",
                    self.denied_after.as_secs()
                );
                self.schemas.failed(id, problem);
            }
            Err(error) => {
                attempts.denied_since = None;
                attempts.next = now + (FIRST_WAIT * 2_u32.pow(attempts.n_failed.min(16))).min(LONGEST_WAIT);
                attempts.n_failed += 1;
                self.schemas.failed(id, format!("{error:#}"));
            }
        }
    }
}

impl Schemas {
    fn take_fetched(&self, id: SchemaId, fetched: &Fetched) {
        let n_bytes = fetched.text.len()
            + fetched
                .references
                .iter()
                .map(|(_, text)| text.len())
                .sum::<usize>();
        let known = match SchemaFile::parse(fetched.format, &fetched.text, &fetched.references) {
            Ok(file) => {
                info!(schema = %id, "fetched a schema");
                Known::Usable(Arc::new(file))
            }
            Err(fault) => {
                warn!(
                    schema = %id,
                    "a schema of the registry cannot be used: {fault}; its records count as invalid (unknown_schema)"
                );
                Known::Unusable {
                    until: None,
                    fault: format!("it cannot be used: {fault}"),
                }
            }
        };
        self.arrived(id, known, n_bytes);
    }

    fn deny(&self, id: SchemaId, for_: Duration) {
        warn!(
            schema = %id,
            "a schema is not in the registry: its records count as invalid (unknown_schema) until it is registered"
        );
        let until = Some(Instant::now() + for_);
        let fault = "it is not in the registry".to_owned();
        self.arrived(id, Known::Unusable { until, fault }, 0);
    }
}

impl<'a> Session<'a> {
    fn open(registry: &'a Registry) -> Result<Session<'a>, UnusableFile> {
        let authorities = Named {
            setting: "registry.ca_file",
            path: registry.ca_file.as_deref(),
        };
        let identity = registry.identity.as_ref().map(|files| Identity {
            settings: ["registry.certificate_file", "registry.key_file"],
            files,
        });
        let tls = registry.urls.iter().find(|url| url.is_tls());
        let url = tls.unwrap_or(&registry.urls[0]);
        Ok(Session {
            registry,
            client: https::client_with_pool(https::trusting_as(authorities, identity, url)?, AT_ONCE),
            authorization: registry.credentials.as_ref().map(authorization).transpose()?,
        })
    }

    async fn fetch(&self, id: SchemaId, format: Format) -> anyhow::Result<Answer> {
        match id {
            SchemaId::Id(id) => self.confluent(&format!("/schemas/ids/{id}")).await,
            SchemaId::Guid(_) => self.confluent(&format!("/schemas/guids/{id}")).await,
            SchemaId::Global(id) => self.apicurio(&format!("globalIds/{id}"), format).await,
            SchemaId::Content(id) => self.apicurio(&format!("contentIds/{id}"), format).await,
            SchemaId::Fingerprint(_) | SchemaId::Glue(_) | SchemaId::Azure(_) => Ok(Answer::Denied),
        }
    }

    async fn confluent(&self, path: &str) -> anyhow::Result<Answer> {
        let Some(schema) = self.schema(path).await? else {
            return Ok(Answer::Denied);
        };
        let format = match schema.schema_type.as_deref() {
            None | Some("AVRO") => Format::Avro,
            Some("PROTOBUF") => Format::Protobuf,
            Some(_) => Format::Json,
        };
        let mut references = Vec::new();
        let mut names = HashSet::new();
        // Depth first; a schema follows those that it refers to.
        let mut open = vec![Step::Visit(schema.references.unwrap_or_default())];
        while let Some(step) = open.pop() {
            match step {
                Step::Visit(references) => open.extend(references.into_iter().rev().map(Step::Fetch)),
                Step::Fetch(reference) => {
                    if !names.insert(reference.name.clone()) {
                        continue;
                    }
                    if names.len() > MAX_REFERENCES {
                        return Err(anyhow!("it refers to more than {MAX_REFERENCES} others"));
                    }
                    let subject = encoded(&reference.subject);
                    let path = format!("/subjects/{subject}/versions/{}", reference.version);
                    let Some(schema) = self.schema(&path).await? else {
                        return Err(anyhow!(
                            "it refers to version {} of the subject {}, which the registry does not know",
                            reference.version,
                            reference.subject
                        ));
                    };
                    open.push(Step::Done(reference.name, schema.schema));
                    open.push(Step::Visit(schema.references.unwrap_or_default()));
                }
                Step::Done(name, text) => references.push((name, text)),
            }
        }
        Ok(Answer::Schema(Box::new(Fetched {
            format,
            text: schema.schema,
            references,
        })))
    }

    async fn schema(&self, path: &str) -> anyhow::Result<Option<ConfluentSchema>> {
        let Some(body) = self.get(|_| path.to_owned()).await? else {
            return Ok(None);
        };
        let schema = serde_json::from_slice(&body);
        Ok(Some(
            schema.context("registry.url does not answer as a schema registry")?,
        ))
    }

    /// Fetches a schema by the API of Apicurio, whose address is the one of its root, or of its copy of Confluent's API.
    async fn apicurio(&self, path: &str, format: Format) -> anyhow::Result<Answer> {
        let (mut is_denied, mut failed) = (false, None);
        // Apicurio 2 answers only to v2.
        for version in ["v3", "v2"] {
            let path = |url: &HttpUrl| {
                let base = url.uri().path();
                let root = base.find("/apis/").map_or(base, |at| &base[..at]);
                let root = root.trim_end_matches('/');
                let below = format!("/apis/registry/{version}/ids/{path}");
                // Relative to the address that is set.
                format!("{root}{below}")
            };
            match self.get_at(path).await {
                Ok(Some(body)) => {
                    let text = String::from_utf8(body).context("the schema is not text")?;
                    let references = Vec::new();
                    return Ok(Answer::Schema(Box::new(Fetched {
                        format,
                        text,
                        references,
                    })));
                }
                Ok(None) => is_denied = true,
                Err(error) => failed = Some(error),
            }
        }
        match failed {
            Some(error) if !is_denied => Err(error),
            _ => Ok(Answer::Denied),
        }
    }

    async fn get(&self, path: impl Fn(&HttpUrl) -> String) -> anyhow::Result<Option<Vec<u8>>> {
        self.get_at(|url| format!("{}{}", url.uri().path().trim_end_matches('/'), path(url)))
            .await
    }

    /// Returns the first answer of an address; `None` if all of them deny it.
    async fn get_at(&self, path: impl Fn(&HttpUrl) -> String) -> anyhow::Result<Option<Vec<u8>>> {
        let mut failed = None;
        for url in &self.registry.urls {
            let within = self.registry.timeout;
            let answer = timeout(within, self.get_from(url, &path(url))).await;
            let answer =
                answer.unwrap_or_else(|_| Err(anyhow!("no answer within {within:?} (registry.timeout)")));
            match answer {
                Ok(Some(body)) => return Ok(Some(body)),
                Ok(None) => {}
                Err(error) => failed = Some(error.context(url.to_string())),
            }
        }
        // One address that cannot answer may know what the others deny.
        failed.map_or(Ok(None), Err)
    }

    async fn get_from(&self, url: &HttpUrl, path: &str) -> anyhow::Result<Option<Vec<u8>>> {
        let mut parts = url.uri().clone().into_parts();
        parts.path_and_query = Some(path.parse()?);
        let mut request = Request::get(hyper::Uri::from_parts(parts)?)
            .header(USER_AGENT, AGENT)
            .header(
                ACCEPT,
                "application/vnd.schemaregistry.v1+json, application/json, */*",
            );
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        let answer = self.client.request(request.body(Body::empty())?).await;
        let answer = answer.map_err(with_causes)?;
        match answer.status() {
            StatusCode::OK => {
                let body = body::to_bytes(Body::new(answer.into_body()), MAX_ANSWER).await;
                Ok(Some(
                    body.context("its answer breaks off, or is larger than 16 MiB")?
                        .into(),
                ))
            }
            StatusCode::NOT_FOUND => {
                let body = body::to_bytes(Body::new(answer.into_body()), MAX_ERROR).await;
                match body.is_ok_and(|body| is_denial(&body)) {
                    true => Ok(None),
                    false => Err(anyhow!(
                        "it answers 404 to {path} without a registry's error: check the path in registry.url"
                    )),
                }
            }
            status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => Err(match self.authorization {
                Some(_) => anyhow!(
                    "it answers {status}: check registry.username and registry.password_file, or registry.token_file"
                ),
                None => anyhow!(
                    "it answers {status}: set registry.username and registry.password_file, or registry.token_file"
                ),
            }),
            status if status.is_redirection() => Err(anyhow!(
                "it answers {status}, and redirects are not followed: set registry.url to the final address"
            )),
            status => Err(anyhow!("it answers {status}")),
        }
    }
}

/// Error in the API of Confluent or of Apicurio.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RegistryError {
    error_code: i64,
    /// Class of Apicurio's exception.
    name: String,
}

/// Returns whether an answer with status 404 reports that a schema, version or subject is absent. A wrong path, or a proxy
/// without a registry, has the same status.
pub(super) fn is_denial(body: &[u8]) -> bool {
    let Ok(RegistryError { error_code, name }) = serde_json::from_slice(body) else {
        return false;
    };
    // `NotFoundException` alone is Apicurio's answer to a path that it does not have.
    let is_of_schema = name.ends_with("NotFoundException") && name != "NotFoundException";
    (40401..=40403).contains(&error_code) || is_of_schema
}

/// Part of a walk over the schemas that a schema refers to.
enum Step {
    Visit(Vec<Reference>),
    Fetch(Reference),
    Done(String, String),
}

/// Returns an error with the messages of all its causes.
fn with_causes(error: hyper_util::client::legacy::Error) -> anyhow::Error {
    let error = anyhow::Error::new(error);
    // The outermost message of the client says nothing.
    let causes: Vec<String> = error.chain().skip(1).map(ToString::to_string).collect();
    match causes.is_empty() {
        true => error,
        false => anyhow!(causes.join(": ")),
    }
}

fn authorization(credentials: &RegistryCredentials) -> Result<HeaderValue, UnusableFile> {
    match credentials {
        RegistryCredentials::Token(file) => https::secret(
            "registry.token_file",
            file,
            "Bearer ",
            "write the token as one line",
        ),
        RegistryCredentials::Password {
            username,
            password_file,
        } => {
            let setting = "registry.password_file";
            // Both are in UTF-8 (RFC 7617), and neither is limited to the characters of a header.
            let password = https::secret_line(setting, password_file, "write the password as one line")?;
            let pair = [username.as_bytes(), b":", &password].concat();
            let value = HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(pair)));
            let mut value = value.expect("base64 is ASCII");
            value.set_sensitive(true);
            Ok(value)
        }
    }
}

/// Encodes a subject for a path: everything but letters, digits and `-._~`.
fn encoded(subject: &str) -> String {
    let mut path = String::new();
    for byte in subject.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                path.push(char::from(byte))
            }
            _ => {
                let _ = write!(path, "%{byte:02X}");
            }
        }
    }
    path
}
