//! Detects that many lists have the same request id, as when a producer sends "undefined" for all of them.

/// The most frequent id among recent lists that arrived while another list of their id was open.
///
/// A majority vote (Boyer and Moore, MJRTY, 1981), with so few votes that an id which has ceased is soon forgotten. Only lists
/// that come again are asked, so most cost nothing.
#[derive(Debug, Default)]
pub struct SharedId {
    id: u128,
    votes: u32,
}

/// Up to here an id may be one that was sent again: retries go round many ids.
const FEW: u32 = 32;
const MAX: u32 = 256;

impl SharedId {
    /// Takes the id of a list that arrived while another one was open; returns whether very many lists have it.
    pub fn observe(&mut self, id: u128) -> bool {
        if self.votes == 0 {
            self.id = id;
        }
        if self.id != id {
            self.votes -= 1;
            return false;
        }
        // The limit lets another id take over soon after this one stops.
        self.votes = (self.votes + 1).min(MAX);
        self.votes > FEW
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(ids: impl Iterator<Item = u128>) -> usize {
        let mut shared = SharedId::default();
        ids.filter(|id| shared.observe(*id)).count()
    }

    #[test]
    fn retries_of_many_ids_are_not_a_shared_id() {
        assert_eq!(check((0..10_000).map(|n| n / 3)), 0);
        assert_eq!(check((0..10_000).map(|n| n % 7)), 0);
    }

    #[test]
    fn a_shared_id_among_others_is_detected_and_so_is_the_next_one() {
        let mostly = |id| (0..3000_u128).map(move |n| if n % 4 == 0 { 1000 + n } else { id });
        let n = check(mostly(7));
        assert!((2100..=2250).contains(&n), "{n} of 2250");
        let n = check(mostly(7).chain(mostly(8)));
        assert!((3800..=4500).contains(&n), "{n} of 4500");
    }
}
