//! A catalogue is read or refused with an existing line number, also if it replaces another one. A catalogue that was read is
//! consistent.
//!
//! The bytes after a NUL byte are the replacement.

#![no_main]

use abgauge_core::metrics::catalogue::{Catalogue, Shares};
use abgauge_core::decode::catalogue;
use abgauge_core::decode::Decoder;

fn read(input: &[u8], previous: Option<&Catalogue>) -> Option<Catalogue> {
    let decoder = Decoder::new(7, 20, 100);
    match catalogue::read(input, &decoder, previous) {
        Ok(read) => Some(read),
        Err(error) => {
            let n_lines = input.split(|byte| *byte == b'\n').count() as u64;
            assert!((1..=n_lines).contains(&error.line), "{error}");
            assert!(!error.message.is_empty());
            None
        }
    }
}

fn check(catalogue: &Catalogue) {
    let n_places = u32::try_from(catalogue.n_places()).expect("places are u32");
    let listed = (0..n_places).filter(|place| catalogue.lists(*place));
    assert_eq!(listed.count(), catalogue.len());
    for place in 0..n_places {
        let Shares {
            popularity,
            surprisal,
        } = catalogue.shares(place);
        assert!((0.0..=1.0).contains(&popularity), "{popularity}");
        assert!(surprisal.is_finite() && surprisal >= 0.0, "{surprisal}");
        let n_aspects = catalogue.n_aspects();
        assert!(
            catalogue
                .aspects(place)
                .iter()
                .all(|aspect| (*aspect as usize) < n_aspects)
        );
    }
}

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let border = input.iter().position(|byte| *byte == 0);
    let (first, second) = input.split_at(border.unwrap_or(input.len()));
    let before = read(first, None);
    before.iter().for_each(check);
    let after = read(second.get(1..).unwrap_or_default(), before.as_ref());
    after.iter().for_each(check);
    if let (Some(before), Some(after)) = (before, after) {
        assert!(after.n_places() >= before.n_places(), "places are kept");
    }
});
