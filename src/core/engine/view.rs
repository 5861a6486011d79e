//! The two views of counted lists.

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum View {
    /// Counts a list as soon as it is read.
    Live,
    /// Counts a list once its attribution window has closed.
    Settled,
}

impl View {
    pub const BOTH: [View; 2] = [View::Live, View::Settled];

    /// Returns its value of the label `view`.
    pub fn name(self) -> &'static str {
        match self {
            View::Live => "live",
            View::Settled => "settled",
        }
    }

    /// Returns the word for it in text that people read.
    pub fn word(self) -> &'static str {
        match self {
            View::Live => "live",
            View::Settled => "final",
        }
    }
}
