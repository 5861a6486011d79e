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

/// A name out of events, fit for a terminal: what would steer it, turn the direction of the text or not be seen is written as
/// an escape.
pub fn visible(name: &str) -> String {
    escaped(name, false)
}

/// A name as a cell of a table that spreadsheets read: fit to be seen as it is, and no formula. Different names are different
/// cells.
pub fn cell(name: &str) -> String {
    /// What begins a formula, also in the width of Chinese and Japanese characters.
    const FORMULA: [char; 8] = ['=', '+', '-', '@', '＝', '＋', '－', '＠'];
    let escaped = escaped(name, true);
    match escaped.starts_with('\'') || escaped.trim_start().starts_with(FORMULA) {
        true => format!("'{escaped}"),
        false => escaped,
    }
}

/// Where it is to be read back, the backslash that begins an escape is escaped too.
fn escaped(name: &str, and_backslash: bool) -> String {
    let mut escaped = String::with_capacity(name.len());
    let mut before = None;
    let mut chars = name.chars().peekable();
    while let Some(char) = chars.next() {
        if is_joiner(char) {
            // Families of emoji are joined and Persian words parted by these; elsewhere they do nothing.
            let is_of_script =
                |near: Option<char>| near.is_some_and(|near| !near.is_ascii() && !steers(near));
            match is_of_script(before) && is_of_script(chars.peek().copied()) {
                true => escaped.push(char),
                false => escaped.extend(char.escape_default()),
            }
        } else if steers(char) || (and_backslash && char == '\\') {
            escaped.extend(char.escape_default());
        } else {
            escaped.push(char);
        }
        before = Some(char);
    }
    escaped
}

fn is_joiner(char: char) -> bool {
    matches!(char, '\u{200c}' | '\u{200d}')
}

/// Control characters, ends of lines, and what is not seen: all of Unicode's category Cf, tags and what else is drawn as
/// nothing, and fillers.
fn steers(char: char) -> bool {
    char.is_control()
        || matches!(char,
            '\u{ad}'
            | '\u{600}'..='\u{605}'
            | '\u{61c}'
            | '\u{6dd}'
            | '\u{70f}'
            | '\u{890}'..='\u{891}'
            | '\u{8e2}'
            | '\u{115f}'..='\u{1160}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{110bd}'
            | '\u{110cd}'
            | '\u{13430}'..='\u{1343f}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
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
    fn what_is_not_seen_is_written_as_an_escape() {
        for char in [
            '\u{ad}',
            '\u{180e}',
            '\u{200b}',
            '\u{200c}',
            '\u{200d}',
            '\u{2060}',
            '\u{3164}',
            '\u{ffa0}',
            '\u{e0001}',
            '\u{e0041}',
        ] {
            let name = format!("a{char}b");
            assert_eq!(visible(&name), format!("a\\u{{{:x}}}b", u32::from(char)));
        }
        assert_eq!(visible("é\u{200d}"), "é\\u{200d}");
        assert_eq!(visible("é\u{200d}\u{200d}é"), "é\\u{200d}\\u{200d}é");
    }

    #[test]
    fn different_names_are_different_cells() {
        let names = [
            "=a",
            "'=a",
            "''=a",
            "\u{7}b",
            "\\u{7}b",
            "\\\\u{7}b",
            "\n",
            "\\n",
            "' =a",
            " =a",
            "a'",
        ];
        let cells: std::collections::BTreeSet<_> = names.into_iter().map(cell).collect();
        assert_eq!(cells.len(), names.len(), "{cells:?}");
        assert_eq!(visible(r"a\b"), r"a\b", "for people it is one");
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
            ("'a", "''a"),
        ] {
            assert_eq!(super::cell(name), cell);
        }
    }
}
