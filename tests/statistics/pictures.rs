//! What the pictures of docs/statistics.md show is what the code gives.

#[allow(dead_code, reason = "its main prints more of the same")]
#[path = "../../examples/peeking.rs"]
mod peeking;

/// All experiments of the example take minutes without optimisation.
#[test]
fn the_first_experiments_of_the_pictures_are_those_of_the_code() {
    let shown = include_str!("../../docs/statistics.txt");
    let found = peeking::text(1..=2);
    let n_lines = found.lines().count();
    assert!(n_lines > 100, "{found}");
    let first: Vec<&str> = shown.lines().take(n_lines).collect();
    assert_eq!(found.lines().collect::<Vec<_>>(), first);
}
