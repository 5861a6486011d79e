//! `[http]`: where to listen, behind which certificate, and who may ask.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;

use toml::Spanned;

use super::values::{positive, whole};
use crate::config::access::{Hashes, MAX_ENTRIES, NotAnEntry};
use crate::config::error::Report;
use crate::config::raw::RawHttp;
use crate::config::{Access, Http, TlsFiles};

pub(in crate::config) fn http(raw: &RawHttp, report: &mut Report) -> Http {
    let timeout_ms: i64 = positive("http.timeout", &raw.timeout, report);
    Http {
        listen: listen(&raw.listen, report),
        max_connections: whole("http.max_connections", &raw.max_connections, report),
        timeout: Duration::from_millis(timeout_ms.unsigned_abs()),
        tls: tls(raw, report),
        access: access(raw, report),
    }
}

fn listen(listen: &Spanned<String>, report: &mut Report) -> SocketAddr {
    let text = listen.get_ref();
    text.parse().unwrap_or_else(|_| {
        let (fault, remedy) = no_address(text);
        report.refuse("http.listen", listen, format!("\"{text}\" {fault}"), remedy);
        SocketAddr::from(([127, 0, 0, 1], 0))
    })
}

/// What is wrong with a text that is no address to listen on, and what to write instead.
fn no_address(text: &str) -> (&'static str, String) {
    const PORT: &str = "9464";
    if text.parse::<IpAddr>().is_ok_and(|ip| ip.is_ipv4()) {
        return ("has no port", format!("write \"{text}:{PORT}\""));
    }
    if !text.contains('[') && text.matches(':').count() > 1 && !text.contains('/') {
        let remedy = "write an IPv6 address in brackets and the port behind them, such as \"[::1]:9464\"";
        return ("is not an address to listen on", remedy.to_owned());
    }
    let (host, port) = text.rsplit_once(':').unwrap_or((text, PORT));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    let (host, port) = if digits(host) { ("", host) } else { (host, port) };
    let is_port = port.parse::<u16>().is_ok();
    let port = if is_port { port } else { PORT };
    let here = format!("\"127.0.0.1:{port}\" for this machine alone");
    let everywhere = format!("\"0.0.0.0:{port}\" for every address");
    let remedy = match host {
        "localhost" => format!("write \"127.0.0.1:{port}\""),
        "" => format!("write {everywhere}, or {here}"),
        host if host.parse::<IpAddr>().is_ok() => format!("write \"{host}:{port}\""),
        _ => format!("write an IP address and a port: {here}, {everywhere}"),
    };
    match is_port {
        true => ("is not an address to listen on", remedy),
        false => (
            "has no port that there can be",
            format!("{remedy}; a port is a number from 1 to 65535"),
        ),
    }
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
