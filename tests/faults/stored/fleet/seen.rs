//! Checks of scrapes over all instances: no arm decreases, and no two instances show the same arm.
//!
//! Every arm belongs to one partition. A scrape was answered at some moment between its beginning and its end.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

/// Answer of an instance.
#[derive(Debug, Clone)]
pub struct Scrape {
    pub instance: usize,
    /// Number that distinguishes the processes of an instance.
    pub life: u64,
    /// Time since the watch began, like `end`.
    pub begin: Duration,
    pub end: Duration,
    /// Settled lists by arm.
    pub lists: BTreeMap<String, u64>,
}

/// Period in which an instance has shown an arm without a break, at least from the end of the first scrape to the beginning of
/// the last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Showing {
    instance: usize,
    from: Duration,
    to: Duration,
}

/// Scrapes in the order of their ends.
pub struct Seen {
    scrapes: Vec<Scrape>,
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let gaps = self.gaps();
        let seconds = |share: f64| quantile(&gaps, share).as_secs_f64();
        write!(
            f,
            "{} scrapes; an arm was not shown {} times, for {:.1} s (p50), {:.1} s (p99)",
            self.scrapes.len(),
            gaps.len(),
            seconds(0.5),
            seconds(0.99)
        )
    }
}

impl Seen {
    pub fn new(mut scrapes: Vec<Scrape>) -> Seen {
        scrapes.sort_by_key(|scrape| scrape.end);
        Seen { scrapes }
    }

    /// Returns the scrapes that showed less than another one had shown a lease before, on any instance.
    pub fn falls(&self, lease: Duration) -> Vec<String> {
        let mut falls = Vec::new();
        let mut highest = BTreeMap::<&str, u64>::new();
        let mut earlier = self.scrapes.iter().peekable();
        let mut by_begin: Vec<&Scrape> = self.scrapes.iter().collect();
        by_begin.sort_by_key(|scrape| scrape.begin);
        for scrape in by_begin {
            while let Some(before) = earlier.next_if(|before| before.end + lease <= scrape.begin) {
                for (arm, n) in &before.lists {
                    let known = highest.entry(arm).or_default();
                    *known = (*known).max(*n);
                }
            }
            for (arm, n) in &scrape.lists {
                if let Some(before) = highest.get(&**arm).filter(|before| *before > n) {
                    falls.push(format!(
                        "{arm} fell from {before} to {n} in instance {} at {:?}",
                        scrape.instance, scrape.begin
                    ));
                }
            }
        }
        falls
    }

    /// Returns the arms that two instances have shown for longer than a lease.
    pub fn two_owners(&self, lease: Duration) -> Vec<String> {
        let mut found = Vec::new();
        for (arm, showings) in self.showings() {
            for (number, one) in showings.iter().enumerate() {
                let others = showings[number + 1..]
                    .iter()
                    .filter(|other| other.instance != one.instance);
                for other in others {
                    let (from, to) = (one.from.max(other.from), one.to.min(other.to));
                    if to.saturating_sub(from) > lease {
                        found.push(format!("{arm} was shown by {one:?} and by {other:?}"));
                    }
                }
            }
        }
        found
    }

    /// Returns how long no instance showed an arm, for each such gap; ascending. The gaps are upper bounds,
    /// since they include the scrapes before and after.
    pub fn gaps(&self) -> Vec<Duration> {
        let mut gaps = Vec::new();
        for mut showings in self.showings().into_values() {
            showings.sort_by_key(|showing| showing.from);
            let mut reach = showings[0].to;
            for showing in showings {
                if showing.from > reach {
                    gaps.push(showing.from - reach);
                }
                reach = reach.max(showing.to);
            }
        }
        gaps.sort_unstable();
        gaps
    }

    fn showings(&self) -> BTreeMap<&str, Vec<Showing>> {
        let mut all = BTreeMap::<&str, Vec<Showing>>::new();
        let instances: BTreeSet<usize> = self.scrapes.iter().map(|scrape| scrape.instance).collect();
        for instance in instances {
            let mut open = BTreeMap::<&str, Showing>::new();
            let mut life = 0;
            for scrape in self.scrapes.iter().filter(|scrape| scrape.instance == instance) {
                for (arm, showing) in std::mem::take(&mut open) {
                    match scrape.life == life && scrape.lists.contains_key(arm) {
                        true => drop(open.insert(arm, showing)),
                        false => all.entry(arm).or_default().push(showing),
                    }
                }
                life = scrape.life;
                for arm in scrape.lists.keys() {
                    let showing = open.entry(arm).or_insert(Showing {
                        instance,
                        from: scrape.end,
                        to: scrape.begin,
                    });
                    showing.to = scrape.begin;
                }
            }
            for (arm, last) in open {
                all.entry(arm).or_default().push(last);
            }
        }
        all
    }
}

/// Returns the shortest of ascending times that is at least as long as this share of them.
pub fn quantile(ascending: &[Duration], share: f64) -> Duration {
    let place = (share * ascending.len() as f64).ceil() as usize;
    ascending
        .get(place.saturating_sub(1))
        .copied()
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(2);

    /// Returns scrapes without a duration, by instance and second: the lists of one arm, or `None` if it is not shown.
    fn seen(of: &[(usize, u64, Option<u64>)]) -> Seen {
        let scrape = |&(instance, second, lists): &(usize, u64, Option<u64>)| Scrape {
            instance,
            life: 1,
            begin: Duration::from_secs(second),
            end: Duration::from_secs(second),
            lists: lists.map(|n| ("a".to_owned(), n)).into_iter().collect(),
        };
        Seen::new(of.iter().map(scrape).collect())
    }

    #[test]
    fn less_than_a_lease_before_is_a_fall_on_any_instance() {
        let old_owner_within_its_lease = seen(&[(0, 0, Some(5)), (1, 1, Some(9)), (0, 2, Some(5))]);
        assert_eq!(old_owner_within_its_lease.falls(LEASE), Vec::<String>::new());
        let beyond_it = seen(&[(0, 0, Some(5)), (1, 1, Some(9)), (0, 3, Some(5))]);
        assert_eq!(beyond_it.falls(LEASE).len(), 1);
    }

    #[test]
    fn two_instances_may_show_an_arm_for_a_lease() {
        let both = |seconds: u64| {
            let of = (0..=seconds).flat_map(|second| [(0, second, Some(1)), (1, second, Some(1))]);
            seen(&of.collect::<Vec<_>>())
        };
        assert_eq!(both(2).two_owners(LEASE), Vec::<String>::new());
        assert_eq!(both(3).two_owners(LEASE).len(), 1);
    }

    #[test]
    fn a_gap_is_a_time_when_no_instance_shows_an_arm() {
        let handed_over = seen(&[
            (0, 0, Some(1)),
            (0, 1, None),
            (1, 1, Some(1)),
            (1, 2, None),
            (0, 5, Some(1)),
        ]);
        assert_eq!(handed_over.gaps(), [1, 4].map(Duration::from_secs));
    }
}
