//! Parts of the page: HTML, style and scripts, compiled in, compressed once, and sent again only if they differ.

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;

use super::super::encoding::{Encoding, gzip};
use super::runbooks;
use super::{NOT_FOUND, PLAIN, answer, set_encoding};

/// Policy of the page: it runs only scripts from this server, talks only to it, submits no forms, and can be framed only by those
/// origins.
fn content_security_policy(frame_ancestors: &[String]) -> HeaderValue {
    let ancestors = match frame_ancestors {
        [] => "'none'".to_owned(),
        origins => origins.join(" "),
    };
    let policy = format!(
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; \
         form-action 'none'; frame-ancestors {ancestors}"
    );
    HeaderValue::try_from(policy).expect("origins are ASCII")
}

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const JAVASCRIPT: &str = "text/javascript; charset=utf-8";

/// Name of the page itself. All other parts are below `/page/`.
pub(super) const PAGE: &str = "";

const PARTS: &[(&str, &str, &str)] = &[
    (PAGE, HTML, include_str!("../page/index.html")),
    ("page.css", CSS, include_str!("../page/page.css")),
    ("page.js", JAVASCRIPT, include_str!("../page/page.js")),
    ("begin.js", JAVASCRIPT, include_str!("../page/begin.js")),
    ("charts.css", CSS, include_str!("../page/charts.css")),
    ("chart.js", JAVASCRIPT, include_str!("../page/chart.js")),
    ("chart-data.js", JAVASCRIPT, include_str!("../page/chart-data.js")),
    (
        "chart-paint.js",
        JAVASCRIPT,
        include_str!("../page/chart-paint.js"),
    ),
    (
        "chart-reading.js",
        JAVASCRIPT,
        include_str!("../page/chart-reading.js"),
    ),
    (
        "chart-ranks.js",
        JAVASCRIPT,
        include_str!("../page/chart-ranks.js"),
    ),
    (
        "chart-split.js",
        JAVASCRIPT,
        include_str!("../page/chart-split.js"),
    ),
    ("charts.js", JAVASCRIPT, include_str!("../page/charts.js")),
    ("choice.js", JAVASCRIPT, include_str!("../page/choice.js")),
    ("controls.js", JAVASCRIPT, include_str!("../page/controls.js")),
    ("document.js", JAVASCRIPT, include_str!("../page/document.js")),
    ("download.js", JAVASCRIPT, include_str!("../page/download.js")),
    ("earlier.js", JAVASCRIPT, include_str!("../page/earlier.js")),
    (
        "experiments.js",
        JAVASCRIPT,
        include_str!("../page/experiments.js"),
    ),
    ("feed.js", JAVASCRIPT, include_str!("../page/feed.js")),
    ("intervals.js", JAVASCRIPT, include_str!("../page/intervals.js")),
    ("share.js", JAVASCRIPT, include_str!("../page/share.js")),
    ("limits.js", JAVASCRIPT, include_str!("../page/limits.js")),
    ("looks.js", JAVASCRIPT, include_str!("../page/looks.js")),
    ("own.js", JAVASCRIPT, include_str!("../page/own.js")),
    ("progress.js", JAVASCRIPT, include_str!("../page/progress.js")),
    ("settling.js", JAVASCRIPT, include_str!("../page/settling.js")),
    ("stream.js", JAVASCRIPT, include_str!("../page/stream.js")),
    ("trust.js", JAVASCRIPT, include_str!("../page/trust.js")),
    (
        "uplot.js",
        JAVASCRIPT,
        include_str!("../page/uplot/uPlot.iife.min.js"),
    ),
    ("uplot.css", CSS, include_str!("../page/uplot/uPlot.min.css")),
    ("why.js", JAVASCRIPT, include_str!("../page/why.js")),
    ("words.js", JAVASCRIPT, include_str!("../page/words.js")),
];

pub(super) struct Assets {
    of_page: Vec<Asset>,
    runbooks: Asset,
    content_security_policy: HeaderValue,
}

struct Asset {
    name: &'static str,
    content_type: &'static str,
    text: Bytes,
    packed: Bytes,
    /// Weak ETag, because it is the same for the compressed and the plain body.
    tag: String,
}

impl Assets {
    pub fn new(frame_ancestors: &[String]) -> Assets {
        let parts = PARTS.iter();
        let of_page = parts.map(|(name, content_type, text)| Asset::new(name, content_type, (*text).into()));
        Assets {
            of_page: of_page.collect(),
            runbooks: Asset::new("runbooks", HTML, runbooks::page().into()),
            content_security_policy: content_security_policy(frame_ancestors),
        }
    }

    /// Answers `/runbooks`.
    pub fn runbooks(&self, headers: &HeaderMap) -> Response {
        self.runbooks.answer(headers, &self.content_security_policy)
    }

    pub fn answer(&self, name: &str, headers: &HeaderMap) -> Response {
        match self.of_page.iter().find(|part| part.name == name) {
            Some(part) => part.answer(headers, &self.content_security_policy),
            None => answer(StatusCode::NOT_FOUND, PLAIN, NOT_FOUND),
        }
    }
}

impl Asset {
    fn new(name: &'static str, content_type: &'static str, text: Bytes) -> Asset {
        Asset {
            name,
            content_type,
            packed: gzip(&text, Vec::new()).into(),
            tag: format!("W/\"{:08x}-{}\"", crc32fast::hash(&text), text.len()),
            text,
        }
    }

    fn answer(&self, headers: &HeaderMap, policy: &HeaderValue) -> Response {
        let encoding = Encoding::wanted(headers);
        let mut response = if self.is_known_to(headers) {
            answer(StatusCode::NOT_MODIFIED, self.content_type, "")
        } else {
            let mut response = match encoding {
                Encoding::Gzip => answer(StatusCode::OK, self.content_type, self.packed.clone()),
                Encoding::Identity => answer(StatusCode::OK, self.content_type, self.text.clone()),
            };
            set_encoding(response.headers_mut(), encoding);
            response
        };
        let tag = HeaderValue::from_str(&self.tag).expect("it is ASCII");
        // A 304 repeats the tag and `Vary` of the 200 that it stands for (RFC 9110, 15.4.5).
        let always = [
            (header::ETAG, tag),
            (header::VARY, HeaderValue::from_static("accept-encoding")),
            (header::CONTENT_SECURITY_POLICY, policy.clone()),
            (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        ];
        for (name, value) in always {
            response.headers_mut().insert(name, value);
        }
        response
    }

    fn is_known_to(&self, headers: &HeaderMap) -> bool {
        let known = headers.get_all(header::IF_NONE_MATCH).iter();
        let known = known.filter_map(|field| field.to_str().ok());
        known
            .flat_map(|field| field.split(','))
            .any(|tag| tag.trim() == self.tag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every module imported by a module of the page is served, and so is everything named by the page itself.
    #[test]
    fn every_part_of_the_page_is_served() {
        let mut named = Vec::new();
        for (_, _, text) in PARTS {
            named.extend(text.split("from \"./").skip(1));
        }
        let page = include_str!("../page/index.html");
        named.extend(page.split("\"page/").skip(1));
        assert!(named.len() >= 10);
        for rest in named {
            let name = rest.split('"').next().unwrap();
            assert!(PARTS.iter().any(|(known, ..)| *known == name), "{name}");
        }
        // Every module is preloaded, rather than requested only after another module has named it.
        for (name, content_type, _) in PARTS {
            assert!(*content_type != JAVASCRIPT || page.contains(&format!("\"page/{name}\"")));
        }
    }

    /// The limit is on the compressed size of all parts together.
    #[test]
    fn the_page_is_at_most_150_kb() {
        const MOST_BYTES: usize = 150_000;
        let sizes = Assets::new(&[]).of_page.into_iter();
        let n_bytes: usize = sizes.map(|part| part.packed.len()).sum();
        assert!((50_000..=MOST_BYTES).contains(&n_bytes), "{n_bytes} bytes");
    }

    #[test]
    fn the_chart_library_matches_its_documented_checksums() {
        let named = include_str!("../page/uplot/README.md");
        let files = [
            (
                "uPlot.iife.min.js",
                include_str!("../page/uplot/uPlot.iife.min.js"),
            ),
            ("uPlot.min.css", include_str!("../page/uplot/uPlot.min.css")),
            ("LICENSE", include_str!("../page/uplot/LICENSE")),
        ];
        for (name, text) in files {
            let sum = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
            let sum: String = sum.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
            assert!(named.contains(&format!("{sum}  {name}\n")), "{name} is {sum}");
        }
        let lock = include_str!("../../../tests/browser/package-lock.json");
        let lock: serde_json::Value = serde_json::from_str(lock).unwrap();
        let version = lock["packages"]["node_modules/uplot"]["version"]
            .as_str()
            .unwrap();
        assert!(named.starts_with(&format!("# uPlot {version}\n")));
    }

    /// Requests all parts as a browser does.
    #[test]
    fn a_part_is_resent_only_if_its_tag_differs() {
        let parts = Assets::new(&[]);
        let ask = |name: &str, known: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_ENCODING, "gzip".parse().unwrap());
            if let Some(known) = known {
                headers.insert(header::IF_NONE_MATCH, known.parse().unwrap());
            }
            parts.answer(name, &headers)
        };
        let first = ask("page.js", None);
        assert_eq!(first.headers()["content-encoding"], "gzip");
        let tag = first.headers()["etag"].to_str().unwrap();
        for known in [tag.to_owned(), format!("\"other\", {tag}")] {
            let again = ask("page.js", Some(&known));
            assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
            assert_eq!(again.headers().get("content-encoding"), None);
            assert_eq!(again.headers()["etag"], tag);
        }
        for other in ["\"other\"", ask(PAGE, None).headers()["etag"].to_str().unwrap()] {
            assert_eq!(ask("page.js", Some(other)).status(), StatusCode::OK);
        }
    }
}
