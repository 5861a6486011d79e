//! The shape of records: where each field stands, and what says that a record is a served list or a click.
//!
//! The default is our own. What the operator writes under `[events]`, over a preset or over the default, is another one.

mod path;
mod paths;
mod presets;
mod zone;

pub use self::path::Path;
pub use self::paths::Paths;
pub use self::zone::Zone;
use crate::engine::GatherRules;
use crate::engine::event::Kind;

/// Where the fields of records stand. Paths begin at the record, or where it says so at an element in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// What says what a record is. `None`: only the topic does.
    pub kind: Option<Paths>,
    /// What a record is that does not say so, and whose topic does not either.
    pub without_kind: Option<Kind>,
    /// Location of the JSON text that holds the events; `None` if a record is JSON itself.
    pub nested: Option<Nested>,
    /// Path to a record's array of events; `None` if a record is one event.
    pub records: Option<Path>,
    /// `None`: as in our own shape, a number of milliseconds or RFC 3339 text.
    pub ts_unit: Option<TsUnit>,
    /// The zone of times that are text without one; `None`: they are no times.
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
    /// Span of the records of one shown item each that are one list, ms; `None` if a record is a whole list. Then the paths of the item,
    /// its position and its click flag begin at the record.
    pub gather_ms: Option<i64>,
    /// Path to the click flag of an item that is an object.
    pub clicked: Option<Paths>,
    /// Path to the ids of clicked items.
    pub clicked_items: Option<Paths>,
    /// The time of these clicks; `None`, or where it is absent: that of the list.
    pub clicked_ts: Option<Paths>,
    /// Where an item that is an object has its id.
    pub item_id: Option<Paths>,
    /// Where an item that is an object says its place in its row, an integer: items rank by it. `None`: by their order.
    pub position: Option<Paths>,
    /// Elements that are no items are passed over. Otherwise they make their list invalid.
    pub skip_others: bool,
    /// Elements that are arrays are rows of items, which follow each other in the ranking.
    pub rows: bool,
    /// Where a row that is an object has its array of items.
    pub row_items: Option<Paths>,
    pub arms: ArmsShape,
}

/// Where a list says in which arms of which experiments it was served.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ArmsShape {
    /// An object, experiment → arm, or an array of objects. `None`: the record itself names one experiment at most.
    pub experiments: Option<Paths>,
    /// Where an element of that array, or else the record, names its experiment.
    pub experiment: Option<Paths>,
    /// Where an element, or else the record, names its arm; in `experiment → arm` where an arm that is an object does.
    pub arm: Option<Paths>,
    /// The experiments that count; empty: all of them.
    pub only: Vec<String>,
    /// Arms that mean that a list is not in the experiment, besides `null`.
    pub not_in: Vec<String>,
    /// Prefix of the fields that are experiments; the rest of the name is the experiment.
    pub prefix: Option<String>,
    /// Separator of experiment and arm in a text.
    pub arm_separator: Option<String>,
    /// Separator of such pairs in one text.
    pub pair_separator: Option<String>,
    /// The experiment of arms that stand without one, and of lists that name none.
    pub experiment_name: Option<String>,
    /// The arm of lists that name none, in the experiment `experiment_name`.
    pub arm_name: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClickShape {
    /// Values of [`Shape::kind`] that mean a click.
    pub kinds: Vec<String>,
    /// What says more closely what was done; records whose value is not among `actions` are ignored.
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

    /// Rules for gathering its lists, if a record is one shown item.
    pub fn gather_rules(&self, max_items: u32) -> Option<GatherRules> {
        let gather = |span_ms| GatherRules { span_ms, max_items };
        self.served.gather_ms.map(gather)
    }

    /// Our own fields with the times of this shape; `None` if these are written as our own.
    pub fn own_with_times(&self) -> Option<Shape> {
        let has_own_times = self.ts_unit.is_none() && self.ts_zone.is_none();
        (!has_own_times).then(|| Shape {
            ts_unit: self.ts_unit,
            ts_zone: self.ts_zone,
            ..Shape::default()
        })
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
