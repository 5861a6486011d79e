//! How a body is packed: what a client's `Accept-Encoding` asks for, and gzip.

use std::io::Write as _;

use axum::http::{HeaderMap, header};
use flate2::Compression;
use flate2::write::GzEncoder;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Identity,
    Gzip,
}

impl Encoding {
    /// What a client likes best (RFC 9110, 12.5.3); gzip where it likes both alike. One that refuses both is sent the
    /// text as it is.
    pub fn wanted(headers: &HeaderMap) -> Encoding {
        let (mut gzip, mut identity, mut any) = (None, None, None);
        let fields = headers.get_all(header::ACCEPT_ENCODING).iter();
        let fields = fields.filter_map(|field| field.to_str().ok());
        for choice in fields.flat_map(|field| field.split(',')) {
            let mut parts = choice.split(';').map(str::trim);
            let weight = || parts.clone().skip(1).find_map(weight).unwrap_or(1.0);
            let weight = Some(weight());
            match parts.next().unwrap_or_default().to_ascii_lowercase().as_str() {
                "gzip" | "x-gzip" => gzip = weight,
                "identity" => identity = weight,
                "*" => any = weight,
                _ => {}
            }
        }
        let gzip = gzip.or(any).unwrap_or(0.0);
        // Not named, it may be sent all the same, if nothing better is there.
        let identity = identity.or(any).unwrap_or(0.0);
        if gzip > 0.0 && gzip >= identity {
            Encoding::Gzip
        } else {
            Encoding::Identity
        }
    }
}

/// The number of `q=0.5`; what cannot be read is no wish.
fn weight(parameter: &str) -> Option<f32> {
    let (name, value) = parameter.split_once('=')?;
    let is_weight = name.trim().eq_ignore_ascii_case("q");
    is_weight.then(|| value.trim().parse().unwrap_or(0.0))
}

/// Packs a text into `packed`, which is empty: fast rather than small.
pub(super) fn gzip(text: &[u8], packed: Vec<u8>) -> Vec<u8> {
    let mut encoder = GzEncoder::new(packed, Compression::fast());
    let written = encoder.write_all(text).and_then(|()| encoder.finish());
    written.expect("a vector takes everything")
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[track_caller]
    fn check(fields: &[&str], expected: Encoding) {
        let mut headers = HeaderMap::new();
        for field in fields {
            headers.append(header::ACCEPT_ENCODING, field.parse().expect("it is a header"));
        }
        assert_eq!(Encoding::wanted(&headers), expected, "{fields:?}");
    }

    #[test]
    fn gzip_is_sent_to_those_who_accept_it() {
        for accepting in [
            "gzip",
            "GZIP",
            "x-gzip",
            "deflate, gzip;q=1.0, *;q=0.5",
            "br , gzip ; q=0.2",
            "*",
            "identity;q=0, *",
            "identity;q=0.5, gzip;q=0.5",
            "gzip;q=0.001",
        ] {
            check(&[accepting], Encoding::Gzip);
        }
        check(&["br", "gzip"], Encoding::Gzip);
    }

    #[test]
    fn the_text_itself_is_sent_to_all_others() {
        for refusing in [
            "",
            "identity",
            "br, deflate, zstd",
            "gzip;q=0",
            "gzip;q=0.000, *",
            "gzip;q=0.5, identity",
            "*;q=0",
            "gzip;q=oops",
            "identity;q=0",
            "gzipped",
        ] {
            check(&[refusing], Encoding::Identity);
        }
        check(&[], Encoding::Identity);
    }

    #[test]
    fn what_is_packed_comes_out_as_it_was() {
        for text in [Vec::new(), b"abgauge_lists 1\n".repeat(10_000)] {
            let packed = gzip(&text, Vec::new());
            let mut unpacked = Vec::new();
            let mut decoder = flate2::read::GzDecoder::new(&*packed);
            decoder.read_to_end(&mut unpacked).expect("it is gzip");
            assert_eq!(unpacked, text);
        }
    }
}
