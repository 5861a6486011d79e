//! HTTP addresses to send requests to. Everything but scheme and host may be a secret, and is never shown.

use std::fmt;

use hyper::Uri;

use super::Host;

/// HTTP address, with or without TLS.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpUrl(Uri);

/// Allowed schemes.
const SCHEMES: [&str; 2] = ["http://", "https://"];

impl HttpUrl {
    /// Parses the setting. The error is what is wrong with it, without quoting any of it, and what to write instead.
    pub(crate) fn of_setting(text: &str) -> Result<HttpUrl, (&'static str, &'static str)> {
        const WHOLE: &str = "write a complete address, such as \"https://hooks.example/abgauge\"";
        const IN_FILE: &str = "write only the address, and put the header's value into the file of webhook.secret_file, such as `Basic` and the base64 of USER:PASSWORD";
        if !SCHEMES.iter().any(|scheme| text.starts_with(scheme)) {
            return Err(("starts with neither https:// nor http://", WHOLE));
        }
        let uri: Uri = text.parse().map_err(|_| ("is not an HTTP address", WHOLE))?;
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        // The authority is shown in messages, so it must not contain a password.
        if authority.contains('@') {
            return Err(("names a user before an @", IN_FILE));
        }
        let has_port = authority.rsplit_once(':').is_none_or(|(_, port)| {
            // The last colon may be inside an IPv6 address.
            let is_of_an_address = port.ends_with(']');
            is_of_an_address || port.parse::<u16>().is_ok_and(|port| port > 0)
        });
        if !has_port {
            return Err(("has an impossible port", "write a port from 1 to 65535, or none"));
        }
        match Host::of_request(authority) {
            Some(Host::Name(name)) if name.is_empty() => Err(("has no host", WHOLE)),
            Some(_) => Ok(HttpUrl(uri)),
            None => Err(("has an impossible host", WHOLE)),
        }
    }

    pub fn uri(&self) -> &Uri {
        &self.0
    }

    pub fn is_tls(&self) -> bool {
        self.0.scheme_str() == Some("https")
    }

    /// Returns whether nothing sent there can leave this machine.
    pub(crate) fn is_loopback(&self) -> bool {
        let host = self.0.host().and_then(Host::of_request);
        host.is_some_and(|host| host.is_loopback())
    }
}

/// Formats scheme, host and port only, because the rest may be secret.
impl fmt::Display for HttpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_tls() { "https" } else { "http" };
        let authority = self.0.authority().map_or("", |authority| authority.as_str());
        write!(f, "{scheme}://{authority}")
    }
}

impl fmt::Debug for HttpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HttpUrl({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_displayed_with_only_scheme_and_host() {
        let url = HttpUrl::of_setting("https://hooks.example:8443/T0/hunter2?token=hunter2");
        let url = url.expect("an address");
        assert_eq!(url.uri().path(), "/T0/hunter2");
        for shown in [url.to_string(), format!("{url:?}")] {
            assert!(shown.contains("https://hooks.example:8443"), "{shown}");
            assert!(!shown.contains("hunter2") && !shown.contains("T0"), "{shown}");
        }
    }

    #[test]
    fn an_invalid_url_is_refused_without_being_shown() {
        for (text, fault) in [
            ("", "neither"),
            ("hunter2.example/x", "neither"),
            ("ftp://hunter2", "neither"),
            ("https://", "not an HTTP address"),
            ("https:///hunter2", "not an HTTP address"),
            ("https://a b/hunter2", "not an HTTP address"),
            ("https://user:hunter2@a/", "a user before an @"),
            ("https://:8443/hunter2", "no host"),
            ("https://a:0/", "impossible port"),
            ("https://a:99999/", "impossible port"),
            ("https://a:x/", "impossible port"),
            ("https://::1/hunter2", "not an HTTP address"),
            ("https://a~b/hunter2", "impossible host"),
        ] {
            let (reported, remedy) = HttpUrl::of_setting(text).expect_err(text);
            assert!(reported.contains(fault), "{text}: {reported}");
            assert!(
                !reported.contains("hunter2") && remedy.starts_with("write "),
                "{reported}"
            );
        }
        for text in [
            "http://127.0.0.1:9000",
            "https://[::1]:8443/a?b=c",
            "https://[::1]/",
            "http://a",
            "https://xn--bcher-kva.example/x#y",
        ] {
            assert!(HttpUrl::of_setting(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn loopback_urls_are_distinguished_from_others() {
        let is_loopback = |text| HttpUrl::of_setting(text).expect("an address").is_loopback();
        assert!(is_loopback("http://127.0.0.1:9000/x"));
        assert!(is_loopback("http://[::1]/"));
        assert!(is_loopback("http://localhost/"));
        assert!(!is_loopback("http://hooks.example/"));
    }
}
