//! Output of the demo: a table that is redrawn in place on a terminal, plain lines elsewhere.

use std::io::IsTerminal as _;

use console::{Term, measure_text_width, truncate_str};

/// Standard output.
pub struct Screen {
    term: Term,
    in_place: bool,
    /// Width of each drawn line, needed to draw over it.
    drawn: Vec<usize>,
}

impl Screen {
    pub fn new() -> Screen {
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Screen {
            term: Term::stdout(),
            in_place: std::io::stdout().is_terminal() && !is_dumb,
            drawn: Vec::new(),
        }
    }

    /// Returns whether a table replaces the previous one.
    pub fn in_place(&self) -> bool {
        self.in_place
    }

    /// Prints text that stays on the screen.
    pub fn say(&mut self, text: &str) {
        self.drawn.clear();
        // The demo continues even if its output is not read.
        let _ = self.term.write_line(text);
    }

    /// Draws these lines over the previous ones in a single write, so that nothing flickers.
    pub fn draw(&mut self, lines: &[String]) {
        if !self.in_place {
            return self.say(&lines.join("\n"));
        }
        let (n_rows, n_columns) = self.term.size();
        let (n_rows, n_columns) = (usize::from(n_rows), usize::from(n_columns));
        // A terminal that has become narrower has wrapped the drawn lines. Lines scrolled off the top cannot be reached.
        let n_up = rows(&self.drawn, n_columns).min(n_rows.saturating_sub(1));
        let lines: Vec<_> = lines
            .iter()
            .take(n_rows.saturating_sub(1))
            .map(|line| truncate_str(line, n_columns, "…"))
            .collect();
        self.drawn = lines.iter().map(|line| measure_text_width(line)).collect();
        let _ = self.term.write_str(&overwrite(n_up, &lines));
    }
}

/// Returns the rows taken by lines of these widths on a terminal with `n_columns`.
fn rows(widths: &[usize], n_columns: usize) -> usize {
    widths
        .iter()
        .map(|width| width.div_ceil(n_columns.max(1)).max(1))
        .sum()
}

/// Moves up, replaces each line, and clears the rest below.
fn overwrite(n_up: usize, lines: &[impl AsRef<str>]) -> String {
    const CLEAR_LINE: &str = "\x1b[K";
    const CLEAR_BELOW: &str = "\x1b[J";
    let mut text = match n_up {
        0 => "\r".to_owned(),
        n => format!("\r\x1b[{n}A"),
    };
    for line in lines {
        text += line.as_ref();
        text += CLEAR_LINE;
        text += "\n";
    }
    text + CLEAR_BELOW
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapped_lines_count_as_often_as_they_wrap() {
        assert_eq!(rows(&[0, 79, 80, 81, 160, 161], 80), 1 + 1 + 1 + 2 + 2 + 3);
        assert_eq!(rows(&[5], 0), 5);
    }

    #[test]
    fn a_table_is_replaced_without_being_cleared_first() {
        assert_eq!(overwrite(0, &["a"]), "\ra\x1b[K\n\x1b[J");
        assert_eq!(overwrite(2, &["a", "b"]), "\r\x1b[2Aa\x1b[K\nb\x1b[K\n\x1b[J");
    }
}
