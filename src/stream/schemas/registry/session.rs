//! Connection to a schema registry: fetches a schema and its references, by the APIs of Confluent and Apicurio.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use abgauge_core::decode::framing::{Format, SchemaId};
use abgauge_core::decode::schema::SchemaFault;
use anyhow::{Context as _, anyhow};
use axum::body::{self, Body};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue, USER_AGENT};
use hyper::{Request, Response, StatusCode};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use super::super::SchemaFile;
use crate::https::{self, AGENT, HttpsClient, Identity, Named};
use crate::settings::{HttpUrl, Registry, RegistryCredentials, UnusableFile};

/// Number of simultaneous requests.
pub const AT_ONCE: usize = 8;
/// Bytes that are encoded in a subject in a path: all but letters, digits and `-._~`.
const SUBJECT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');
/// Maximum size of an answer, and of a schema with all those that it refers to.
const MAX_ANSWER: usize = 16 << 20;
/// Maximum size of an answer with an error.
const MAX_ERROR: usize = 64 << 10;
/// Maximum number of schemas that one schema refers to, directly and indirectly. It bounds the depth, too.
const MAX_REFERENCES: usize = 1_000;

/// Connection to the registry, with its credentials.
pub struct Session {
    registry: Arc<Registry>,
    client: HttpsClient,
    authorization: Option<HeaderValue>,
    /// Index of the address that answered last.
    address: Arc<AtomicUsize>,
}

/// Schema of the registry.
pub struct Fetched {
    pub file: SchemaFile,
    /// Size of the schema's text, and of the schemas that it refers to.
    pub n_bytes: usize,
}

/// Reason why a schema was not fetched.
#[derive(Debug)]
pub enum Failure {
    Denied(Denial),
    /// The schema was fetched, but cannot be used. Asking again does not help.
    Unusable(SchemaFault),
    /// No address gave a valid answer.
    Other(anyhow::Error),
}

/// Answer that the registry does not have a schema, or one that it refers to.
#[derive(Debug, Default)]
pub struct Denial {
    /// Referenced schema that is denied, if it is not the schema itself.
    pub referred: Option<String>,
    /// Problem of an address that cannot be reached but may have the schema.
    pub unreachable: Option<String>,
}

/// Problem of one address.
enum Trouble {
    Unreachable(anyhow::Error),
    /// The address answers, but not as a registry should.
    Answer(anyhow::Error),
}

/// Schema with the places of the schemas that it refers to.
struct Page {
    text: String,
    references: Vec<Reference>,
}

/// Name by which a schema refers to another one, and its place.
struct Reference {
    name: String,
    place: Place,
}

/// Place of a schema in the registry.
#[derive(Debug)]
enum Place {
    /// In Confluent's API.
    Version { subject: String, version: i64 },
    /// In this version of Apicurio's API.
    Artifact {
        api: Api,
        group: String,
        id: String,
        version: String,
    },
}

/// Version of Apicurio's API.
#[derive(Debug, Clone, Copy)]
enum Api {
    V3,
    V2,
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
    references: Option<Vec<ConfluentReference>>,
}

#[derive(Debug, Deserialize)]
struct ConfluentReference {
    name: String,
    subject: String,
    version: i64,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ApicurioReference {
    name: String,
    /// Absent for the default group.
    #[serde(default)]
    group_id: Option<String>,
    artifact_id: String,
    version: String,
}

/// Part of a walk over the schemas that a schema refers to.
enum Step {
    Visit(Vec<Reference>),
    Fetch(Reference),
    Done(String, String),
}

impl Session {
    pub fn open(registry: &Arc<Registry>, address: &Arc<AtomicUsize>) -> Result<Session, UnusableFile> {
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
            client: https::client_with_pool(https::trusting_as(authorities, identity, url)?, AT_ONCE),
            authorization: registry.credentials.as_ref().map(authorization).transpose()?,
            registry: Arc::clone(registry),
            address: Arc::clone(address),
        })
    }

    /// Fetches a schema. `format` is the format of its topic.
    pub async fn fetch(&self, id: SchemaId, format: Format) -> Result<Fetched, Failure> {
        match id {
            SchemaId::Id(id) => self.confluent(&format!("/schemas/ids/{id}")).await,
            SchemaId::Guid(_) => self.confluent(&format!("/schemas/guids/{id}")).await,
            SchemaId::Global(id) => self.apicurio(&format!("ids/globalIds/{id}"), format).await,
            SchemaId::Content(id) => self.apicurio(&format!("ids/contentIds/{id}"), format).await,
            SchemaId::Fingerprint(_) | SchemaId::Glue(_) | SchemaId::Azure(_) => {
                Err(Failure::Denied(Denial::default()))
            }
        }
    }

    async fn confluent(&self, path: &str) -> Result<Fetched, Failure> {
        let schema: ConfluentSchema = parsed(&self.get(path).await?)?;
        let format = match schema.schema_type.as_deref() {
            None | Some("AVRO") => Format::Avro,
            Some("PROTOBUF") => Format::Protobuf,
            Some(_) => Format::Json,
        };
        self.with_references(format, schema.into()).await
    }

    /// Fetches a schema through Apicurio's API.
    async fn apicurio(&self, path: &str, format: Format) -> Result<Fetched, Failure> {
        match self.by_api(Api::V3, path, format).await {
            // Apicurio 2 has only v2. A denial by v3 is final.
            Err(Failure::Other(_)) => self.by_api(Api::V2, path, format).await,
            answer => answer,
        }
    }

    async fn by_api(&self, api: Api, path: &str, format: Format) -> Result<Fetched, Failure> {
        let text = text(self.get_of_apicurio(api, path).await?)?;
        // References are fetched only if needed: most schemas have none, and old versions of Apicurio do not support them.
        if let Ok(file) = SchemaFile::parse(format, &text, &[]) {
            let n_bytes = text.len();
            return Ok(Fetched { file, n_bytes });
        }
        let references = self.references(api, path).await?;
        self.with_references(format, Page { text, references }).await
    }

    /// Adds the schemas that a schema refers to.
    async fn with_references(&self, format: Format, page: Page) -> Result<Fetched, Failure> {
        let mut n_bytes = page.text.len();
        let mut references = Vec::new();
        let mut names = HashSet::new();
        // Depth first: a schema comes after the schemas that it refers to.
        let mut open = vec![Step::Visit(page.references)];
        while let Some(step) = open.pop() {
            match step {
                Step::Visit(references) => open.extend(references.into_iter().rev().map(Step::Fetch)),
                Step::Fetch(Reference { name, place }) => {
                    if !names.insert(name.clone()) {
                        continue;
                    }
                    let page = self.page(&place).await.map_err(|failure| match failure {
                        Failure::Denied(denial) => Failure::Denied(Denial {
                            referred: Some(place.to_string()),
                            ..denial
                        }),
                        other => other,
                    })?;
                    n_bytes += page.text.len();
                    if names.len() > MAX_REFERENCES || n_bytes > MAX_ANSWER {
                        return Err(Failure::Unusable(SchemaFault(format!(
                            "it refers to more than {MAX_REFERENCES} others, or is larger than 16 MiB with them"
                        ))));
                    }
                    open.push(Step::Done(name, page.text));
                    open.push(Step::Visit(page.references));
                }
                Step::Done(name, text) => references.push((name, text)),
            }
        }
        let parsed = SchemaFile::parse(format, &page.text, &references);
        let file = parsed.map_err(Failure::Unusable)?;
        Ok(Fetched { file, n_bytes })
    }

    /// Fetches a schema that another one refers to.
    async fn page(&self, place: &Place) -> Result<Page, Failure> {
        match place {
            Place::Version { subject, version } => {
                let subject = utf8_percent_encode(subject, SUBJECT);
                // Records may still need a version that was deleted.
                let path = format!("/subjects/{subject}/versions/{version}?deleted=true");
                let schema: ConfluentSchema = parsed(&self.get(&path).await?)?;
                Ok(schema.into())
            }
            Place::Artifact {
                api,
                group,
                id,
                version,
            } => {
                let [group, id, version] =
                    [group, id, version].map(|name| utf8_percent_encode(name, SUBJECT));
                let path = format!("groups/{group}/artifacts/{id}/versions/{version}");
                let content = match api {
                    Api::V3 => format!("{path}/content"),
                    Api::V2 => path.clone(),
                };
                Ok(Page {
                    text: text(self.get_of_apicurio(*api, &content).await?)?,
                    references: self.references(*api, &path).await?,
                })
            }
        }
    }

    /// Fetches the places of the schemas that the one at this path of Apicurio's API refers to.
    async fn references(&self, api: Api, path: &str) -> Result<Vec<Reference>, Failure> {
        let body = self.get_of_apicurio(api, &format!("{path}/references")).await?;
        let references: Vec<ApicurioReference> = parsed(&body)?;
        let reference = |reference: ApicurioReference| Reference {
            name: reference.name,
            place: Place::Artifact {
                api,
                group: reference.group_id.unwrap_or_else(|| "default".to_owned()),
                id: reference.artifact_id,
                version: reference.version,
            },
        };
        Ok(references.into_iter().map(reference).collect())
    }

    /// Sends a request to Confluent's API at the configured addresses.
    async fn get(&self, path: &str) -> Result<Vec<u8>, Failure> {
        self.get_at(|url| format!("{}{path}", url.uri().path().trim_end_matches('/')))
            .await
    }

    /// Sends a request to Apicurio's API. A configured address is Apicurio's root, or its copy of Confluent's API.
    async fn get_of_apicurio(&self, api: Api, path: &str) -> Result<Vec<u8>, Failure> {
        let api = match api {
            Api::V3 => "v3",
            Api::V2 => "v2",
        };
        self.get_at(|url| {
            let base = url.uri().path();
            let root = base.find("/apis/").map_or(base, |at| &base[..at]);
            format!("{}/apis/registry/{api}/{path}", root.trim_end_matches('/'))
        })
        .await
    }

    /// Returns the first answer of an address, starting with the one that answered last.
    async fn get_at(&self, path: impl Fn(&HttpUrl) -> String) -> Result<Vec<u8>, Failure> {
        let Registry {
            urls,
            timeout: within,
            ..
        } = &*self.registry;
        let first = self.address.load(Ordering::Relaxed);
        let (mut is_denied, mut unreachable, mut wrong) = (false, None, None);
        for index in (0..urls.len()).map(|n| (first + n) % urls.len()) {
            let url = &urls[index];
            let answer = timeout(*within, self.get_from(url, &path(url))).await;
            let answer = answer.unwrap_or_else(|_| {
                let message = anyhow!("no answer within {within:?} (registry.timeout)");
                Err(Trouble::Unreachable(message))
            });
            match answer {
                Ok(body) => {
                    self.address.store(index, Ordering::Relaxed);
                    match body {
                        Some(body) => return Ok(body),
                        None => is_denied = true,
                    }
                }
                Err(Trouble::Unreachable(error)) => unreachable = Some(error.context(url.to_string())),
                Err(Trouble::Answer(error)) => wrong = Some(error.context(url.to_string())),
            }
        }
        // An address that answers with an error may have the schema. One that cannot be reached may be gone for good.
        match (wrong, unreachable) {
            (Some(error), _) => Err(Failure::Other(error)),
            (None, Some(error)) if !is_denied => Err(Failure::Other(error)),
            (None, unreachable) => Err(Failure::Denied(Denial {
                referred: None,
                unreachable: unreachable.map(|error| format!("{error:#}")),
            })),
        }
    }

    /// Sends a request to one address. `None` if it denies the schema.
    async fn get_from(&self, url: &HttpUrl, path: &str) -> Result<Option<Vec<u8>>, Trouble> {
        let request = self.request(url, path).map_err(Trouble::Answer)?;
        let answer = self.client.request(request).await;
        let answer = answer.map_err(|error| Trouble::Unreachable(with_remedy(url, &with_causes(error))))?;
        self.body(answer.map(Body::new), path)
            .await
            .map_err(Trouble::Answer)
    }

    fn request(&self, url: &HttpUrl, path: &str) -> anyhow::Result<Request<Body>> {
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
        Ok(request.body(Body::empty())?)
    }

    /// Returns the body of an answer; `None` for a denial.
    async fn body(&self, answer: Response<Body>, path: &str) -> anyhow::Result<Option<Vec<u8>>> {
        match answer.status() {
            // For example, the login page of a proxy.
            StatusCode::OK if is_web_page(&answer) => Err(anyhow!(
                "it answers {path} with a web page: check the path in registry.url"
            )),
            StatusCode::OK => {
                let body = body::to_bytes(answer.into_body(), MAX_ANSWER).await;
                Ok(Some(
                    body.context("its answer is cut off, or is larger than 16 MiB")?
                        .into(),
                ))
            }
            StatusCode::NOT_FOUND => {
                let body = body::to_bytes(answer.into_body(), MAX_ERROR).await;
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
            status => Err(anyhow!(
                "it answers {status} to {path}: check the log of the registry"
            )),
        }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Failure {
        Failure::Other(error)
    }
}

impl From<ConfluentSchema> for Page {
    fn from(schema: ConfluentSchema) -> Page {
        let references = schema.references.unwrap_or_default().into_iter();
        let reference = |reference: ConfluentReference| Reference {
            name: reference.name,
            place: Place::Version {
                subject: reference.subject,
                version: reference.version,
            },
        };
        Page {
            text: schema.schema,
            references: references.map(reference).collect(),
        }
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        match &self.referred {
            None => write!(out, "it is not in the registry")?,
            Some(place) => write!(out, "it refers to {place}, which is not in the registry")?,
        }
        match &self.unreachable {
            None => Ok(()),
            Some(problem) => write!(out, " (not every address can be reached: {problem})"),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Place::Version { subject, version } => write!(out, "version {version} of the subject {subject}"),
            Place::Artifact {
                group, id, version, ..
            } => write!(out, "version {version} of the artifact {id} in the group {group}"),
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
pub fn is_denial(body: &[u8]) -> bool {
    let Ok(RegistryError { error_code, name }) = serde_json::from_slice(body) else {
        return false;
    };
    // `NotFoundException` alone is Apicurio's answer to a path that it does not have.
    let is_of_schema = name.ends_with("NotFoundException") && name != "NotFoundException";
    (40401..=40403).contains(&error_code) || is_of_schema
}

fn is_web_page(answer: &Response<Body>) -> bool {
    let content_type = answer.headers().get(CONTENT_TYPE);
    content_type.is_some_and(|value| value.as_bytes().starts_with(b"text/html"))
}

fn text(body: Vec<u8>) -> anyhow::Result<String> {
    String::from_utf8(body).context("the schema is not text")
}

fn parsed<T: DeserializeOwned>(body: &[u8]) -> anyhow::Result<T> {
    serde_json::from_slice(body)
        .context("it does not answer like a schema registry: check the path in registry.url")
}

/// Returns an error with the messages of all its causes.
fn with_causes(error: hyper_util::client::legacy::Error) -> anyhow::Error {
    let error = anyhow::Error::new(error);
    // The outermost message of the client has no cause.
    let causes: Vec<String> = error.chain().skip(1).map(ToString::to_string).collect();
    match causes.is_empty() {
        true => error,
        false => anyhow!(causes.join(": ")),
    }
}

/// Adds the settings to check to a connection error.
fn with_remedy(url: &HttpUrl, error: &anyhow::Error) -> anyhow::Error {
    let text = error.to_string();
    let has = |parts: &[&str]| parts.iter().any(|part| text.contains(part));
    let remedy = if url.is_tls() && has(&["tls handshake eof", "InvalidContentType"]) {
        "if this port has no TLS, write http:// in registry.url"
    } else if url.is_tls() && has(&["certificate"]) {
        "check registry.ca_file, the authorities that signed its certificate, and the name in registry.url"
    } else if has(&["dns error"]) {
        "check the name in registry.url, and that it resolves on this machine"
    } else {
        "check the address in registry.url, and that the registry runs"
    };
    anyhow!("{text}: {remedy}")
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
