//! Hosts, as named by the `Host` header of a request and by the setting `http.hosts`, and origins of `http.frame_ancestors`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Maximum length of a DNS name.
pub(super) const MAX_NAME: usize = 253;

/// Regular expression of a name, an IP address or `*`.
pub(super) const HOST: &str = "^(\\*|[a-zA-Z0-9._-]*[a-zA-Z0-9_-][a-zA-Z0-9._-]*|\\[[0-9a-fA-F:.]+\\])$";

/// Maximum number of origins that may frame the page. Every answer of the page lists them.
pub(super) const MAX_FRAMES: usize = 16;

/// Regular expression of an origin, whose name may start with a wildcard.
pub(super) const ORIGIN: &str = "^https?://(\\*\\.)?[a-zA-Z0-9_-]+(\\.[a-zA-Z0-9_-]+)*(:[0-9]{1,5})?$";

/// Host named by a request, without the port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Host {
    /// `*`: any host. Never named by a request.
    Any,
    /// Name in lower case, without a trailing dot. Empty if a request names no host.
    Name(String),
    Ip(IpAddr),
}

impl Host {
    /// Parses `host` or `host:port` from the header or its replacement. Returns `None` for anything else.
    pub fn of_request(text: &str) -> Option<Host> {
        // Colons inside the brackets of an IPv6 address do not separate a port.
        let end = text.rfind(']').map_or(0, |bracket| bracket + 1);
        let (host, port) = match text[end..].find(':') {
            Some(colon) => (&text[..end + colon], &text[end + colon + 1..]),
            None => (text, ""),
        };
        port.bytes().all(|c| c.is_ascii_digit()).then(|| Host::of(host))?
    }

    /// Parses a host without a port. An IPv6 address is in brackets.
    fn of(text: &str) -> Option<Host> {
        if let Some(rest) = text.strip_prefix('[') {
            let ip: Ipv6Addr = rest.strip_suffix(']')?.parse().ok()?;
            // An IPv4 address in IPv6 notation is the same host as the address itself.
            return Some(Host::Ip(IpAddr::V6(ip).to_canonical()));
        }
        if let Ok(ip) = text.parse::<Ipv4Addr>() {
            return Some(Host::Ip(ip.into()));
        }
        let is_part = |c: u8| c.is_ascii_alphanumeric() || b"-._".contains(&c);
        let is_name = text.len() <= MAX_NAME && text.bytes().all(is_part);
        is_name.then(|| Host::Name(text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase()))
    }

    /// Returns whether the host can only be this machine, asked by itself.
    pub fn is_loopback(&self) -> bool {
        match self {
            Host::Any => false,
            Host::Name(name) => name == "localhost" || name.ends_with(".localhost"),
            Host::Ip(ip) => ip.is_loopback(),
        }
    }

    /// Parses an entry of the setting. The error is what is wrong with it and what to write instead.
    pub(super) fn of_setting(text: &str) -> Result<Host, (&'static str, String)> {
        if text == "*" {
            return Ok(Host::Any);
        }
        if let Ok(ip) = text.parse::<Ipv6Addr>() {
            return Err(("is an IPv6 address without brackets", format!("write \"[{ip}]\"")));
        }
        match Host::of(text) {
            Some(Host::Name(name)) if name.bytes().all(|c| c == b'.') => Err((
                "names no host",
                "write a name, such as \"abgauge.example\"".into(),
            )),
            Some(host) => Ok(host),
            None => {
                // Most likely a whole URL was pasted, so the remedy is its host.
                let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
                let rest = rest.split('/').next().unwrap_or_default();
                let remedy = match Host::of_request(rest) {
                    Some(host) if host != Host::Name(String::new()) => format!("write \"{host}\""),
                    _ => "write only the name, such as \"abgauge.example\"".into(),
                };
                Err(("is more than a host name, or empty", remedy))
            }
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Any => f.write_str("*"),
            Host::Name(name) => f.write_str(name),
            Host::Ip(IpAddr::V4(ip)) => ip.fmt(f),
            Host::Ip(IpAddr::V6(ip)) => write!(f, "[{ip}]"),
        }
    }
}

/// Parses an origin, such as `https://wiki.example`. It becomes part of a header, so nothing else is accepted. The error is what is
/// wrong with it and what to write instead.
pub(super) fn origin(text: &str) -> Result<String, (&'static str, String)> {
    let remedy = || "write scheme and host, such as \"https://wiki.example\"".to_owned();
    let Some((scheme @ ("http" | "https"), rest)) = text.split_once("://") else {
        return Err(("does not start with https:// or http://", remedy()));
    };
    let (name, port) = rest.split_once(':').unwrap_or((rest, "0"));
    let is_part = |part: &str| {
        let is_known = |c: u8| c.is_ascii_alphanumeric() || b"-_".contains(&c);
        !part.is_empty() && part.bytes().all(is_known)
    };
    let is_name = name.len() <= MAX_NAME && name.strip_prefix("*.").unwrap_or(name).split('.').all(is_part);
    let is_port = port.bytes().all(|c| c.is_ascii_digit()) && port.parse::<u16>().is_ok();
    match is_name && is_port {
        true => Ok(text.to_ascii_lowercase()),
        false => {
            // Most likely the address of a page was pasted, so the remedy is its origin.
            let without_path = rest.split('/').next().unwrap_or_default();
            let shorter = format!("{scheme}://{without_path}");
            let remedy = match shorter.len() < text.len() && origin(&shorter).is_ok() {
                true => format!("write \"{shorter}\""),
                false => remedy(),
            };
            Err(("is not an origin", remedy))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_names_a_host_with_or_without_a_port() {
        let table = [
            ("localhost", Some("localhost")),
            ("LOCALHOST.:9464", Some("localhost")),
            ("a_b-c.example:", Some("a_b-c.example")),
            ("127.0.0.1:80", Some("127.0.0.1")),
            ("[::1]:80", Some("[::1]")),
            ("[::ffff:127.0.0.1]", Some("127.0.0.1")),
            ("127.1", Some("127.1")),
            ("", Some("")),
            (":80", Some("")),
            ("*", None),
            ("a b", None),
            ("a@b", None),
            ("a/b", None),
            ("a:b", None),
            ("a:1:2", None),
            ("::1", None),
            ("[::1", None),
            ("[::1]a", None),
            ("[a]", None),
            ("é", None),
        ];
        for (text, host) in table {
            let read = Host::of_request(text).map(|host| host.to_string());
            assert_eq!(read.as_deref(), host, "{text:?}");
        }
        assert_eq!(Host::of_request(&"a".repeat(MAX_NAME + 1)), None);
    }
}
