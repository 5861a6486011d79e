//! Contribution of one list to each column, by the twin's formulas.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use abgauge_core::metrics::Ranking;

use crate::oracle::world::World;
use crate::twin::{Convention, Outcome, parts};

/// Computation of rows that remembers them, because a recount needs most of them again.
pub struct Scores<'a> {
    world: &'a World,
    pub ranking: Ranking,
    conventions: Vec<Convention>,
    rows: RefCell<Rows>,
}

/// Rows by list and catalogue.
type Rows = HashMap<(Outcome, usize), Rc<[f64]>>;

impl<'a> Scores<'a> {
    pub fn new(world: &'a World) -> Scores<'a> {
        Scores {
            world,
            ranking: world.ranking(),
            conventions: world.measures.profiles.iter().map(Convention::of).collect(),
            rows: RefCell::default(),
        }
    }

    /// Returns the row of a list, in the layout of [`crate::oracle::account::row`]. `catalogue` is the number of the one that the
    /// list counts by.
    pub fn row(&self, list: &Outcome, catalogue: usize) -> Rc<[f64]> {
        let mut rows = self.rows.borrow_mut();
        let row = rows
            .entry((list.clone(), catalogue))
            .or_insert_with(|| self.work_out(list, catalogue));
        Rc::clone(row)
    }

    fn work_out(&self, list: &Outcome, catalogue: usize) -> Rc<[f64]> {
        let bases = [1.0, list.items.len() as f64, list.clicked.len() as f64];
        let columns = self.ranking.columns().iter().flat_map(|column| {
            let (numerator, denominator) = parts(
                column.metric.id,
                column.k.map(|k| k.get()),
                &self.conventions[column.profile],
                list,
                Some(&self.world.catalogues[catalogue]),
                self.world.measures.alpha,
            );
            [numerator, denominator]
        });
        bases.into_iter().chain(columns).collect()
    }
}
