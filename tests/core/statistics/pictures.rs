//! The pictures of docs/statistics.md show values that the code computes.

#[allow(dead_code, reason = "its main prints more of the same")]
#[path = "../../../examples/peeking.rs"]
mod peeking;

/// Checks the first experiments only: without optimization all of them take minutes.
#[test]
fn the_first_experiments_in_the_pictures_match_the_code() {
    let shown = include_str!("../../../docs/statistics.txt");
    let found = peeking::text(1..=2);
    let n_lines = found.lines().count();
    assert!(n_lines > 100, "{found}");
    let first: Vec<&str> = shown.lines().take(n_lines).collect();
    assert_eq!(found.lines().collect::<Vec<_>>(), first);
}

#[test]
fn the_experiment_with_a_changing_effect_matches_the_code() {
    let shown = include_str!("../../../docs/statistics.txt");
    let is_of_it = |line: &&str| line.starts_with("change ") || line.starts_with("decision ");
    let shown: Vec<&str> = shown.lines().filter(is_of_it).collect();
    let found = peeking::changing();
    assert_eq!(found.lines().collect::<Vec<_>>(), shown);
}

/// The page makes this claim below the picture.
#[test]
fn the_changing_effect_excludes_zero_on_day_2_and_decision_intervals_cover_it() {
    let lines = include_str!("../../../docs/statistics.txt").lines();
    // The interval is last on the line.
    let intervals = |first: &'static str| {
        let lines = lines.clone().filter(move |line| line.starts_with(first));
        lines.map(|line| {
            let numbers = line.split(' ').skip(1);
            let numbers = numbers.map(|number| number.parse::<f64>().expect("a number"));
            let numbers: Vec<f64> = numbers.collect();
            numbers[numbers.len() - 2..].to_vec()
        })
    };
    let at_day_2 = intervals("change 48 ").next().expect("burn-in is done by then");
    assert!(at_day_2[0] > 0.0, "{at_day_2:?}");
    let decisions: Vec<_> = intervals("decision ").collect();
    assert_eq!(decisions.len(), 2);
    for interval in decisions {
        assert!(interval[0] < 0.0 && 0.0 < interval[1], "{interval:?}");
    }
}

/// Counts the wrong results among all experiments for each way to look.
#[test]
fn the_page_states_how_many_experiments_were_wrong() {
    let page = include_str!("../../../docs/statistics.md").replace('\n', " ");
    let experiments: Vec<Vec<&str>> = include_str!("../../../docs/statistics.txt")
        .lines()
        .filter_map(|line| line.strip_prefix("experiment "))
        .map(|fields| fields.split(' ').collect())
        .collect();
    let [fixed, sequence, lift, by_user, by_list] = [1, 2, 3, 4, 5];
    let left_zero = |field: usize| move |of: &&Vec<&str>| of[field] != "-";
    let misses = |half: usize| {
        move |of: &&Vec<&str>| {
            let [lift, half] = [of[lift], of[half]].map(|text| text.parse::<f64>().expect("a number"));
            lift.abs() > half
        }
    };
    let n = experiments.len();
    let all = experiments.iter();
    let rows = [
        (
            "interval for one look, taken at every look",
            all.clone().filter(left_zero(fixed)).count(),
        ),
        (
            "sequence, at every look",
            all.clone().filter(left_zero(sequence)).count(),
        ),
        (
            "interval for one look, by user, at the end",
            all.clone().filter(misses(by_user)).count(),
        ),
        (
            "the same, with each list taken as a user",
            all.filter(misses(by_list)).count(),
        ),
    ];
    for (what, wrong) in rows {
        let row = format!("| {what} | {wrong} of {n} |");
        assert!(page.contains(&row), "{row}");
        assert!(page.matches(&format!("{wrong} of {n}")).count() > 1, "{row}");
    }
}
