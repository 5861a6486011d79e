//! Tables of numbers, for a terminal and for Markdown.

use crate::table::visible;

/// Table whose columns are arranged in groups that stay together.
pub(super) struct Grid {
    /// Header above the names of the rows.
    pub corner: String,
    pub rows: Vec<String>,
    /// Columns that are repeated in every part if the table must be cut.
    pub lead: Vec<GridColumn>,
    pub groups: Vec<Vec<GridColumn>>,
}

pub(super) struct GridColumn {
    pub header: String,
    /// Cells, one for each row.
    pub cells: Vec<String>,
    /// True for names and words, which are aligned to the left. Numbers are aligned to the right.
    pub is_text: bool,
}

/// Width of a terminal in columns.
const TERMINAL: usize = 80;
/// Gap between two columns of a table.
const GAP: usize = 3;

impl Grid {
    /// Renders the table for a terminal. A wide table is cut into parts below each other, and names are made printable.
    pub fn text(&self) -> String {
        let mut parts: Vec<String> = Vec::new();
        let mut groups = self.groups.as_slice();
        // There is at least one part: the lead alone is a table, too.
        loop {
            let (abreast, left) = groups.split_at(self.n_abreast(groups));
            parts.push(self.part(abreast));
            groups = left;
            if groups.is_empty() {
                return parts.join("\n\n");
            }
        }
    }

    /// Returns how many of these groups fit into a terminal, at least one.
    fn n_abreast(&self, groups: &[Vec<GridColumn>]) -> usize {
        let lead: usize = self.lead.iter().map(GridColumn::width).sum();
        let mut width = 1 + width(&self.corner, &self.rows) + lead;
        let fits = |group: &&Vec<GridColumn>| {
            width += group.iter().map(GridColumn::width).sum::<usize>();
            width <= TERMINAL
        };
        let n = groups.iter().take_while(fits).count();
        // A group that is too wide for the terminal still gets a part of its own.
        n.max(1).min(groups.len())
    }

    fn part(&self, groups: &[Vec<GridColumn>]) -> String {
        let mut table = crate::table::new();
        let columns: Vec<&GridColumn> = self.lead.iter().chain(groups.iter().flatten()).collect();
        let headers = columns.iter().map(|column| &column.header);
        table.set_header(
            [&self.corner]
                .into_iter()
                .chain(headers)
                .map(|name| visible(name)),
        );
        for (row, name) in self.rows.iter().enumerate() {
            let cells = columns.iter().map(|column| visible(&column.cells[row]));
            table.add_row([visible(name)].into_iter().chain(cells));
        }
        for (index, column) in columns.iter().enumerate() {
            if !column.is_text {
                crate::table::align_number(&mut table, 1 + index);
            }
        }
        crate::table::text(&table)
    }

    /// Renders the table as Markdown, however wide. Characters with a meaning in Markdown are escaped.
    pub fn markdown(&self) -> String {
        let columns: Vec<&GridColumn> = self.lead.iter().chain(self.groups.iter().flatten()).collect();
        let line = |cells: &mut dyn Iterator<Item = String>| {
            let cells: Vec<String> = cells.collect();
            format!("| {} |", cells.join(" | "))
        };
        let headers = columns.iter().map(|column| escaped(&column.header));
        let mut lines = vec![
            line(&mut [escaped(&self.corner)].into_iter().chain(headers)),
            columns.iter().fold("|:---|".to_owned(), |rule, column| {
                rule + if column.is_text { ":---|" } else { "---:|" }
            }),
        ];
        for (row, name) in self.rows.iter().enumerate() {
            let cells = columns.iter().map(|column| match column.is_text {
                true => escaped(&column.cells[row]),
                false => column.cells[row].clone(),
            });
            lines.push(line(&mut [escaped(name)].into_iter().chain(cells)));
        }
        lines.join("\n")
    }
}

impl GridColumn {
    /// Returns the width that the column takes in a line.
    fn width(&self) -> usize {
        GAP + width(&self.header, &self.cells)
    }
}

fn width(header: &str, cells: &[String]) -> usize {
    let n_chars = |text: &str| visible(text).chars().count();
    let cells = cells.iter().map(|cell| n_chars(cell));
    cells.max().unwrap_or(0).max(n_chars(header))
}

/// Escapes a name so that Markdown shows it literally.
fn escaped(name: &str) -> String {
    let name = visible(name);
    let mut text = String::with_capacity(name.len());
    let is_word = |char: Option<char>| char.is_some_and(char::is_alphanumeric);
    let mut before = None;
    let mut chars = name.chars().peekable();
    while let Some(char) = chars.next() {
        let is_special = match char {
            '\\' | '|' | '`' | '*' | '<' | '[' | ']' | '~' | '&' => true,
            // Within a word, an underscore has no meaning.
            '_' => !(is_word(before) && is_word(chars.peek().copied())),
            _ => false,
        };
        if is_special {
            text.push('\\');
        }
        text.push(char);
        before = Some(char);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(header: &str, cell: &str) -> GridColumn {
        GridColumn {
            header: header.to_owned(),
            cells: vec![cell.to_owned()],
            is_text: false,
        }
    }

    fn grid(groups: &[&str]) -> Grid {
        Grid {
            corner: "e".to_owned(),
            rows: vec!["ctr".to_owned()],
            lead: vec![column("control", "0.1")],
            groups: groups
                .iter()
                .map(|arm| vec![column(arm, "0.2"), column("Δ", "+0.1")])
                .collect(),
        }
    }

    #[test]
    fn a_wide_grid_is_cut_between_groups_and_repeats_the_lead() {
        let arm = "a".repeat(20);
        let text = grid(&[&arm, &arm, &arm, "b"]).text();
        let parts: Vec<&str> = text.split("\n\n").collect();
        assert_eq!(parts.len(), 2, "{text}");
        for part in &parts {
            assert!(part.starts_with(" e     control   "), "{text}");
        }
        assert!(parts[1].contains(" b "), "{text}");
        assert!(
            text.lines().all(|line| line.chars().count() <= TERMINAL),
            "{text}"
        );
        assert!(text.lines().any(|line| line.chars().count() > 60), "{text}");
    }

    #[test]
    fn an_oversized_group_is_printed_alone_and_uncut() {
        let arm = "a".repeat(128);
        let text = grid(&[&arm, &arm]).text();
        assert_eq!(text.split("\n\n").count(), 2);
        assert_eq!(text.matches(&*arm).count(), 2);
    }

    #[test]
    fn a_grid_without_groups_is_one_part() {
        assert_eq!(
            grid(&[]).text(),
            " e     control\n───────────────\n ctr       0.1"
        );
    }

    #[test]
    fn markdown_escapes_names() {
        let shown = grid(&["a|b", "_x_y_", "\\*\n"]).markdown();
        let header = shown.lines().next();
        assert_eq!(
            header,
            Some(r"| e | control | a\|b | Δ | \_x_y\_ | Δ | \\\*\\n | Δ |")
        );
        let rest: Vec<&str> = shown.lines().skip(1).collect();
        let row = "| ctr | 0.1 | 0.2 | +0.1 | 0.2 | +0.1 | 0.2 | +0.1 |";
        assert_eq!(rest, ["|:---|---:|---:|---:|---:|---:|---:|---:|", row]);
    }
}
