//! `[http]`: where to listen, behind which certificate, and who may ask.

use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;

use toml::Spanned;

use super::values::{positive, whole};
use crate::config::access::{Hashes, MAX_ENTRIES, NotAnEntry};
use crate::config::error::Report;
use crate::config::raw::RawHttp;
use crate::config::{Access, Http, TlsFiles};

pub(super) fn http(raw: &RawHttp, report: &mut Report) -> Http {
    let timeout_ms: i64 = positive("http.timeout", &raw.timeout, report);
    Http {
        listen: listen(&raw.listen, report),
        max_connections: whole("http.max_connections", &raw.max_connections, 1..=65_536, report),
        timeout: Duration::from_millis(timeout_ms.unsigned_abs()),
        tls: tls(raw, report),
        access: access(raw, report),
    }
}

fn listen(listen: &Spanned<String>, report: &mut Report) -> SocketAddr {
    let text = listen.get_ref();
    text.parse().unwrap_or_else(|_| {
        let remedy = match text.strip_prefix("localhost:").or_else(|| text.strip_prefix(':')) {
            Some(port) if text.starts_with(':') => format!("write \"0.0.0.0:{port}\" for every address"),
            Some(port) => format!("write \"127.0.0.1:{port}\""),
            None => {
                "write an IP address and a port, such as \"127.0.0.1:9464\" or \"0.0.0.0:9464\"".to_owned()
            }
        };
        report.refuse(
            "http.listen",
            listen,
            format!("`{text}` is not an address to listen on"),
            remedy,
        );
        SocketAddr::from(([127, 0, 0, 1], 0))
    })
}

fn tls(raw: &RawHttp, report: &mut Report) -> Option<TlsFiles> {
    let key = raw.tls_key.as_ref();
    let Some(certificate) = &raw.tls_certificate else {
        if let Some(key) = key {
            let remedy = "set http.tls_certificate to the file of the certificate too";
            report.refuse("http.tls_key", key, "has no certificate beside it", remedy);
        }
        return None;
    };
    Some(TlsFiles {
        certificate: certificate.get_ref().into(),
        key: key.unwrap_or(certificate).get_ref().into(),
    })
}

fn access(raw: &RawHttp, report: &mut Report) -> Access {
    let path = |file: &Option<Spanned<String>>| file.as_ref().map(|path| path.get_ref().into());
    Access {
        tokens: entries("http.bearer_tokens", &raw.bearer_tokens, report),
        tokens_file: path(&raw.bearer_tokens_file),
        users: entries("http.basic_passwords", &raw.basic_passwords, report),
        users_file: path(&raw.basic_passwords_file),
        open_probes: *raw.open_probes.get_ref(),
    }
}

/// Entries are told by their number: what stands there may be the secret itself.
fn entries<T: FromStr<Err = NotAnEntry>>(key: &str, list: &Spanned<Hashes>, report: &mut Report) -> Vec<T> {
    let hashes = &list.get_ref().0;
    if hashes.len() > MAX_ENTRIES {
        let remedy = format!("write at most {MAX_ENTRIES} of them");
        report.refuse(key, list, format!("holds {} hashes", hashes.len()), remedy);
        return Vec::new();
    }
    let mut entries = Vec::new();
    for (n, hash) in hashes.iter().enumerate() {
        match hash.parse() {
            Ok(entry) => entries.push(entry),
            Err(NotAnEntry { message, remedy }) => {
                report.refuse(key, list, format!("entry {}: {message}", n + 1), remedy);
            }
        }
    }
    entries
}
