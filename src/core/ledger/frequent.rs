//! Estimates the lists of an arm's most frequent user: a single crawler may decide an experiment.
//!
//! ```text
//! user ─▶ one of 64 places │ lists │ lists whose user has bit 0 set │ … bit 7 │
//! ```
//! All sums are additive, so the result depends neither on the order of lists nor on how they are spread over pairs. Suppose
//! one user has most lists of a place. The other users have each bit set about half of the time, so their lists are twice the
//! minority of a bit, averaged over the bits. This is a count sketch with group testing: Cormode and Muthukrishnan, What's hot
//! and what's not, 2005.

use super::LedgerError;
use super::book::{Aggregate, ByArm};
use super::keep::{Keep, Users};
use super::stored::StoredLedger;
use crate::bytes::{Reader, Writer};
use crate::engine::settling::SettledList;
use crate::engine::{Arm, ArmId};
use crate::metrics::Ranking;

/// Places of an arm, by the lower bits of a user: a power of two.
const N_PLACES: usize = 64;
/// Bits of a user that are counted, above those of its place.
const N_BITS: usize = 8;

/// Lists of a place, then those whose user has each bit set.
type PlaceCounts<N> = [N; 1 + N_BITS];

/// Lists of an arm by place and bit of their users: places that have a list, ascending.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FrequentUsers(Vec<(u8, PlaceCounts<u64>)>);

impl FrequentUsers {
    /// Maximum size in memory, in bytes.
    pub const MAX_BYTES: u64 = (N_PLACES * size_of::<(u8, PlaceCounts<u64>)>()) as u64;

    /// Estimates the lists of the user with the most. It is accurate once that user has a few percent of all lists.
    pub fn most(&self) -> f64 {
        let counts = self.0.iter().map(|(_, place)| most(place));
        counts.fold(0.0, f64::max)
    }

    /// Adds the lists of another span of time, or of another pair.
    pub fn merge(&mut self, more: &FrequentUsers) {
        for (number, place) in &more.0 {
            match self.0.binary_search_by_key(number, |(own, _)| *own) {
                Ok(at) => {
                    let sums = self.0[at].1.iter_mut().zip(place);
                    sums.for_each(|(sum, n)| *sum += n);
                }
                Err(at) => self.0.insert(at, (*number, *place)),
            }
        }
    }

    /// Returns the size in memory, in bytes.
    pub fn bytes(&self) -> u64 {
        (self.0.len() * size_of::<(u8, PlaceCounts<u64>)>()) as u64
    }

    /// n, (place, lists, lists with each bit…)…, ascending.
    pub(crate) fn encode(&self, to: &mut Writer) {
        to.number(self.0.len() as u64);
        for (number, place) in &self.0 {
            to.byte(*number);
            place.iter().for_each(|n| to.number(*n));
        }
    }

    /// # Errors
    /// If [`encode`](Self::encode) would not write these bytes.
    pub(crate) fn decode(from: &mut Reader) -> Result<FrequentUsers, LedgerError> {
        let mut places: Vec<(u8, PlaceCounts<u64>)> = Vec::new();
        for _ in 0..from.length()? {
            let number = from.byte()?;
            let mut place = [0; 1 + N_BITS];
            for n in &mut place {
                *n = from.number()?;
            }
            let [n_lists, bits @ ..] = place;
            let is_next = places.last().is_none_or(|(last, _)| *last < number);
            // No bit is set in more lists than the place has.
            let is_sound = (1..1 << 56).contains(&n_lists) && bits.iter().all(|n| *n <= n_lists);
            if !is_next || !is_sound || usize::from(number) >= N_PLACES {
                return Err(LedgerError::Number);
            }
            places.push((number, place));
        }
        Ok(FrequentUsers(places))
    }
}

/// Estimates the lists of the user with the most lists in a place.
fn most([n_lists, bits @ ..]: &PlaceCounts<u64>) -> f64 {
    let minorities = bits.iter().map(|n| *n.min(&(n_lists - n)));
    let others = 2.0 * minorities.sum::<u64>() as f64 / N_BITS as f64;
    *n_lists as f64 - others
}

#[derive(Debug)]
pub struct Frequent {
    users: Users,
    /// Start of counting by arm, Unix ms. It is `i64::MAX` if users are not tracked.
    starts_ms: Vec<i64>,
    /// Places of the current slot by arm. `None` before the first list with a user.
    slot: Vec<Option<Box<[PlaceCounts<u32>; N_PLACES]>>>,
    /// Arms with such a list.
    touched: Vec<ArmId>,
}

/// Counts a list of a user.
fn count(places: &mut [PlaceCounts<u32>; N_PLACES], user: u32) {
    let [n_lists, bits @ ..] = &mut places[user as usize % N_PLACES];
    *n_lists += 1;
    // All users of a place have the same lower bits, which distinguish none of them.
    let user = user / N_PLACES as u32;
    for (bit, n) in bits.iter_mut().enumerate() {
        *n += user >> bit & 1;
    }
}

impl Aggregate for Frequent {
    type Cell = FrequentUsers;
    type Slot = ByArm<FrequentUsers>;
    const ID: &str = "frequent";
    const VERSION: u64 = 1;
    const BY_USER: bool = true;

    fn new(_: &Ranking, keep: &Keep) -> Frequent {
        Frequent {
            users: keep.users.clone(),
            starts_ms: Vec::new(),
            slot: Vec::new(),
            touched: Vec::new(),
        }
    }

    fn admit(&mut self, arms: &[Arm]) {
        for arm in arms {
            self.starts_ms.push(self.users.start_ms(&arm.experiment));
            self.slot.push(None);
        }
    }

    fn forget_users(&mut self, experiment: &str, arms: &[ArmId]) {
        self.users.forget(experiment);
        arms.iter()
            .for_each(|arm| self.starts_ms[*arm as usize] = i64::MAX);
    }

    #[inline]
    fn add(&mut self, list: &SettledList) {
        let Some(user) = list.user.filter(|_| self.users != Users::Nobody) else {
            return;
        };
        for arm in list.arms {
            if list.start_ms < self.starts_ms[*arm as usize] || list.capped.contains(arm) {
                continue;
            }
            let places = &mut self.slot[*arm as usize];
            if places.is_none() {
                self.touched.push(*arm);
            }
            let places = places.get_or_insert_with(|| Box::new([[0; 1 + N_BITS]; N_PLACES]));
            count(places, user.get());
        }
    }

    fn end_slot(&mut self) -> ByArm<FrequentUsers> {
        let arms = std::mem::take(&mut self.touched).into_iter();
        let users = arms.map(|arm| {
            let places = self.slot[arm as usize].take();
            let places = (0..).zip(places.iter().flat_map(|places| places.iter()));
            let with_lists = places.filter(|(_, place)| place[0] > 0);
            let users = with_lists.map(|(number, place)| (number, place.map(u64::from)));
            (arm, FrequentUsers(users.collect()))
        });
        users.collect()
    }

    fn add_slot(&self, slot: &ByArm<FrequentUsers>, cells: &mut ByArm<FrequentUsers>) {
        for (arm, more) in slot {
            cells.entry(*arm).or_default().merge(more);
        }
    }

    fn merge(cell: &mut FrequentUsers, more: &FrequentUsers) {
        cell.merge(more);
    }

    fn encode(&self, cell: &FrequentUsers, to: &mut Writer) {
        cell.encode(to);
    }

    fn decode(&self, from: &mut Reader, _: &StoredLedger) -> Result<Option<FrequentUsers>, LedgerError> {
        FrequentUsers::decode(from).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use xxhash_rust::xxh3::xxh3_64;

    use super::*;

    /// Returns the sums of a slot with lists of these users.
    fn reported(users: impl IntoIterator<Item = u32>) -> FrequentUsers {
        let mut places = Box::new([[0; 1 + N_BITS]; N_PLACES]);
        users.into_iter().for_each(|user| count(&mut places, user));
        let mut frequent = Frequent {
            users: Users::Nobody,
            starts_ms: vec![0],
            slot: vec![Some(places)],
            touched: vec![0],
        };
        frequent.end_slot().remove(&0).expect("the arm was touched")
    }

    #[test]
    fn a_user_alone_in_its_place_is_counted_exactly() {
        assert_eq!(reported([7, 7, 8, 7]).most(), 3.0);
        assert_eq!(FrequentUsers::default().most(), 0.0);
    }

    #[test]
    fn users_in_one_place_by_hand() {
        // Users 1 and 1 + 64 × 0b1111 share place 1, and differ in half of the bits: five lists less twice the mean of 2, 2, 2,
        // 2, 0, 0, 0, 0.
        let users = reported([1, 1, 1, 1 + 64 * 0b1111, 1 + 64 * 0b1111]);
        assert_eq!(users.0, [(1, [5, 2, 2, 2, 2, 0, 0, 0, 0])]);
        assert_eq!(users.most(), 3.0);
    }

    #[test]
    fn bytes_round_trip_and_damaged_ones_are_refused() {
        let users = reported([1, 2 + 64 * 0b101]);
        let mut to = Writer::default();
        users.encode(&mut to);
        let bytes = to.into_bytes();
        assert_eq!(
            bytes,
            [2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 1, 1, 0, 1, 0, 0, 0, 0, 0]
        );
        assert_eq!(FrequentUsers::decode(&mut Reader::new(&bytes)), Ok(users));
        for (at, wrong) in [(1, 2), (1, 64), (2, 0), (3, 2), (0, 3)] {
            let mut bytes = bytes.clone();
            bytes[at] = wrong;
            let decoded = FrequentUsers::decode(&mut Reader::new(&bytes));
            assert!(decoded.is_err(), "{at}: {wrong}");
        }
    }

    proptest! {
        /// The twin counts: one user with 3% to 50% of the lists, among thousands of others with up to 20 lists each.
        #[test]
        fn a_frequent_user_is_estimated_within_half_a_percent_of_all_lists(
            seed in any::<u32>(),
            n_lists in prop::collection::vec(1_usize..20, 2000..4000),
            share in 0.03..0.5_f64,
        ) {
            let user = |n: usize| xxh3_64(&[u64::from(seed).to_le_bytes(), (n as u64).to_le_bytes()].concat()) as u32;
            let others: usize = n_lists.iter().sum();
            let n_own = (share / (1.0 - share) * others as f64) as usize;
            let users = n_lists.iter().enumerate();
            let lists = users.flat_map(|(n, n_lists)| std::iter::repeat_n(user(n + 1), *n_lists));
            let lists = lists.chain(std::iter::repeat_n(user(0), n_own));
            let error = (reported(lists).most() - n_own as f64) / (others + n_own) as f64;
            prop_assert!(error.abs() < 0.005, "{error} at {share}");
        }

        /// Without a frequent user, no estimate reaches 5%.
        #[test]
        fn no_user_among_many_appears_frequent(seed in any::<u32>(), n_users in 200_u64..3000) {
            let user = |n: u64| xxh3_64(&[u64::from(seed).to_le_bytes(), n.to_le_bytes()].concat()) as u32;
            let most = reported((0..n_users).map(user)).most();
            prop_assert!(most < 0.05 * n_users as f64, "{most} of {n_users}");
        }
    }
}
