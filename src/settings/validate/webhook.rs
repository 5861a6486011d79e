//! `[webhook]`: URL to call when the state of an arm changes.

use std::time::Duration;

use hyper::header::{self, HeaderName};
use toml::Spanned;

use super::values::{path, positive};
use crate::settings::error::ErrorReport;
use crate::settings::raw::RawWebhook;
use crate::settings::{HttpUrl, Webhook};

/// Headers that control how a request is sent, so a secret must not be in them.
const OF_THE_REQUEST: [HeaderName; 9] = [
    header::HOST,
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::CONTENT_TYPE,
    header::EXPECT,
    header::TE,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::USER_AGENT,
];

/// Returns the webhook; `None` if there is none.
pub(super) fn webhook(raw: &RawWebhook, report: &mut ErrorReport) -> Option<Webhook> {
    // Validated even without an address, so that no error goes unnoticed.
    let timeout_ms = positive("webhook.timeout", &raw.timeout, report);
    let secret_file = path("webhook.secret_file", &raw.secret_file, report);
    let ca_file = path("webhook.ca_file", &raw.ca_file, report);
    let header = header_name(&raw.header, report);
    let Some(written) = &raw.url else {
        needless_without_url(raw, report);
        return None;
    };
    let url = match HttpUrl::of_setting(written.get_ref()) {
        Ok(url) => url,
        Err((fault, remedy)) => {
            report.refuse("webhook.url", written, fault, remedy);
            return None;
        }
    };
    if let Some(ca_file) = raw.ca_file.as_ref().filter(|_| !url.is_tls()) {
        let remedy = "write an address that starts with https://, or remove webhook.ca_file";
        report.refuse("webhook.ca_file", ca_file, "has no effect on plain HTTP", remedy);
    }
    Some(Webhook {
        url,
        secret_file,
        header,
        timeout: Duration::from_millis(timeout_ms.unsigned_abs()),
        ca_file,
    })
}

fn needless_without_url(raw: &RawWebhook, report: &mut ErrorReport) {
    let files = [
        ("webhook.secret_file", &raw.secret_file),
        ("webhook.ca_file", &raw.ca_file),
    ];
    for (key, file) in files {
        if let Some(file) = file.as_ref().filter(|_| report.is_sound(key)) {
            let remedy = "also set webhook.url to the address to call, or leave it out";
            report.refuse(key, file, "is set without an address", remedy);
        }
    }
}

fn header_name(name: &Spanned<String>, report: &mut ErrorReport) -> HeaderName {
    const KEY: &str = "webhook.header";
    const REMEDY: &str = "write only the name of a header, such as \"Authorization\" or \"X-Token\"";
    match name.get_ref().parse() {
        Ok(header) if OF_THE_REQUEST.contains(&header) => {
            let fault = format!("{header} is a header that abgauge sets itself");
            report.refuse(KEY, name, fault, REMEDY);
        }
        Ok(header) => return header,
        Err(_) => report.refuse(KEY, name, "is not the name of a header", REMEDY),
    }
    header::AUTHORIZATION
}
