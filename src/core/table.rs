//! Tables for people: aligned columns, one rule below the header, nothing else.

use comfy_table::{CellAlignment, ContentArrangement, Table, TableComponent, presets};

/// Creates an empty table in the common style.
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
    for index in n_names..table.column_count() {
        align_number(table, index);
    }
}

/// Aligns a column to the right.
pub fn align_number(table: &mut Table, index: usize) {
    if let Some(column) = table.column_mut(index) {
        column.set_cell_alignment(CellAlignment::Right);
    }
}

/// Renders a table without white space at the ends of its lines.
pub fn text(table: &Table) -> String {
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n")
}

/// Makes a name from events safe for a terminal: control characters, direction marks and invisible characters are escaped.
pub fn visible(name: &str) -> String {
    escaped(name, false)
}

/// Makes a name safe for spreadsheet cells: visible, and not a formula. Different names stay different.
pub fn cell(name: &str) -> String {
    /// Characters that start a formula, also in full width.
    const FORMULA: [char; 8] = ['=', '+', '-', '@', '＝', '＋', '－', '＠'];
    let escaped = escaped(name, true);
    match escaped.starts_with('\'') || escaped.trim_start().starts_with(FORMULA) {
        true => format!("'{escaped}"),
        false => escaped,
    }
}

/// Escapes a name. With `and_backslash` it can be read back, because the backslash that starts an escape is escaped too.
fn escaped(name: &str, and_backslash: bool) -> String {
    let mut escaped = String::with_capacity(name.len());
    let mut before = None;
    let mut chars = name.chars().peekable();
    while let Some(char) = chars.next() {
        if is_joiner(char) {
            // These join families of emoji and separate Persian words. Elsewhere they have no effect.
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

/// Matches control characters, line ends and invisible characters: Unicode's category Cf, tags and other characters without a
/// glyph, and fillers.
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
        assert_eq!(
            text(&table).lines().collect::<Vec<_>>(),
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
        // Emoji families and Persian words need these.
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
