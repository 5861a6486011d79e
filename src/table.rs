//! Tables for people: aligned columns, one rule below the header, nothing else.

use comfy_table::{CellAlignment, ContentArrangement, Table, TableComponent, presets};

/// An empty table in the one style that all of ours have.
pub fn new() -> Table {
    let mut table = Table::new();
    table
        .load_preset(presets::NOTHING)
        .set_style(TableComponent::HeaderLines, '─')
        .set_style(TableComponent::MiddleHeaderIntersections, '─')
        .set_content_arrangement(ContentArrangement::Disabled);
    table
}

/// Aligns every column after the first `n_names` to the right.
pub fn align_numbers(table: &mut Table, n_names: usize) {
    for column in table.column_iter_mut().skip(n_names) {
        column.set_cell_alignment(CellAlignment::Right);
    }
}

/// A name out of events, fit for a terminal: what would steer it is written as an escape.
pub fn visible(name: &str) -> String {
    let mut visible = String::with_capacity(name.len());
    for char in name.chars() {
        if char.is_control() {
            visible.extend(char.escape_default());
        } else {
            visible.push(char);
        }
    }
    visible
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_rule_stands_below_the_header() {
        let mut table = new();
        table.set_header(["ranker", "blend"]);
        table.add_row(["lists", "461"]).add_row(["hit_rate@5", "0.4403"]);
        align_numbers(&mut table, 1);
        let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
        assert_eq!(
            lines,
            [
                " ranker        blend",
                "─────────────────────",
                " lists           461",
                " hit_rate@5   0.4403",
            ]
        );
    }

    #[test]
    fn a_name_cannot_steer_the_terminal() {
        assert_eq!(visible("a\x1b[2Jb\nc é 🙂"), "a\\u{1b}[2Jb\\nc é 🙂");
    }
}
