//! Content encoding: negotiation by `Accept-Encoding`, gzip of a whole text, and gzip of a stream of texts.

use std::io::Write as _;

use axum::body::Bytes;
use axum::http::{HeaderMap, header};
use flate2::write::GzEncoder;
use flate2::{Compress, Compression, FlushCompress};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Identity,
    Gzip,
}

impl Encoding {
    /// Returns the encoding that a client prefers (RFC 9110, 12.5.3), and gzip on a tie. A client that refuses both gets
    /// plain text.
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
        // `*` covers encodings that are not listed.
        let gzip = gzip.or(any).unwrap_or(0.0);
        // An encoding that is not listed may be used too, if nothing better is acceptable.
        let identity = identity.or(any).unwrap_or(0.0);
        if gzip > 0.0 && gzip >= identity {
            Encoding::Gzip
        } else {
            Encoding::Identity
        }
    }
}

/// Returns the number in `q=0.5`. An unreadable number counts as 0.
fn weight(parameter: &str) -> Option<f32> {
    let (name, value) = parameter.split_once('=')?;
    let is_weight = name.trim().eq_ignore_ascii_case("q");
    is_weight.then(|| value.trim().parse().unwrap_or(0.0))
}

/// Compresses a text into the empty buffer `packed`, for speed rather than size.
pub(super) fn gzip(text: &[u8], packed: Vec<u8>) -> Vec<u8> {
    let mut encoder = GzEncoder::new(packed, Compression::fast());
    let written = encoder.write_all(text).and_then(|()| encoder.finish());
    written.expect("a vector takes everything")
}

/// Independently compressed text that can be part of any number of [`GzipStream`]s: whole deflate blocks that refer to
/// nothing before them and end on a byte boundary (RFC 1951, 3.2.4). A text with many readers is thus compressed once.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    packed: Bytes,
    /// Checksum of the uncompressed text.
    checksum: crc32fast::Hasher,
    n_bytes: usize,
}

impl Piece {
    pub fn of(text: &[u8]) -> Piece {
        let mut deflate = Compress::new(Compression::fast(), false);
        let mut packed = Vec::with_capacity(text.len() / 3 + 64);
        loop {
            let n_read = usize::try_from(deflate.total_in()).expect("it is in memory");
            // A full flush ends on a byte boundary and resets the dictionary, so that pieces can be joined in any order.
            deflate
                .compress_vec(&text[n_read..], &mut packed, FlushCompress::Full)
                .expect("deflate takes anything");
            // A full buffer may mean that output is left. With room to spare, the flush is complete.
            if packed.len() < packed.capacity() {
                break;
            }
            // Doubling keeps the number of rounds logarithmic in the length.
            packed.reserve(packed.len());
        }
        let mut checksum = crc32fast::Hasher::new();
        checksum.update(text);
        Piece {
            packed: packed.into(),
            checksum,
            n_bytes: text.len(),
        }
    }
}

/// State of a gzip stream of pieces after the bytes sent so far (RFC 1952, 2.3).
#[derive(Debug, Default)]
pub(super) struct GzipStream {
    checksum: crc32fast::Hasher,
    n_bytes: usize,
}

impl GzipStream {
    /// Gzip header: deflate, no name, no time, unknown system.
    pub const HEAD: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];

    /// Adds a piece and returns its bytes to send.
    pub fn add(&mut self, piece: &Piece) -> Bytes {
        // Checksums can be combined, so the text of a piece is not read again for each stream.
        self.checksum.combine(&piece.checksum);
        self.n_bytes = self.n_bytes.wrapping_add(piece.n_bytes);
        piece.packed.clone()
    }

    /// Returns the end of the stream: an empty final block, the checksum, and the length modulo 2³².
    pub fn end(self) -> Bytes {
        const LAST_BLOCK: [u8; 2] = [3, 0];
        let checksum = self.checksum.finalize().to_le_bytes();
        let length = (self.n_bytes as u32).to_le_bytes();
        Bytes::from([&LAST_BLOCK[..], &checksum, &length].concat())
    }
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
    fn gzip_is_sent_to_clients_that_accept_it() {
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
    fn plain_text_is_sent_to_all_other_clients() {
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
    fn compressed_text_decompresses_to_the_original() {
        for text in [Vec::new(), b"abgauge_lists 1\n".repeat(10_000)] {
            let packed = gzip(&text, Vec::new());
            let mut unpacked = Vec::new();
            let mut decoder = flate2::read::GzDecoder::new(&*packed);
            decoder.read_to_end(&mut unpacked).expect("it is gzip");
            assert_eq!(unpacked, text);
        }
    }

    #[test]
    fn each_prefix_of_a_gzip_stream_decompresses_to_all_pieces_sent() {
        let noise: Vec<u8> = (0..200_000_u32).map(|n| (n.wrapping_mul(n) >> 7) as u8).collect();
        let texts = [
            b"data: {}\n\n".to_vec(),
            Vec::new(),
            noise,
            b"event: beat\ndata: 1\n\n".repeat(9_000),
            b"data: {}\n\n".to_vec(),
        ];
        let mut stream = GzipStream::default();
        let mut sent = GzipStream::HEAD.to_vec();
        for n in 0..texts.len() {
            sent.extend_from_slice(&stream.add(&Piece::of(&texts[n])));
            let mut come = vec![0; texts[..=n].iter().map(Vec::len).sum()];
            let mut decoder = flate2::read::GzDecoder::new(&*sent);
            decoder.read_exact(&mut come).expect("all of it is there");
            assert!(come == texts[..=n].concat(), "the first {n}");
        }
        sent.extend_from_slice(&stream.end());
        let mut all = Vec::new();
        let mut decoder = flate2::read::GzDecoder::new(&*sent);
        decoder
            .read_to_end(&mut all)
            .expect("length and checksum are right");
        assert!(all == texts.concat());
        assert!(decoder.into_inner().is_empty(), "nothing follows");
    }
}
