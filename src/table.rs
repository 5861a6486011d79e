//! Tables on the terminal: plain, aligned, without colour.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

/// An empty table in the one style that all of ours have.
pub fn new() -> Table {
    let mut table = Table::new();
    table
        .load_preset(presets::UTF8_HORIZONTAL_ONLY)
        .set_content_arrangement(ContentArrangement::Disabled);
    table
}

/// Aligns every column after the first `n_names` to the right.
pub fn align_numbers(table: &mut Table, n_names: usize) {
    for column in table.column_iter_mut().skip(n_names) {
        column.set_cell_alignment(CellAlignment::Right);
    }
}
