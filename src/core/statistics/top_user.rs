//! Check that no single user has so many of an arm's lists that they dominate its numbers.

use crate::rounding::percentage;

/// Lists below which an arm has no warning, because a user can easily have several of the first few.
const MIN_LISTS: f64 = 100.0;

/// Returns the warning of [`top_user_note`] with the experiment's name.
pub fn top_user_warning(
    [experiment, arm]: [&str; 2],
    lists: f64,
    top_user_lists: f64,
    max_share: f64,
) -> Option<String> {
    let note = top_user_note(arm, lists, top_user_lists, max_share)?;
    Some(format!("experiment `{experiment}`: {note}"))
}

/// Returns the problem and its remedy if one user has more than `max_share` of an arm's lists. `top_user_lists` are the lists
/// of the user with the most, exact or estimated.
pub fn top_user_note(arm: &str, lists: f64, top_user_lists: f64, max_share: f64) -> Option<String> {
    let share = top_user_lists / lists;
    (lists >= MIN_LISTS && share > max_share).then(|| {
        format!(
            "one user has about {} of the lists of the arm {arm}, more than limits.max_user_share ({}%): \
             filter crawlers and monitors, set max_lists_per_user, or add the id to join.no_user if it stands for no user",
            percentage(share, 1),
            100.0 * max_share
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_top_user_is_reported_above_the_share_but_never_for_few_lists() {
        let warning = |lists, of_user, max| top_user_warning(["ranker", "neural"], lists, of_user, max);
        assert_eq!(warning(99.0, 99.0, 0.05), None);
        assert_eq!(warning(1000.0, 50.0, 0.05), None);
        let reported = warning(1000.0, 51.0, 0.05).expect("more than 5%");
        assert!(
            reported.contains("`ranker`: one user has about 5.1% of the lists of the arm neural"),
            "{reported}"
        );
        assert_eq!(warning(1000.0, 1000.0, 1.0), None, "1 switches it off");
    }
}
