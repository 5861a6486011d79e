//! Profiles as tables for people, readable at 100 columns.

use abgauge_core::metrics::profile::{CHOICES, Choice};
use abgauge_core::metrics::{
    Average, METRICS, NdcgDiscount, Population, Profile, RecallDenominator, Truncation, WithoutRelevant,
};
use abgauge_core::table::{text, visible};
use comfy_table::{ContentArrangement, Table};

use super::reports;

const WIDTH: u16 = 100;

/// Cell for a metric that a source does not have.
const NONE: &str = "–";

/// Formats a row for each profile, its sources, and the meaning of each choice.
pub(super) fn all(profiles: &[Profile]) -> String {
    let mut rows = table([
        "profile",
        "population",
        "off-list",
        "precision",
        "AP",
        "RR",
        "NDCG ideal",
    ]);
    let mut sources = table(["profile", "source", "also"]);
    for profile in profiles {
        rows.add_row(row(profile));
        sources.add_row([visible(&profile.name), visible(&profile.source), also(profile)]);
    }
    format!(
        "{}\n\nwhole: over the whole list only, reported without @k. {NONE}: the source has no such metric.\n\n{}\n\n{}\n\n\
         `abgauge profiles NAME` shows every choice of one, and how to derive your own.\n",
        text(&rows),
        text(&sources),
        text(&meanings())
    )
}

fn row(profile: &Profile) -> [String; 7] {
    let with = |metric: &str, word: &str, more: &str| match reports(profile, metric) {
        true => format!("{word}{more}"),
        false => NONE.to_owned(),
    };
    let end = |truncation: Truncation| match truncation {
        Truncation::AtK => "",
        Truncation::None => ", whole",
    };
    let average = match profile.precision_average {
        Average::Macro => "",
        Average::Micro => " (micro)",
    };
    [
        visible(&profile.name),
        profile.population.word().to_owned(),
        profile.off_list.word().to_owned(),
        with("precision", profile.precision_denominator.word(), average),
        with("map", profile.ap_denominator.word(), end(profile.ap_truncation)),
        with("mrr", profile.reciprocal_rank.word(), end(profile.rr_truncation)),
        with("ndcg", profile.ndcg_ideal.word(), end(profile.ndcg_truncation)),
    ]
}

/// Returns what the row leaves out: other populations, micro recall, and rare metrics.
fn also(profile: &Profile) -> String {
    let mut also = Vec::new();
    let other = |metric: &'static str, population: Population| {
        (reports(profile, metric) && population != profile.population).then_some((metric, population.word()))
    };
    let others = [
        other("precision", profile.precision_population),
        other("recall", profile.recall_population),
        other("map", profile.map_population),
    ];
    let others: Vec<_> = others.into_iter().flatten().collect();
    for same in others.chunk_by(|a, b| a.1 == b.1) {
        let metrics: Vec<&str> = same.iter().map(|(metric, _)| *metric).collect();
        also.push(format!("{} over {} lists", metrics.join(", "), same[0].1));
    }
    if profile.recall_average == Average::Micro {
        also.push("recall (micro)".to_owned());
    }
    if profile.recall_denominator != RecallDenominator::Relevant {
        also.push(format!("recall ÷ {}", profile.recall_denominator.word()));
    }
    if profile.ndcg_discount != NdcgDiscount::NextRank {
        also.push(format!("NDCG ÷ {}", profile.ndcg_discount.word()));
    }
    if profile.without_relevant == WithoutRelevant::One {
        also.push("map and ndcg are 1 without a relevant item".to_owned());
    }
    if reports(profile, "mar") {
        also.push(format!("mar: AR {}", profile.ar_denominator.word()));
    }
    if profile.metrics.len() == METRICS.len() {
        also.push("every metric".to_owned());
    } else {
        // The text above names mar with its denominator.
        let rare = profile
            .metrics
            .iter()
            .filter(|id| !is_common(id) && **id != "mar");
        also.extend(rare.map(|id| (*id).to_owned()));
    }
    also.join("; ")
}

/// Returns whether most sources have a metric.
fn is_common(id: &str) -> bool {
    let sources = Profile::all();
    let n_with = sources.iter().filter(|source| reports(source, id)).count();
    2 * n_with > sources.len()
}

/// Lists every choice with its words and their meanings. Words shared by several choices are listed once.
fn meanings() -> Table {
    let mut table = table(["choice", "word", "meaning"]);
    for (index, choice) in CHOICES.iter().enumerate() {
        let words = (choice.words)();
        let alike = CHOICES[..index].iter().find(|earlier| (earlier.words)() == words);
        match alike {
            Some(earlier) => {
                let about = format!("{} (words: see {})", choice.about, earlier.setting);
                table.add_row([choice.setting, "", &about]);
            }
            None => {
                table.add_row([choice.setting, "", choice.about]);
                for (word, meaning) in words {
                    table.add_row(["", word, meaning]);
                }
            }
        }
    }
    table
}

/// Formats every choice of one profile, and its section in the configuration.
pub(super) fn one(profile: &Profile) -> String {
    let mut choices = table(["choice", "word", "meaning"]);
    for choice in &CHOICES {
        let word = (choice.word)(profile);
        choices.add_row([choice.setting, word, meaning(choice, word)]);
    }
    let notes = profile.note.split("; ").filter(|note| !note.is_empty());
    let name = profile.explain_old_name();
    let notes: String = name
        .as_deref()
        .into_iter()
        .chain(notes)
        .map(|note| format!("note: {note}\n"))
        .collect();
    format!(
        "{}: {}\nmetrics: {}\n{notes}\n{}\n\nTo derive your own, in the configuration:\n\n{}",
        visible(&profile.name),
        visible(&profile.source),
        profile.metrics.join(", "),
        text(&choices),
        toml(profile)
    )
}

fn meaning(choice: &Choice, word: &str) -> &'static str {
    let words = (choice.words)();
    let known = words.into_iter().find(|(known, _)| *known == word);
    known.map_or("", |(_, meaning)| meaning)
}

/// Formats a custom profile. It sets every choice, so only the metrics come from the base.
fn toml(profile: &Profile) -> String {
    let mut text = "[profile.mine]\n".to_owned();
    match Profile::named(&profile.name) {
        Some(base) => text.push_str(&format!("base = \"{}\"\n", base.name)),
        // A custom profile cannot be a base, so its metrics are listed.
        None => text.push_str(&format!("base = \"default\"\nmetrics = {:?}\n", profile.metrics)),
    }
    for choice in &CHOICES {
        text.push_str(&format!("{} = \"{}\"\n", choice.setting, (choice.word)(profile)));
    }
    text
}

fn table<const N: usize>(header: [&str; N]) -> Table {
    let mut table = abgauge_core::table::new();
    table
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(WIDTH)
        .set_header(header);
    table
}
