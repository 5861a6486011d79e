//! Shape of records: paths of the fields, and the values that mark a record as a served list or a click.
//!
//! The default is our own format. `[events]` changes it, on top of a preset or of the default.

mod path;
mod paths;
mod presets;
mod zone;

pub use self::path::Path;
pub use self::paths::Paths;
pub use self::zone::Zone;
use crate::engine::GatherRules;
use crate::engine::event::Kind;

/// Paths of the fields in records. They start at the record, unless noted otherwise at an element in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// Path to the kind of a record. `None`: only the topic decides it.
    pub kind: Option<Paths>,
    /// Kind of a record if neither its fields nor its topic decide it.
    pub without_kind: Option<Kind>,
    /// Location of the JSON text that holds the events; `None` if a record is JSON itself.
    pub nested: Option<Nested>,
    /// Path to a record's array of events; `None` if a record is one event.
    pub records: Option<Path>,
    /// `None`: as in our own shape, a number of milliseconds or RFC 3339 text.
    pub ts_unit: Option<TsUnit>,
    /// Zone of text times that have none; `None`: they are invalid.
    pub ts_zone: Option<Zone>,
    pub served: ServedShape,
    pub click: ClickShape,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServedShape {
    /// Values of [`Shape::kind`] that mean a served list.
    pub kinds: Vec<String>,
    pub request_id: Paths,
    /// Further parts of a composite id; empty if `request_id` is the whole.
    pub further_ids: Vec<Path>,
    pub user_id: Option<Paths>,
    pub ts: Paths,
    pub items: Paths,
    /// A list without items is empty. Otherwise it is invalid.
    pub absent_is_empty: bool,
    /// Span of the records of one list if each has one shown item, ms; `None` if a record is a whole list. If set, the paths of
    /// the item, its position and its click flag start at the record.
    pub gather_ms: Option<i64>,
    /// Path to the click flag of an item that is an object.
    pub clicked: Option<Paths>,
    /// Path to the ids of clicked items.
    pub clicked_items: Option<Paths>,
    /// Time of these clicks. `None`, or if absent: the time of the list.
    pub clicked_ts: Option<Paths>,
    /// Path to the id in an item that is an object.
    pub item_id: Option<Paths>,
    /// Path to the place in its row, an integer, in an item that is an object. Items rank by it. `None`: items rank in their
    /// order.
    pub position: Option<Paths>,
    /// Skip elements that are not items. Otherwise they make their list invalid.
    pub skip_others: bool,
    /// Elements that are arrays are rows of items, which follow each other in the ranking.
    pub rows: bool,
    /// Path to the array of items in a row that is an object.
    pub row_items: Option<Paths>,
    pub arms: ArmsShape,
}

/// Paths to the experiments and arms of a list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ArmsShape {
    /// An object, experiment → arm, or an array of objects. `None`: the record itself names one experiment at most.
    pub experiments: Option<Paths>,
    /// Path to the experiment in an element of that array, or else in the record.
    pub experiment: Option<Paths>,
    /// Path to the arm in an element, or else in the record. With `experiment → arm`, path inside an arm that is an object.
    pub arm: Option<Paths>,
    /// The experiments that count; empty: all of them.
    pub only: Vec<String>,
    /// Values, besides `null`, that mean that a list is not in the experiment.
    pub not_in: Vec<String>,
    /// Prefix of the fields that are experiments; the rest of the name is the experiment.
    pub prefix: Option<String>,
    /// Separator of experiment and arm in a text.
    pub arm_separator: Option<String>,
    /// Separator of such pairs in one text.
    pub pair_separator: Option<String>,
    /// Experiment of arms without one, and of lists that name none.
    pub experiment_name: Option<String>,
    /// The arm of lists that name none, in the experiment `experiment_name`.
    pub arm_name: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClickShape {
    /// Values of [`Shape::kind`] that mean a click.
    pub kinds: Vec<String>,
    /// Path to the exact action; records with a value outside `actions` are ignored.
    pub action: Option<Paths>,
    pub actions: Vec<String>,
    pub request_id: Paths,
    /// Further parts of a composite id, no more than lists have. A click need not name them.
    pub further_ids: Vec<Path>,
    pub user_id: Option<Paths>,
    pub ts: Paths,
    pub item: Paths,
}

/// Location of a record's JSON text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Nested {
    /// The whole record is one JSON string.
    Whole,
    /// A field.
    At(Path),
}

/// The unit of times that are numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TsUnit {
    Seconds,
    Milliseconds,
    Microseconds,
    Nanoseconds,
}

/// The name of a shape, and the shape.
pub type Preset = (&'static str, fn() -> Shape);

impl TsUnit {
    /// Every unit by its name.
    pub const ALL: [(&str, TsUnit); 4] = [
        ("s", TsUnit::Seconds),
        ("ms", TsUnit::Milliseconds),
        ("us", TsUnit::Microseconds),
        ("ns", TsUnit::Nanoseconds),
    ];
}

impl Shape {
    /// The shapes that need no description of their own, by name.
    pub const PRESETS: [Preset; 3] = [
        ("metarank", presets::metarank),
        ("ubi", presets::ubi),
        ("personalize", presets::personalize),
    ];

    /// Most parts of a composite id: a list is found by each choice of further parts that a click may leave out.
    pub const MAX_ID_PARTS: usize = 4;

    /// Returns whether numeric times are milliseconds.
    pub fn has_milliseconds(&self) -> bool {
        matches!(self.ts_unit, None | Some(TsUnit::Milliseconds))
    }

    /// Rules for gathering its lists, if a record is one shown item.
    pub fn gather_rules(&self, max_items: u32) -> Option<GatherRules> {
        let gather = |span_ms| GatherRules { span_ms, max_items };
        self.served.gather_ms.map(gather)
    }

    /// Returns whether its fields are our own, whatever its times.
    pub fn has_own_fields(&self) -> bool {
        let own = Shape {
            ts_unit: self.ts_unit,
            ts_zone: self.ts_zone,
            ..Shape::default()
        };
        *self == own
    }

    /// Returns the paths that start at a record, of either kind.
    pub fn record_paths(&self) -> Vec<&Path> {
        let (served, arms, click) = (&self.served, &self.served.arms, &self.click);
        let in_record = arms.experiments.is_none();
        let is_row = served.gather_ms.is_some();
        let fields = [
            self.kind.as_ref(),
            Some(&served.request_id),
            served.user_id.as_ref(),
            Some(&served.ts),
            Some(&served.items),
            served.clicked_items.as_ref(),
            served.clicked_ts.as_ref(),
            served.position.as_ref().filter(|_| is_row),
            served.clicked.as_ref().filter(|_| is_row),
            arms.experiments.as_ref(),
            arms.experiment.as_ref().filter(|_| in_record),
            arms.arm.as_ref().filter(|_| in_record),
            click.action.as_ref(),
            Some(&click.request_id),
            click.user_id.as_ref(),
            Some(&click.ts),
            Some(&click.item),
        ];
        let paths = fields.into_iter().flatten().flat_map(Paths::iter);
        let paths = paths.chain(&served.further_ids).chain(&click.further_ids);
        // Paths in an event start there, except those that start around it.
        let to_events = match (&self.nested, &self.records) {
            (None, None) => return paths.collect(),
            (Some(Nested::At(path)), _) | (None, Some(path)) => Some(path),
            (Some(Nested::Whole), _) => None,
        };
        to_events
            .into_iter()
            .chain(paths.filter(|path| path.is_outer()))
            .collect()
    }

    /// Returns the prefix of the fields of a record that are experiments, if it has such.
    pub fn column_prefix(&self) -> Option<&str> {
        let arms = &self.served.arms;
        let is_event = self.nested.is_none() && self.records.is_none() && arms.experiments.is_none();
        arms.prefix.as_deref().filter(|_| is_event)
    }
}

impl Default for Shape {
    fn default() -> Self {
        let path = |names: &[&str]| Paths::from(Path::of_names(names));
        Shape {
            kind: Some(path(&["type"])),
            without_kind: None,
            nested: None,
            records: None,
            ts_unit: None,
            ts_zone: None,
            served: ServedShape {
                kinds: vec!["served".to_owned()],
                request_id: path(&["request_id"]),
                further_ids: Vec::new(),
                user_id: Some(path(&["user_id"])),
                ts: path(&["ts"]),
                items: path(&["items"]),
                absent_is_empty: false,
                gather_ms: None,
                clicked: None,
                clicked_items: None,
                clicked_ts: None,
                item_id: None,
                position: None,
                skip_others: false,
                rows: false,
                row_items: None,
                arms: ArmsShape {
                    experiments: Some(path(&["experiments"])),
                    ..ArmsShape::default()
                },
            },
            click: ClickShape {
                kinds: vec!["click".to_owned()],
                action: None,
                actions: Vec::new(),
                request_id: path(&["request_id"]),
                further_ids: Vec::new(),
                user_id: Some(path(&["user_id"])),
                ts: path(&["ts"]),
                item: path(&["item"]),
            },
        }
    }
}
