//! `abgauge catalog build`: builds a catalogue from the items of a stream and the number of users who touched each.

use std::io::BufWriter;
use std::process::ExitCode;

use abgauge_core::decode::Decoder;
use abgauge_core::decode::shape::Shape;
use abgauge_core::engine::event::Kind;
use abgauge_core::evaluate::source::{self, EventFields};
use anyhow::anyhow;

use super::reading::progress;
use super::{BAD_DATA, error, inputs, note, refuse, warn, with_counting, written};
use crate::settings::{self, Config};
use crate::stream::kafka::inspect::Survey;
use crate::tools::catalogue_count::{CountedItems, ItemUsers, OutOfRoom};
use crate::tools::check;
use crate::tools::cli::{BuildArgs, CatalogArgs, CatalogCommand};

/// Builds a catalogue from Kafka or from files.
///
/// # Errors
/// If a file cannot be read, the memory limit is exceeded, or the catalogue cannot be written.
pub fn catalog(args: &CatalogArgs) -> anyhow::Result<ExitCode> {
    let CatalogCommand::Build(args) = &args.command;
    match args.from_kafka {
        true => of_kafka(args),
        false => of_files(args),
    }
}

fn of_files(args: &BuildArgs) -> anyhow::Result<ExitCode> {
    with_counting(args.config.config.as_deref(), |counting| {
        let events = counting.events.as_ref();
        let decoder = of_shape(&counting.join.decoder(), events);
        let mut counter = ItemUsers::new(decoder, args.touched, args.max_state);
        let files = inputs::files(&args.files, "catalog build -")?;
        let fields = EventFields {
            shape: events,
            ..EventFields::default()
        };
        let bar = progress(source::total_bytes(&files));
        for path in &files {
            let mut outcome = Ok(());
            let long = source::read(path, &fields, &|n_bytes| bar.inc(n_bytes), |_, record| {
                // Reading cannot be stopped from here, so records beyond the limit are skipped.
                if outcome.is_ok() {
                    outcome = counter.take(record, None);
                }
            })?;
            outcome.map_err(out_of_room)?;
            if !long.is_empty() {
                warn(&format!("{}: {long}", source::name(path)));
            }
        }
        bar.finish_and_clear();
        finish(counter.finish())
    })
}

/// Returns a decoder for a shape. Our own shape is passed explicitly, so that it is not built anew for each record.
fn of_shape(decoder: &Decoder, shape: Option<&Shape>) -> Decoder {
    let own = Shape::default();
    decoder.clone().reading(Some(shape.unwrap_or(&own)))
}

fn out_of_room(OutOfRoom { max_bytes }: OutOfRoom) -> anyhow::Error {
    anyhow!(
        "the items and their users take more than --max-state ({max_bytes} bytes): raise it, or count fewer days"
    )
}

fn of_kafka(args: &BuildArgs) -> anyhow::Result<ExitCode> {
    let config = match settings::load(args.config.config.as_deref(), settings::environment()) {
        Ok(config) => config,
        Err(errors) => return Ok(refuse(&errors)),
    };
    let decoder = of_shape(&config.join.decoder(), config.events.as_ref());
    let mut counter = ItemUsers::new(decoder, args.touched, args.max_state);
    let mut outcome = Ok(());
    for (topic, topic_kind) in topics(&config) {
        let read = Survey::new(&config.kafka).and_then(|survey| {
            survey.read_whole(topic, |record| {
                // An empty record is refused as invalid JSON.
                outcome = counter.take(record.unwrap_or_default(), topic_kind);
                outcome.is_ok()
            })
        });
        // Checked first: a read that was stopped for lack of room is not a failure of the brokers.
        outcome.map_err(out_of_room)?;
        if let Err(failure) = read {
            let finding = check::no_records(&config, topic, failure);
            error(&format!("{}: {}", finding.text, finding.remedy));
            return Ok(ExitCode::from(check::exit_code(&[finding])));
        }
    }
    finish(counter.finish())
}

/// Returns the topics of the configuration, with the kind of their records if it is fixed.
fn topics(config: &Config) -> Vec<(&str, Option<Kind>)> {
    let (served, clicks) = (&config.kafka.served_topic, &config.kafka.clicks_topic);
    match served == clicks {
        true => vec![(served.as_str(), None)],
        false => vec![
            (served.as_str(), Some(Kind::Served)),
            (clicks.as_str(), Some(Kind::Click)),
        ],
    }
}

/// Writes the catalogue, and prints warnings and notes.
fn finish(found: CountedItems) -> anyhow::Result<ExitCode> {
    let counted = &found.counted;
    for (reason, n) in &counted.refused {
        warn(&format!("records skipped as {}: {n}", reason.name()));
    }
    let notes = [
        ("ignored records of another type", counted.n_ignored),
        ("lists without a user", counted.n_lists_without_user),
        (
            "clicks without a user, even by their list, not counted",
            found.n_clicks_without_user,
        ),
    ];
    for (what, n) in notes.into_iter().filter(|(_, n)| *n > 0) {
        note(&format!("{what}: {n}"));
    }
    if found.items.is_empty() {
        error(
            "no item was found: `abgauge check --sample FILE` shows how events are read; for JSON of another shape add --suggest, which drafts the section [events] of a --config",
        );
        return Ok(ExitCode::from(BAD_DATA));
    }
    if found.n_users == 0 {
        warn("no event has a user: the catalogue has no shares, so popularity and surprisal are meaningless");
    }
    note(&format!(
        "items: {}, users: {}, of lists: {} and clicks: {}",
        found.items.len(),
        found.n_users,
        counted.n_lists,
        counted.n_clicks
    ));
    written(found.write(BufWriter::new(std::io::stdout().lock())))?;
    Ok(ExitCode::SUCCESS)
}
