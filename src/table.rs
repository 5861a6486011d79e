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

/// A name out of events, fit for a terminal: what would steer it, or turn the direction of the text, is written as an escape.
pub fn visible(name: &str) -> String {
    let mut visible = String::with_capacity(name.len());
    for char in name.chars() {
        if steers(char) {
            visible.extend(char.escape_default());
        } else {
            visible.push(char);
        }
    }
    visible
}

/// A name as a cell of a table that spreadsheets read: fit to be seen as it is, and no formula.
pub fn cell(name: &str) -> String {
    /// What begins a formula, also in the width of Chinese and Japanese characters.
    const FORMULA: [char; 8] = ['=', '+', '-', '@', '＝', '＋', '－', '＠'];
    let visible = visible(name);
    match visible.trim_start().starts_with(FORMULA) {
        true => format!("'{visible}"),
        false => visible,
    }
}

/// Control characters, ends of lines, marks and overrides of the direction, and the byte order mark.
fn steers(char: char) -> bool {
    char.is_control()
        || matches!(char, '\u{61c}' | '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
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
        assert_eq!(
            visible("a\u{202e}b\u{2066}c\u{2028}"),
            "a\\u{202e}b\\u{2066}c\\u{2028}"
        );
        // Families of emoji and Persian words are joined and parted by these.
        assert_eq!(
            visible("👩\u{200d}🚀 می\u{200c}خواهم"),
            "👩\u{200d}🚀 می\u{200c}خواهم"
        );
    }

    #[test]
    fn a_name_cannot_become_a_formula() {
        for (name, cell) in [
            ("=1+1", "'=1+1"),
            ("+a", "'+a"),
            ("-a", "'-a"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("＝1", "'＝1"),
            (" =1", "' =1"),
            ("\t=1", "\\t=1"),
            ("\r\n", "\\r\\n"),
            ("a=b", "a=b"),
            ("'a", "'a"),
        ] {
            assert_eq!(super::cell(name), cell);
        }
    }
}
