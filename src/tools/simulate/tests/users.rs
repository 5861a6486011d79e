//! Tests of the users: who comes, how often, and in which arms.

use super::*;

/// Lists of a world without noise.
fn lists(n: u64, world: World) -> Vec<Value> {
    let traffic = traffic(n, |settings| {
        settings.noise = Noise::NONE;
        settings.world = world;
    });
    let lists = traffic.filter(|record| record.kind == RecordKind::List);
    lists
        .map(|list| serde_json::from_slice(&list.payload).unwrap())
        .collect()
}

#[test]
fn users_return_and_stay_in_the_same_arms() {
    let mut by_user: HashMap<String, (u32, Value)> = HashMap::new();
    let lists = lists(50_000, World::default());
    for list in &lists {
        let user = list["user_id"].as_str().unwrap().to_owned();
        let (n_lists, arms) = by_user.entry(user).or_insert((0, list["experiments"].clone()));
        assert_eq!(*arms, list["experiments"], "{list}");
        *n_lists += 1;
    }
    let mut counts: Vec<u32> = by_user.values().map(|(n_lists, _)| *n_lists).collect();
    counts.sort_unstable();
    // Of the 20,000 users, the n-th is expected to come 50,000 (√(n/20,000) − √((n − 1)/20,000)) times.
    assert!((8_000..20_000).contains(&counts.len()), "{}", counts.len());
    assert_eq!(counts[counts.len() / 2], 2);
    assert!((250..450).contains(counts.last().unwrap()), "{counts:?}");
}

#[test]
fn millions_of_users_need_no_table() {
    let population = Population {
        n_users: NonZeroU32::new(50_000_000).unwrap(),
        activity: Activity::Even,
        ..Population::default()
    };
    let world = World {
        population,
        ..World::default()
    };
    let lists = lists(20_000, world);
    let users: BTreeSet<_> = lists
        .iter()
        .map(|list| list["user_id"].as_str().unwrap())
        .collect();
    // Four coinciding pairs are expected.
    assert!(
        lists.len() - users.len() <= 14,
        "{} of {}",
        users.len(),
        lists.len()
    );
}

#[test]
fn arms_get_their_shares_of_active_users() {
    let design = Design::default().with_shares(&of_arms(&[("control", 0.8), ("neural", 0.2)]));
    let lists = lists(50_000, world(design.unwrap()));
    let arms: HashMap<_, _> = lists
        .iter()
        .map(|list| {
            (
                list["user_id"].as_str().unwrap(),
                list["experiments"]["ranker"].as_str().unwrap(),
            )
        })
        .collect();
    let n = arms.len() as f64;
    let n_neural = arms.values().filter(|arm| **arm == "neural").count() as f64;
    assert!(arms.values().all(|arm| *arm != "blend"));
    assert!(n > 20_000.0, "{n}");
    assert!(
        (n_neural - 0.2 * n).abs() < 4.0 * (n * 0.16).sqrt(),
        "{n_neural} of {n}"
    );
}

#[test]
fn an_arm_can_make_its_users_visit_more_often() {
    let design = Design::default()
        .with_visits(&of_arms(&[("carousel", 0.5)]))
        .unwrap();
    let mut world = world(design);
    world.population.activity = Activity::Even;
    let lists = lists(50_000, world);
    let n = lists.len() as f64;
    let of_carousel = lists
        .iter()
        .filter(|list| list["experiments"]["layout"] == "carousel");
    let n_carousel = of_carousel.count() as f64;
    assert!(
        (n_carousel - 0.6 * n).abs() < 4.0 * (n * 0.24).sqrt(),
        "{n_carousel} of {n}"
    );
}
