//! Names of metrics as people write them.

/// Names by id. The page has the same names (`src/serve/page/words.js`) with their meanings.
const NAMES: [(&str, &str); 17] = [
    ("hit_rate", "hit ratio"),
    ("ctr", "CTR"),
    ("mrr", "MRR"),
    ("ndcg", "NDCG"),
    ("precision", "precision"),
    ("recall", "recall"),
    ("map", "MAP"),
    ("map_by_k", "MAP by k"),
    ("mar", "MAR"),
    ("hits", "hits"),
    ("alpha_ndcg", "α-NDCG"),
    ("coverage", "coverage"),
    ("popularity", "popularity"),
    ("surprisal", "surprisal"),
    ("lists_per_user", "lists per user"),
    ("hits_per_user", "hits per user"),
    ("clicks_per_user", "clicks per user"),
];

/// Returns the name of a metric, such as `CTR@10` for `ctr@10`. An unknown id is unchanged.
pub fn name_of(key: &str) -> String {
    let (id, cut) = key.split_at(key.find('@').unwrap_or(key.len()));
    let known = NAMES.iter().find(|(known, _)| *known == id);
    let name = known.map_or(id, |(_, name)| name);
    format!("{name}{cut}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_its_name_and_its_cut() {
        assert_eq!(name_of("ctr@10"), "CTR@10");
        assert_eq!(name_of("hit_rate"), "hit ratio");
        assert_eq!(name_of("revenue@3"), "revenue@3");
    }

    #[test]
    fn the_page_uses_the_same_names() {
        let page = include_str!("../../serve/page/words.js");
        for (id, name) in NAMES {
            let line = format!("  {id}: {{ name: \"{name}\",");
            assert!(page.contains(&line), "{line}");
        }
    }
}
