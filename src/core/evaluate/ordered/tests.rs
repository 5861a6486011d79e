use std::io::Write as _;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use proptest::prelude::*;
use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::decode::shape::Path as FieldPath;
use crate::evaluate::read_catalogue;
use crate::metrics::Measures;

const T0: i64 = 1_763_596_800_000;
const MINUTE_MS: i64 = 60_000;

/// Random event before it has a time.
#[derive(Debug, Clone)]
struct Draft {
    is_list: bool,
    id: u16,
    items: Vec<u8>,
    arm: u8,
    /// Distance from the event before, ms.
    step_ms: i64,
    /// Time before its place in the order, ms.
    back_ms: i64,
    /// Kind of damage: 0 is not JSON, 1 is a click without a time, 2 a list without items, others none.
    damage: u8,
}

fn draft(max_back_ms: i64) -> impl Strategy<Value = Draft> {
    let damage = prop_oneof![300 => Just(9u8), 2 => Just(0u8)];
    (
        (any::<bool>(), 0..60u16, proptest::collection::vec(0..12u8, 1..6)),
        (0..4u8, 0..4 * MINUTE_MS, 0..=max_back_ms, damage),
    )
        .prop_map(|((is_list, id, items), (arm, step_ms, back_ms, damage))| Draft {
            is_list,
            id,
            items,
            arm,
            step_ms,
            back_ms,
            damage,
        })
}

/// Line of a file, with its kind and time.
#[derive(Debug, Clone)]
struct Line {
    is_list: bool,
    ts_ms: i64,
    text: String,
}

fn lines(drafts: &[Draft]) -> Vec<Line> {
    let mut now_ms = T0;
    let line = |draft: &Draft| {
        now_ms += draft.step_ms;
        let ts_ms = now_ms - draft.back_ms;
        let id = format!("r{}", draft.id);
        let items: Vec<String> = draft.items.iter().map(|item| format!("i{item}")).collect();
        let text = match (draft.damage, draft.is_list) {
            (0, _) => "{oops".to_owned(),
            (1, _) => json!({"type": "click", "request_id": id, "item": "i1"}).to_string(),
            (2, _) => json!({"type": "served", "request_id": id, "ts": ts_ms, "experiments": {"e": "a0"}})
                .to_string(),
            (_, true) => {
                let arms = match draft.arm {
                    0 => json!({}),
                    arm => json!({"e": format!("a{arm}"), "f": format!("b{}", arm % 2)}),
                };
                let page = if draft.id.is_multiple_of(5) {
                    "home"
                } else {
                    "shop"
                };
                json!({"type": "served", "request_id": id, "ts": ts_ms, "experiments": arms, "items": items, "page": page})
                    .to_string()
            }
            (_, false) => {
                json!({"type": "click", "request_id": id, "ts": ts_ms, "item": items[0]}).to_string()
            }
        };
        Line {
            is_list: draft.is_list,
            ts_ms,
            text,
        }
    };
    drafts.iter().map(line).collect()
}

/// Division of lines into files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    OneFile,
    Parts(usize),
    /// Lists and clicks apart, each in this number of parts, with the kind named or not.
    Apart(usize, bool),
    /// Parts in turn, so that they do not follow each other.
    InTurn(usize),
}

fn layout() -> impl Strategy<Value = Layout> {
    prop_oneof![
        Just(Layout::OneFile),
        (2..5usize).prop_map(Layout::Parts),
        ((1..4usize), any::<bool>()).prop_map(|(n, is_named)| Layout::Apart(n, is_named)),
        (2..4usize).prop_map(Layout::InTurn),
    ]
}

fn write(lines: &[Line], layout: Layout) -> (TempDir, Vec<InputFile>) {
    let dir = tempfile::tempdir().expect("a directory");
    let mut files = Vec::new();
    let mut add = |kind: Option<Kind>, lines: &[&Line]| {
        let path = dir.path().join(format!("{}.jsonl", files.len()));
        let mut file = std::fs::File::create(&path).expect("a file");
        for line in lines {
            writeln!(file, "{}", line.text).expect("it takes lines");
        }
        files.push((kind, path));
    };
    let all: Vec<&Line> = lines.iter().collect();
    let in_parts = |lines: &[&Line], n: usize| lines.len().div_ceil(n).max(1);
    match layout {
        Layout::OneFile => add(None, &all),
        Layout::Parts(n) => all.chunks(in_parts(&all, n)).for_each(|part| add(None, part)),
        Layout::Apart(n, is_named) => {
            for (kind, is_list) in [(Kind::Served, true), (Kind::Click, false)] {
                let of_kind: Vec<&Line> = all
                    .iter()
                    .copied()
                    .filter(|line| line.is_list == is_list)
                    .collect();
                let kind = is_named.then_some(kind);
                of_kind
                    .chunks(in_parts(&of_kind, n))
                    .for_each(|part| add(kind, part));
            }
        }
        Layout::InTurn(n) => {
            for first in 0..n {
                let part: Vec<&Line> = all.iter().copied().skip(first).step_by(n).collect();
                add(None, &part);
            }
        }
    }
    (dir, files)
}

fn options(with_catalogue: bool, with_spans: bool, with_filter: bool) -> Options {
    let ks = [1, 3].map(|k| NonZeroU32::new(k).expect("not 0"));
    let mut options = Options {
        max_lists_per_click: 2,
        max_off_list: 2,
        click_skew_ms: 5_000,
        span_ms: with_spans.then_some(60 * MINUTE_MS),
        measures: Measures::usual(&ks),
        ..Options::default()
    };
    if with_catalogue {
        options.measures.metrics = vec!["map", "coverage"];
        let items: String = (0..9).map(|item| format!("{{\"item\":\"i{item}\"}}\n")).collect();
        let catalogue = read_catalogue(items.as_bytes(), &options).expect("a catalogue");
        options.catalogue = Some(Arc::new(catalogue));
    }
    if with_filter {
        let page = FieldPath::parse("page").expect("a path");
        options.filters = vec![(page, "shop".to_owned())];
    }
    options
}

/// Returns all that is reported about an evaluation.
fn reported(evaluation: &Evaluation) -> String {
    let mut json = Vec::new();
    evaluation.report().json(&mut json).expect("memory takes it");
    let counts = &evaluation.counts;
    let others = (
        [
            counts.conflicting_lists,
            counts.repeated_items,
            counts.cut_clicks,
            counts.skipped_elements,
        ],
        [
            evaluation.n_unselected,
            evaluation.n_unselected_clicks,
            evaluation.n_refused_clicks,
        ],
        (
            &evaluation.unreadable,
            &evaluation.long_lines,
            evaluation.float_times,
        ),
        (evaluation.warnings(), evaluation.notes(), evaluation.losses()),
    );
    format!("{}\n{others:?}", String::from_utf8_lossy(&json))
}

/// Returns the numbers if every list is kept to the end.
fn twin(files: &[InputFile], options: &Options) -> Evaluation {
    let mut evaluator = Evaluator::new(options);
    for (kind, path) in files {
        evaluator
            .read_file_of(*kind, path, &|_| {})
            .expect("it can be read");
    }
    evaluator.finish()
}

/// Returns the numbers, and how often reading started again.
fn evaluated(files: &[InputFile], options: &Options) -> (Evaluation, u32) {
    let n_restarts = AtomicU32::new(0);
    let evaluation = evaluate_files(files, options, &|progress| {
        if progress == Progress::Restart {
            n_restarts.fetch_add(1, Ordering::Relaxed);
        }
    });
    (evaluation.expect("it can be read"), n_restarts.into_inner())
}

/// Checks that moved lines change no number.
fn check(
    drafts: &[Draft],
    moved: &[(usize, usize)],
    layout: Layout,
    options: &Options,
) -> Result<(), TestCaseError> {
    let mut lines = lines(drafts);
    for (from, to) in moved {
        let line = lines.remove(from % lines.len());
        lines.insert(to % (lines.len() + 1), line);
    }
    let (_dir, files) = write(&lines, layout);
    let (evaluation, _) = evaluated(&files, options);
    prop_assert_eq!(reported(&evaluation), reported(&twin(&files, options)));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn ordered_files_settle_as_they_are_read_with_equal_numbers(
        drafts in proptest::collection::vec(draft(9 * MINUTE_MS), 1..600),
        layout in layout(),
        (with_catalogue, with_spans, with_filter) in any::<(bool, bool, bool)>(),
    ) {
        let options = options(with_catalogue, with_spans, with_filter);
        let lines = lines(&drafts);
        let (_dir, files) = write(&lines, layout);
        let (evaluation, n_restarts) = evaluated(&files, &options);
        prop_assert_eq!(reported(&evaluation), reported(&twin(&files, &options)));
        if layout == Layout::OneFile {
            prop_assert_eq!(n_restarts, 0);
        }
    }

    #[test]
    fn disorder_and_damage_change_no_number(
        drafts in proptest::collection::vec(draft(12 * MINUTE_MS), 2..600),
        moved in proptest::collection::vec(any::<(u16, u16)>(), 0..3),
        damaged in proptest::collection::vec((any::<u16>(), 0..3u8), 0..3),
        layout in layout(),
        (with_catalogue, with_spans, with_filter) in any::<(bool, bool, bool)>(),
    ) {
        let mut drafts = drafts;
        for (place, damage) in damaged {
            let place = usize::from(place) % drafts.len();
            drafts[place].damage = damage;
        }
        let moved: Vec<(usize, usize)> = moved.iter().map(|(from, to)| ((*from).into(), (*to).into())).collect();
        check(&drafts, &moved, layout, &options(with_catalogue, with_spans, with_filter))?;
    }
}

/// Lists and clicks of a day: a list every 10 s, and a click on every fourth one a minute later.
fn day() -> Vec<Line> {
    let mut lines: Vec<Line> = (0..8640)
        .flat_map(|n| {
            let (id, ts_ms) = (format!("r{n}"), T0 + n * 10_000);
            let list = json!({"type": "served", "request_id": id, "ts": ts_ms, "experiments": {"e": "a"}, "items": ["x", "y"]});
            let click = json!({"type": "click", "request_id": id, "ts": ts_ms + MINUTE_MS, "item": "y"});
            let line = |is_list, ts_ms, text: String| Line { is_list, ts_ms, text };
            let list = line(true, ts_ms, list.to_string());
            [Some(list), (n % 4 == 0).then(|| line(false, ts_ms + MINUTE_MS, click.to_string()))]
        })
        .flatten()
        .collect();
    lines.sort_by_key(|line| line.ts_ms);
    lines
}

#[test]
fn every_ordered_layout_of_a_day_is_read_once() {
    let (lines, options) = (day(), options(false, true, false));
    for layout in [
        Layout::OneFile,
        Layout::Parts(4),
        Layout::Apart(1, true),
        Layout::Apart(3, false),
    ] {
        let (_dir, files) = write(&lines, layout);
        assert!(streams(&files, &options).is_some(), "{layout:?}");
        let (evaluation, n_restarts) = evaluated(&files, &options);
        assert_eq!(n_restarts, 0, "{layout:?}");
        assert_eq!(
            reported(&evaluation),
            reported(&twin(&files, &options)),
            "{layout:?}"
        );
    }
}

#[test]
fn a_late_line_starts_reading_again() {
    let mut lines = day();
    let list = lines.remove(10);
    lines.push(list);
    let options = options(false, true, false);
    for layout in [Layout::OneFile, Layout::Apart(1, true)] {
        let (_dir, files) = write(&lines, layout);
        let (evaluation, n_restarts) = evaluated(&files, &options);
        assert_eq!(n_restarts, 1, "{layout:?}");
        assert_eq!(
            reported(&evaluation),
            reported(&twin(&files, &options)),
            "{layout:?}"
        );
    }
}

#[test]
fn parts_that_do_not_follow_each_other_are_read_once() {
    let mut lines = day();
    lines.reverse();
    let (_dir, files) = write(&lines, Layout::Parts(4));
    assert_eq!(streams(&files, &options(false, false, false)), None);
}

#[test]
fn settled_lists_leave_memory() {
    let options = options(false, false, false);
    let mut evaluator = Evaluator::for_order(&options, TimeOrder::Together);
    let mut most_open = 0;
    for (number, line) in day().iter().enumerate() {
        let text = line.text.as_bytes();
        evaluator.records.read(text.into(), None, "day", number as u64);
        let mut batch = mem::take(&mut evaluator.records.batch);
        assert!(evaluator.take_batch(&batch));
        batch.clear();
        evaluator.records.batch = batch;
        evaluator.settle_passed();
        most_open = most_open.max(evaluator.engine.n_open_lists());
    }
    // Attribution, tolerance and a settled span are 45 minutes, which have six lists each.
    assert!((240..=276).contains(&most_open), "{most_open} of 8640 lists");
    assert_eq!(evaluator.finish().n_lists, 8640);
}

#[test]
fn an_error_is_reported_like_by_the_other_way() {
    let (dir, mut files) = write(&day(), Layout::Parts(2));
    let packed = dir.path().join("broken.gz");
    std::fs::write(&packed, [0x1f, 0x8b, 8, 0, 0]).expect("a file");
    files.push((None, packed.clone()));
    let error = evaluate_files(&files, &Options::default(), &|_| {});
    let error = format!("{:#}", error.err().expect("it is truncated"));
    assert!(
        error.contains("broken.gz") && error.contains("it ends early"),
        "{error}"
    );
}

#[test]
fn a_click_among_many_lists_starts_reading_again() {
    let options = Options {
        attribution_ms: 60 * MINUTE_MS,
        same_list_ms: MINUTE_MS,
        ..options(false, false, false)
    };
    let mut lines = day();
    // Its list is settled by then if clicks are expected in their own file only.
    let ts_ms = T0 + 4_000 * 10_000 + 55 * MINUTE_MS;
    let text = json!({"type": "click", "request_id": "r4000", "ts": ts_ms, "item": "x"}).to_string();
    let place = lines.partition_point(|line| line.ts_ms < ts_ms);
    lines.insert(
        place,
        Line {
            is_list: true,
            ts_ms,
            text,
        },
    );
    let (_dir, files) = write(&lines, Layout::Apart(1, false));
    let sides = streams(&files, &options).expect("heads of one kind");
    assert_eq!(sides.len(), 2);
    let (evaluation, n_restarts) = evaluated(&files, &options);
    assert_eq!(n_restarts, 1);
    assert_eq!(reported(&evaluation), reported(&twin(&files, &options)));
}
