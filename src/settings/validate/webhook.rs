//! `[webhook]`: URL to call when the state of an arm changes.

use hyper::header::{self, HeaderName};
use toml::Spanned;

use super::values::{in_vain, path};
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
    raw.check("webhook", report);
    let secret_file = path("webhook.secret_file", &raw.secret_file, report);
    let ca_file = path("webhook.ca_file", &raw.ca_file, report);
    let header = header_name(&raw.header, report);
    let Some(written) = &raw.url else {
        let files = [
            ("webhook.secret_file", &raw.secret_file),
            ("webhook.ca_file", &raw.ca_file),
        ];
        let remedy = "also set webhook.url to the address to call, or leave it out";
        in_vain(files, "is set without an address", remedy, report);
        return None;
    };
    let url = match HttpUrl::of_setting(written.get_ref()) {
        Ok(url) => url,
        Err((fault, remedy)) => {
            report.refuse("webhook.url", written, fault, remedy);
            return None;
        }
    };
    if !url.is_tls() {
        let remedy = "write an address that starts with https://, or remove webhook.ca_file";
        let ca_file = [("webhook.ca_file", &raw.ca_file)];
        in_vain(ca_file, "has no effect on plain HTTP", remedy, report);
    }
    Some(Webhook {
        url,
        secret_file,
        header,
        timeout: raw.timeout.get_ref().duration(),
        ca_file,
    })
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
