//! `[events]`: how to read records whose shape differs from ours.

use abgauge_core::decode::MAX_LABEL_BYTES;
use abgauge_core::decode::shape::{
    ArmsShape, ClickShape, Nested, Path, Paths, ServedShape, Shape, TsUnit, Zone,
};
use abgauge_core::engine::OTHER;
use toml::Spanned;

use super::values::choice;
use crate::settings::error::{ErrorReport, Location};
use crate::settings::paths::{RawId, RawPaths};
use crate::settings::raw::{RawClick, RawEvents, RawKafka, RawServed};
use crate::settings::rules::{KINDS, NO_ITEMS, WHOLE};

const SERVED_ID: &str = "events.served.request_id";
const CLICK_ID: &str = "events.click.request_id";
const TYPE: &str = "events.type";
const SERVED_TYPES: &str = "events.served.types";
const CLICK_TYPES: &str = "events.click.types";
const ACTION: &str = "events.click.action";
const ARM: &str = "events.served.arm";
const ROW_ITEMS: &str = "events.served.row_items";
const EXPERIMENT: &str = "events.served.experiment";

type Word = Option<Spanned<String>>;
type PathWord = Option<Spanned<RawPaths>>;
type Words = Option<Spanned<Vec<Spanned<String>>>>;

/// Returns the shape of records if it is not our own: the preset's shape, or else ours, with the given settings on top.
pub(super) fn events(raw: &RawEvents, report: &mut ErrorReport) -> Option<Shape> {
    raw.check("events", report);
    let preset = raw
        .preset
        .as_ref()
        .and_then(|name| choice("events.preset", name, &Shape::PRESETS, report));
    let mut shape = preset.map_or_else(Shape::default, |preset| preset());
    may_be_absent(TYPE, &raw.kind, &mut shape.kind, report);
    if let Some(word) = &raw.without_type {
        shape.without_kind = choice("events.without_type", word, &KINDS, report).flatten();
    }
    nested(&raw.nested, &mut shape.nested, report);
    records(&raw.records, &mut shape.records, report);
    if let Some(word) = &raw.ts_unit {
        shape.ts_unit = choice("events.ts_unit", word, &TsUnit::ALL, report);
    }
    zone(&raw.ts_zone, &mut shape.ts_zone, report);
    // Before the settings of each kind, which override it.
    may_be_absent("events.user_id", &raw.user_id, &mut shape.served.user_id, report);
    if raw.user_id.is_some() {
        shape.click.user_id.clone_from(&shape.served.user_id);
    }
    served(&raw.served, &mut shape.served, report);
    click(&raw.click, &mut shape.click, report);
    // The checks that follow compare several settings, so all of them must have been read.
    id_parts(raw, &shape, report);
    kinds(raw, &shape, report);
    actions(raw, &shape.click, report);
    arms(raw, &shape.served.arms, report);
    rows(raw, &shape.served, report);
    alternatives(&shape, report);
    outer(raw, &shape, report);
    // Our own shape has a faster decoder, even if the configuration spells it out.
    (shape != Shape::default()).then_some(shape)
}

/// Checks that events name their kind if one topic carries both.
pub(super) fn of_one_topic(
    raw: &RawEvents,
    shape: Option<&Shape>,
    kafka: &RawKafka,
    report: &mut ErrorReport,
) {
    let one_topic = kafka.served_topic.get_ref() == kafka.clicks_topic.get_ref();
    let served = shape.map(|shape| &shape.served);
    for (key, path) in [
        (
            "events.served.clicked",
            served.and_then(|served| served.clicked.as_ref()),
        ),
        (
            "events.served.clicked_items",
            served.and_then(|served| served.clicked_items.as_ref()),
        ),
    ] {
        if path.is_some() && !one_topic {
            let message = format!(
                "has the clicks within the lists, and kafka.clicks_topic is another topic ({})",
                kafka.clicks_topic.get_ref()
            );
            let remedy = format!("set kafka.clicks_topic to {:?} too", kafka.served_topic.get_ref());
            report.refuse_at(key, Location::Nowhere, message, remedy);
        }
    }
    if let Some(shape) = shape.filter(|_| one_topic) {
        ambiguous_kinds(raw, shape, report);
    }
    let is_silent = shape.is_some_and(|shape| shape.kind.is_none() && shape.without_kind.is_none());
    if let (true, true, Some(kind)) = (one_topic, is_silent, &raw.kind) {
        let message = "is empty, but one topic has both served lists and clicks: nothing distinguishes them";
        let remedy = "write the path of the field with the type of an event, or another kafka.clicks_topic";
        report.refuse(TYPE, kind, message, remedy);
    }
}

fn served(raw: &RawServed, shape: &mut ServedShape, report: &mut ErrorReport) {
    raw.check("events.served", report);
    words("events.served.types", &raw.types, &mut shape.kinds, report);
    request_id(
        SERVED_ID,
        &raw.request_id,
        (&mut shape.request_id, &mut shape.further_ids),
        report,
    );
    may_be_absent("events.served.user_id", &raw.user_id, &mut shape.user_id, report);
    must_be("events.served.ts", &raw.ts, &mut shape.ts, report);
    must_be("events.served.items", &raw.items, &mut shape.items, report);
    if let Some(word) = &raw.no_items {
        let is_empty = choice("events.served.no_items", word, &NO_ITEMS, report);
        shape.absent_is_empty = is_empty.unwrap_or_default();
    }
    if let Some(written) = &raw.gather {
        shape.gather_ms = Some(written.get_ref().ms).filter(|span_ms| *span_ms > 0);
    }
    for (key, written, paths) in [
        ("events.served.clicked", &raw.clicked, &mut shape.clicked),
        (
            "events.served.clicked_items",
            &raw.clicked_items,
            &mut shape.clicked_items,
        ),
        ("events.served.clicked_ts", &raw.clicked_ts, &mut shape.clicked_ts),
    ] {
        may_be_absent(key, written, paths, report);
    }
    may_be_absent("events.served.item_id", &raw.item_id, &mut shape.item_id, report);
    may_be_absent(
        "events.served.position",
        &raw.position,
        &mut shape.position,
        report,
    );
    for (written, setting) in [
        (&raw.skip_others, &mut shape.skip_others),
        (&raw.rows, &mut shape.rows),
    ] {
        if let Some(written) = written {
            *setting = *written.get_ref();
        }
    }
    may_be_absent(ROW_ITEMS, &raw.row_items, &mut shape.row_items, report);
    let arms = &mut shape.arms;
    may_be_absent(
        "events.served.experiments",
        &raw.experiments,
        &mut arms.experiments,
        report,
    );
    may_be_absent(EXPERIMENT, &raw.experiment, &mut arms.experiment, report);
    may_be_absent(ARM, &raw.arm, &mut arms.arm, report);
    words("events.served.only", &raw.only, &mut arms.only, report);
    not_in(&raw.not_in, &mut arms.not_in, report);
    for (written, text) in [
        (&raw.prefix, &mut arms.prefix),
        (&raw.arm_separator, &mut arms.arm_separator),
        (&raw.pair_separator, &mut arms.pair_separator),
    ] {
        if let Some(written) = written {
            *text = Some(written.get_ref().clone()).filter(|text| !text.is_empty());
        }
    }
    if let (Some(written), Some(_), None) = (&raw.pair_separator, &arms.pair_separator, &arms.arm_separator) {
        let remedy = "write `arm_separator` too, such as \":\" in \"ranker:neural;layout:grid\"";
        report.refuse(
            "events.served.pair_separator",
            written,
            "nothing marks the end of an experiment's name",
            remedy,
        );
    }
    label(
        "events.served.experiment_name",
        &raw.experiment_name,
        &mut arms.experiment_name,
        report,
    );
    label(
        "events.served.arm_name",
        &raw.arm_name,
        &mut arms.arm_name,
        report,
    );
}

fn click(raw: &RawClick, shape: &mut ClickShape, report: &mut ErrorReport) {
    raw.check("events.click", report);
    words("events.click.types", &raw.types, &mut shape.kinds, report);
    may_be_absent(ACTION, &raw.action, &mut shape.action, report);
    words("events.click.actions", &raw.actions, &mut shape.actions, report);
    request_id(
        CLICK_ID,
        &raw.request_id,
        (&mut shape.request_id, &mut shape.further_ids),
        report,
    );
    may_be_absent("events.click.user_id", &raw.user_id, &mut shape.user_id, report);
    must_be("events.click.ts", &raw.ts, &mut shape.ts, report);
    must_be("events.click.item", &raw.item, &mut shape.item, report);
}

/// Checks that `type` names a field if a kind has `types`.
fn kinds(raw: &RawEvents, shape: &Shape, report: &mut ErrorReport) {
    for (key, types) in [(SERVED_TYPES, &raw.served.types), (CLICK_TYPES, &raw.click.types)] {
        if let (Some(types), None, true) = (types, &shape.kind, report.is_sound(TYPE)) {
            let remedy = "write `type`, the path of the field that has these values, or leave them out";
            report.refuse(
                key,
                types,
                "no setting names the field with the type of a record",
                remedy,
            );
        }
    }
}

/// Checks that each word means one kind only.
fn ambiguous_kinds(raw: &RawEvents, shape: &Shape, report: &mut ErrorReport) {
    let double = shape
        .served
        .kinds
        .iter()
        .find(|kind| shape.click.kinds.contains(kind));
    if let Some(kind) = double {
        let given = [(CLICK_TYPES, &raw.click.types), (SERVED_TYPES, &raw.served.types)];
        for (key, types) in given
            .into_iter()
            .filter_map(|(key, types)| Some((key, types.as_ref()?)))
            // One error is enough, because both settings have the same word.
            .take(1)
        {
            let message =
                format!("\"{kind}\" means both a served list and a click, and both are in one topic");
            report.refuse(key, types, message, "write different types for served and click");
        }
    }
}

/// Checks that the path of the action and its values are set together.
fn actions(raw: &RawEvents, click: &ClickShape, report: &mut ErrorReport) {
    const ACTIONS: &str = "events.click.actions";
    match (&click.action, click.actions.is_empty()) {
        (Some(_), true) if report.is_sound(ACTIONS) => {
            let remedy = "write `actions`, the values of this field that mean a click, such as [\"click\"]";
            refuse_either(
                [
                    (ACTIONS, spot(&raw.click.actions)),
                    (ACTION, spot(&raw.click.action)),
                ],
                "no action means a click",
                remedy,
                report,
            );
        }
        (None, false) if report.is_sound(ACTION) => {
            let remedy = "write `action`, the path of the field that has these values, or leave them out";
            refuse_either(
                [
                    (ACTION, spot(&raw.click.action)),
                    (ACTIONS, spot(&raw.click.actions)),
                ],
                "no setting names the field with the action",
                remedy,
                report,
            );
        }
        _ => {}
    }
}

/// Checks that `row_items` is set only together with `rows`.
fn rows(raw: &RawEvents, served: &ServedShape, report: &mut ErrorReport) {
    if served.row_items.is_some() && !served.rows && report.is_sound(ROW_ITEMS) {
        let remedy = "write `rows = true` too, or leave `row_items` out";
        refuse_either(
            [
                (ROW_ITEMS, spot(&raw.served.row_items)),
                ("events.served.rows", spot(&raw.served.rows)),
            ],
            "there are no rows that might have items",
            remedy,
            report,
        );
    }
}

/// Checks that each arm has an experiment, and each experiment an arm.
fn arms(raw: &RawEvents, arms: &ArmsShape, report: &mut ErrorReport) {
    const EXPERIMENT_NAME: &str = "events.served.experiment_name";
    const ARM_NAME: &str = "events.served.arm_name";
    const EXPERIMENTS: &str = "events.served.experiments";
    // A setting that was refused has no value that others could be compared with.
    if [EXPERIMENTS, EXPERIMENT, ARM, EXPERIMENT_NAME, ARM_NAME]
        .iter()
        .any(|key| !report.is_sound(key))
    {
        return;
    }
    let raw = &raw.served;
    let (experiments, experiment, arm) = (spot(&raw.experiments), spot(&raw.experiment), spot(&raw.arm));
    let (experiment_name, arm_name) = (spot(&raw.experiment_name), spot(&raw.arm_name));
    let names_one = arms.experiment.is_some() || arms.experiment_name.is_some();
    // Arms may be found without the name of their experiment.
    let takes_a_name = arms.experiments.is_none() && arms.experiment.is_none() && arms.arm.is_some();
    if arms.experiment.is_some() && arms.arm.is_none() {
        let remedy = "write `arm` too: the path from the same place to the name of the arm";
        refuse_either(
            [(EXPERIMENT, experiment), (ARM, arm)],
            "there is no path to the arm",
            remedy,
            report,
        );
    } else if arms.experiments.is_none() && arms.arm.is_some() && !names_one {
        let remedy = "write `experiments`, the path to all of them; or `experiment`, the path of the field that names the experiment of this arm; or `experiment_name`, its name if no field has it";
        refuse_either(
            [(ARM, arm), (EXPERIMENTS, experiments)],
            "no setting names the experiment of the arm",
            remedy,
            report,
        );
    } else if arms.arm_name.is_some() && arms.experiment_name.is_none() {
        let remedy = "write `experiment_name` too: lists without an arm count in this arm of that experiment";
        refuse_either(
            [(ARM_NAME, arm_name), (EXPERIMENT_NAME, experiment_name)],
            "the arm of `arm_name` has no experiment",
            remedy,
            report,
        );
    } else if arms.experiment_name.is_some() && arms.arm_name.is_none() && !takes_a_name {
        let remedy = "write `arm_name` too: lists without an arm count in that arm of this experiment";
        refuse_either(
            [(EXPERIMENT_NAME, experiment_name), (ARM_NAME, arm_name)],
            "the experiment of `experiment_name` has no arm",
            remedy,
            report,
        );
    }
}

/// Sets the value; an empty text removes the preset's.
fn nested(word: &Word, nested: &mut Option<Nested>, report: &mut ErrorReport) {
    let Some(word) = word else { return };
    *nested = match word.get_ref().as_str() {
        "" => None,
        WHOLE => Some(Nested::Whole),
        path => parse_one("events.nested", path, word, report).map(Nested::At),
    };
}

/// Sets the path; an empty text removes the preset's.
fn records(word: &Word, records: &mut Option<Path>, report: &mut ErrorReport) {
    let Some(word) = word else { return };
    *records = match word.get_ref().as_str() {
        "" => None,
        path => parse_one("events.records", path, word, report),
    };
}

/// Reads the values that do not count as arms: text, or `true`, `false` and integers by their text.
fn not_in(
    list: &Option<Spanned<Vec<Spanned<toml::Value>>>>,
    words: &mut Vec<String>,
    report: &mut ErrorReport,
) {
    let Some(list) = list else { return };
    // A written list replaces the default.
    words.clear();
    for value in list.get_ref() {
        let word = match value.get_ref() {
            toml::Value::String(text) => Some(text.clone()),
            value @ (toml::Value::Boolean(_) | toml::Value::Integer(_)) => Some(value.to_string()),
            _ => None,
        };
        match word {
            Some(word) if words.contains(&word) => {
                report.refuse_twice("events.served.not_in", value, format_args!("{word:?}"));
            }
            Some(word) => words.push(word),
            None => report.refuse(
                "events.served.not_in",
                value,
                "cannot be the name of an arm",
                "write text, true, false or an integer",
            ),
        }
    }
}

/// Checks the paths into the record around the event: there must be one, and it must be the last alternative.
fn outer(raw: &RawEvents, shape: &Shape, report: &mut ErrorReport) {
    let has_record = shape.records.is_some() || shape.nested.is_some();
    let (served, click) = (&raw.served, &raw.click);
    for (key, id) in [(SERVED_ID, &served.request_id), (CLICK_ID, &click.request_id)] {
        let Some(id) = id else { continue };
        match id.get_ref() {
            RawId::Whole(paths) => outer_paths(key, id, paths, has_record, report),
            // Each part is a field of its own.
            RawId::All(parts) => {
                for part in parts {
                    let path = RawPaths::One(part.get_ref().clone());
                    outer_paths(key, part, &path, has_record, report);
                }
            }
        }
    }
    for (key, written) in [
        (TYPE, &raw.kind),
        ("events.user_id", &raw.user_id),
        ("events.served.user_id", &served.user_id),
        ("events.served.ts", &served.ts),
        ("events.served.items", &served.items),
        ("events.served.clicked_items", &served.clicked_items),
        ("events.served.clicked_ts", &served.clicked_ts),
        ("events.served.experiments", &served.experiments),
        (EXPERIMENT, &served.experiment),
        (ARM, &served.arm),
        (ACTION, &click.action),
        ("events.click.user_id", &click.user_id),
        ("events.click.ts", &click.ts),
        ("events.click.item", &click.item),
    ] {
        if let Some(written) = written {
            outer_paths(key, written, written.get_ref(), has_record, report);
        }
    }
}

fn outer_paths<T>(
    key: &str,
    place: &Spanned<T>,
    written: &RawPaths,
    has_record: bool,
    report: &mut ErrorReport,
) {
    let are_outer: Vec<bool> = match written {
        RawPaths::One(path) => vec![is_outer(path)],
        RawPaths::Any(paths) => paths.iter().map(|path| is_outer(path.get_ref())).collect(),
    };
    if are_outer.contains(&true) && !has_record {
        let message = "starts with `^.`, but events are not inside a record";
        let remedy = "write `records` or `nested` under [events], the place of the events in their record, or leave `^.` out";
        report.refuse(key, place, message, remedy);
    } else if !are_outer.is_sorted() {
        let message = "reads the record around the event before the event itself";
        report.refuse(key, place, message, "put the paths that start with `^.` last");
    }
}

fn is_outer(path: &str) -> bool {
    Path::parse(path).is_ok_and(|path| path.is_outer())
}

/// Sets the value; an empty text removes the preset's.
fn zone(word: &Word, zone: &mut Option<Zone>, report: &mut ErrorReport) {
    if let Some(word) = word {
        *zone = Zone::parse(word.get_ref());
        if zone.is_none() && !word.get_ref().is_empty() {
            let remedy = "write \"UTC\", or an offset such as \"+01:00\"; zones with daylight saving time repeat an hour each year, so send these times with their offset";
            report.refuse("events.ts_zone", word, "is no zone", remedy);
        }
    }
}

/// Checks the number of alternatives, because a record has a bounded number of places for paths.
fn alternatives(shape: &Shape, report: &mut ErrorReport) {
    let n = shape.n_alternatives();
    if n > Shape::MAX_ALTERNATIVES {
        let message = format!("has {n} alternatives in its lists `any`, not counting earlier ones");
        let remedy = format!(
            "leave some of them out: at most {} are read",
            Shape::MAX_ALTERNATIVES
        );
        report.refuse_at("events", Location::Nowhere, message, remedy);
    }
}

fn must_be(key: &str, written: &PathWord, paths: &mut Paths, report: &mut ErrorReport) {
    if let Some(parsed) = written.as_ref().and_then(|written| parse(key, written, report)) {
        *paths = parsed;
    }
}

/// Sets the value; an empty text removes the preset's.
fn may_be_absent(key: &str, written: &PathWord, paths: &mut Option<Paths>, report: &mut ErrorReport) {
    let Some(written) = written else {
        return;
    };
    if matches!(written.get_ref(), RawPaths::One(path) if path.is_empty()) {
        *paths = None;
    } else if let Some(parsed) = parse(key, written, report) {
        *paths = Some(parsed);
    }
}

/// Parses paths. Returns `None` if they are refused.
fn parse(key: &str, written: &Spanned<RawPaths>, report: &mut ErrorReport) -> Option<Paths> {
    parse_paths(key, written, written.get_ref(), report)
}

fn parse_paths<T>(
    key: &str,
    written: &Spanned<T>,
    paths: &RawPaths,
    report: &mut ErrorReport,
) -> Option<Paths> {
    let any = match paths {
        RawPaths::One(path) => return parse_one(key, path, written, report).map(Paths::from),
        RawPaths::Any(any) => any,
    };
    let n = any.len();
    if n == 0 {
        let remedy = "write the paths between the brackets, in the order to try them";
        report.refuse(key, written, "`any` has no paths", remedy);
        return None;
    }
    if n > Paths::MAX {
        let remedy = format!("leave some of them out: at most {} are tried", Paths::MAX);
        report.refuse(key, written, format!("`any` names {n} paths"), remedy);
        return None;
    }
    Paths::any(parse_each(key, any, report)?)
}

/// Parses several paths, which must differ.
fn parse_each(key: &str, written: &[Spanned<String>], report: &mut ErrorReport) -> Option<Vec<Path>> {
    let mut paths = Vec::with_capacity(written.len());
    for path in written {
        let parsed = parse_one(key, path.get_ref(), path, report)?;
        if paths.contains(&parsed) {
            report.refuse_twice(key, path, format_args!("the path `{parsed}`"));
            return None;
        }
        paths.push(parsed);
    }
    Some(paths)
}

/// Reads a request id, or the parts of a composite one.
fn request_id(
    key: &str,
    written: &Option<Spanned<RawId>>,
    (first, further): (&mut Paths, &mut Vec<Path>),
    report: &mut ErrorReport,
) {
    let Some(written) = written else { return };
    let parts = match written.get_ref() {
        RawId::Whole(paths) => {
            // The preset may have a composite id.
            further.clear();
            if let Some(paths) = parse_paths(key, written, paths, report) {
                *first = paths;
            }
            return;
        }
        RawId::All(parts) => parts,
    };
    let n = parts.len();
    if !(2..=Shape::MAX_ID_PARTS).contains(&n) {
        let remedy = format!(
            "write 2 to {} paths between the brackets, or one path in quotes",
            Shape::MAX_ID_PARTS
        );
        report.refuse(key, written, format!("`all` names {n} paths"), remedy);
        return;
    }
    if let Some(paths) = parse_each(key, parts, report) {
        let mut paths = paths.into_iter();
        *first = paths.next().map_or_else(|| first.clone(), Paths::from);
        *further = paths.collect();
    }
}

/// Checks that a click has no more parts of the id than a list.
fn id_parts(raw: &RawEvents, shape: &Shape, report: &mut ErrorReport) {
    let [of_list, of_click] =
        [&shape.served.further_ids, &shape.click.further_ids].map(|further| 1 + further.len());
    if of_click <= of_list || !report.is_sound(SERVED_ID) || !report.is_sound(CLICK_ID) {
        return;
    }
    let message = format!("names {of_click} parts of the id, and {SERVED_ID} names {of_list}");
    let remedy = format!("give {SERVED_ID} the same parts, in the same order; a click may have fewer");
    refuse_either(
        [
            (CLICK_ID, spot(&raw.click.request_id)),
            (SERVED_ID, spot(&raw.served.request_id)),
        ],
        &message,
        &remedy,
        report,
    );
}

fn parse_one<T>(key: &str, path: &str, place: &Spanned<T>, report: &mut ErrorReport) -> Option<Path> {
    // A field hardly has such a name: a table was put into quotes.
    if path.trim_start().starts_with('{') {
        let remedy = "write { any = [\"ts\", \"timestamp\"] } as a table of TOML, without quotes around it";
        report.refuse(key, place, "starts with a brace", remedy);
        return None;
    }
    match Path::parse(path) {
        Ok(path) => Some(path),
        Err(fault) => {
            refuse_path(key, place, fault, report);
            None
        }
    }
}

fn refuse_path<T>(key: &str, word: &Spanned<T>, fault: &str, report: &mut ErrorReport) {
    let remedy = "write the names that lead to the field with dots between them, such as \"ctx.exp.name\"; quote a name that contains a dot: \"ctx.'exp.name'\"";
    report.refuse(key, word, fault, remedy);
}

fn words(key: &str, list: &Words, words: &mut Vec<String>, report: &mut ErrorReport) {
    let Some(list) = list else {
        return;
    };
    words.clear();
    for word in list.get_ref() {
        if words.contains(word.get_ref()) {
            report.refuse_twice(key, word, format_args!("\"{}\"", word.get_ref()));
        }
        words.push(word.get_ref().clone());
    }
}

fn label(key: &str, word: &Word, label: &mut Option<String>, report: &mut ErrorReport) {
    if let Some(word) = word {
        let text = word.get_ref();
        if text.len() > MAX_LABEL_BYTES || text == OTHER {
            let remedy = "write a name of 1 to 128 bytes other than `__other__`, or \"\" for none";
            report.refuse(key, word, "no experiment or arm can have this name", remedy);
        }
        *label = Some(text.clone()).filter(|text| !text.is_empty());
    }
}

/// Returns the place at which a setting is written, if it is.
fn spot<T>(setting: &Option<Spanned<T>>) -> Option<Spanned<()>> {
    setting.as_ref().map(|setting| Spanned::new(setting.span(), ()))
}

/// Reports the written one of two conflicting settings; a preset has no conflict of its own.
fn refuse_either(
    settings: [(&str, Option<Spanned<()>>); 2],
    message: &str,
    remedy: &str,
    report: &mut ErrorReport,
) {
    let written = settings.into_iter().find_map(|(key, spot)| Some((key, spot?)));
    if let Some((key, spot)) = written {
        report.refuse(key, &spot, message, remedy);
    }
}
