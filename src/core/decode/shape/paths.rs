//! Paths to a field: one, or several that are tried in order.

use super::Path;

/// Paths to one field. The first one that leads to a value is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paths {
    first: Path,
    others: Vec<Path>,
}

impl Paths {
    /// Bound on the paths to one field.
    pub const MAX: usize = 8;

    /// Parses a single path.
    ///
    /// # Errors
    /// Description of the mistake in the text.
    pub fn parse(text: &str) -> Result<Paths, &'static str> {
        Path::parse(text).map(Paths::from)
    }

    /// Returns several paths in the order in which they are tried; `None` if there are none, or more than [`Paths::MAX`].
    pub fn any(paths: Vec<Path>) -> Option<Paths> {
        if paths.len() > Paths::MAX {
            return None;
        }
        let mut paths = paths.into_iter();
        Some(Paths {
            first: paths.next()?,
            others: paths.collect(),
        })
    }

    pub fn first(&self) -> &Path {
        &self.first
    }

    /// Returns the paths that are tried after the first one.
    pub fn others(&self) -> &[Path] {
        &self.others
    }

    pub fn iter(&self) -> impl Iterator<Item = &Path> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// Returns the paths that start at the surrounding record, or else those that start at the event; `None` if there are
    /// none.
    pub fn that_are(&self, is_outer: bool) -> Option<Paths> {
        let paths = self.iter().filter(|path| path.is_outer() == is_outer);
        Paths::any(paths.cloned().collect())
    }

    pub fn has_alternatives(&self) -> bool {
        !self.others.is_empty()
    }
}

impl From<Path> for Paths {
    fn from(first: Path) -> Paths {
        Paths {
            first,
            others: Vec::new(),
        }
    }
}
