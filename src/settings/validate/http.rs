//! `[http]`: where to listen, behind which certificate, and who has access.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use toml::Spanned;

use super::values::{path, whole};
use crate::settings::access::{HashList, MAX_ENTRIES, NotAnEntry};
use crate::settings::error::ErrorReport;
use crate::settings::hosts::{MAX_FRAMES, origin};
use crate::settings::raw::RawHttp;
use crate::settings::{Access, Host, Http, HttpUrl, TlsFiles};

pub(in crate::settings) fn http(raw: &RawHttp, report: &mut ErrorReport) -> Http {
    raw.check("http", report);
    Http {
        listen: listen(&raw.listen, report),
        max_connections: whole(&raw.max_connections),
        timeout: raw.timeout.get_ref().duration(),
        hosts: distinct("http.hosts", &raw.hosts, MAX_ENTRIES, Host::of_setting, report),
        frame_ancestors: distinct(
            "http.frame_ancestors",
            &raw.frame_ancestors,
            MAX_FRAMES,
            origin,
            report,
        ),
        tls: tls(raw, report),
        access: access(raw, report),
        public_url: public_url(raw.public_url.as_ref(), report),
    }
}

fn listen(listen: &Spanned<String>, report: &mut ErrorReport) -> SocketAddr {
    let text = listen.get_ref();
    text.parse().unwrap_or_else(|_| {
        let (fault, remedy) = no_address(text);
        report.refuse("http.listen", listen, format!("\"{text}\" {fault}"), remedy);
        // Never used, because an error was reported.
        SocketAddr::from(([127, 0, 0, 1], 0))
    })
}

/// Returns the problem with a text that is not an address to listen on, and the remedy.
fn no_address(text: &str) -> (&'static str, String) {
    const PORT: &str = "9464";
    if text.parse::<IpAddr>().is_ok_and(|ip| ip.is_ipv4()) {
        return ("has no port", format!("write \"{text}:{PORT}\""));
    }
    // Several colons without brackets are an IPv6 address, and no colon clearly separates a port.
    if !text.contains('[') && text.matches(':').count() > 1 && !text.contains('/') {
        let remedy = "write an IPv6 address in brackets and the port behind them, such as \"[::1]:9464\"";
        return ("is not an address to listen on", remedy.to_owned());
    }
    let (host, port) = text.rsplit_once(':').unwrap_or((text, PORT));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    // A number alone is a port without a host.
    let (host, port) = if digits(host) { ("", host) } else { (host, port) };
    let is_port = port.parse::<u16>().is_ok();
    let port = if is_port { port } else { PORT };
    let here = format!("\"127.0.0.1:{port}\" for this machine only");
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
            "has an impossible port",
            format!("{remedy}; a port is a number from 1 to 65535"),
        ),
    }
}

/// Parses a list of at most `max` different entries.
fn distinct<T: PartialEq>(
    key: &str,
    list: &Spanned<Vec<Spanned<String>>>,
    max: usize,
    parse: fn(&str) -> Result<T, (&'static str, String)>,
    report: &mut ErrorReport,
) -> Vec<T> {
    let texts = list.get_ref();
    if texts.len() > max {
        let remedy = format!("write at most {max} of them");
        report.refuse(key, list, format!("holds {} entries", texts.len()), remedy);
        return Vec::new();
    }
    let mut entries = Vec::new();
    for text in texts {
        let entry = match parse(text.get_ref()) {
            Ok(entry) => entry,
            Err((fault, remedy)) => {
                report.refuse(key, text, format!("\"{}\" {fault}", text.get_ref()), remedy);
                continue;
            }
        };
        if entries.contains(&entry) {
            report.refuse_twice(key, text, format_args!("\"{}\"", text.get_ref()));
        }
        entries.push(entry);
    }
    entries
}

fn tls(raw: &RawHttp, report: &mut ErrorReport) -> Option<TlsFiles> {
    let key = path("http.tls_key", &raw.tls_key, report);
    let Some(certificate) = path("http.tls_certificate", &raw.tls_certificate, report) else {
        if let Some(key) = &raw.tls_key {
            let remedy = "set http.tls_certificate to the file of the certificate too";
            report.refuse("http.tls_key", key, "is set without a certificate", remedy);
        }
        return None;
    };
    Some(TlsFiles {
        key: key.unwrap_or_else(|| certificate.clone()),
        certificate,
    })
}

/// Checks the address of the page. Links append a path to it, so it has neither a query nor a fragment.
fn public_url(written: Option<&Spanned<String>>, report: &mut ErrorReport) -> Option<String> {
    const KEY: &str = "http.public_url";
    const REMEDY: &str =
        "write the address of the page without a user, such as \"https://abgauge.example:9464\"";
    let written = written?;
    let text = written.get_ref().trim_end_matches('/');
    let fault = match HttpUrl::of_setting(text) {
        _ if text.contains(['?', '#']) => "has a query or a fragment",
        Err((fault, _)) => fault,
        Ok(_) => return Some(text.to_owned()),
    };
    report.refuse(KEY, written, fault, REMEDY);
    None
}

fn access(raw: &RawHttp, report: &mut ErrorReport) -> Access {
    Access {
        tokens: entries("http.bearer_tokens", &raw.bearer_tokens, report),
        tokens_file: path("http.bearer_tokens_file", &raw.bearer_tokens_file, report),
        users: entries("http.basic_passwords", &raw.basic_passwords, report),
        users_file: path("http.basic_passwords_file", &raw.basic_passwords_file, report),
        open_probes: *raw.open_probes.get_ref(),
    }
}

/// Reads hashes. Errors name an entry by its number, because its text may be the secret itself.
fn entries<T: FromStr<Err = NotAnEntry>>(
    key: &str,
    list: &Spanned<HashList>,
    report: &mut ErrorReport,
) -> Vec<T> {
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
