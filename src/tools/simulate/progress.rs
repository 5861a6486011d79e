//! Progress of a simulation on standard error: a bar on a terminal, a line every 10 s elsewhere.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::Summary;
use crate::clock::Clock;
use crate::logging::say;

const BETWEEN_LINES: Duration = Duration::from_secs(10);

pub enum ProgressDisplay {
    Bar(ProgressBar),
    Lines { wall: Clock, next: Duration },
}

impl ProgressDisplay {
    /// Creates a display. `total_ms` is the event time of the whole run, if it ends. Without `bar` there are only lines.
    pub fn new(total_ms: Option<i64>, bar: bool) -> ProgressDisplay {
        if !(bar && std::io::stderr().is_terminal()) {
            return ProgressDisplay::Lines {
                wall: Clock::system(),
                next: BETWEEN_LINES,
            };
        }
        let bar = match total_ms {
            Some(total) => ProgressBar::new(total.max(0) as u64),
            None => ProgressBar::new_spinner(),
        };
        let template = match total_ms {
            Some(_) => "{elapsed_precise} {wide_bar} {percent}%  {msg}",
            None => "{elapsed_precise} {spinner}  {msg}",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        ProgressDisplay::Bar(bar)
    }

    /// Shows the progress. `done_ms` is the event time since the start.
    pub fn show(&mut self, done_ms: i64, summary: &Summary) {
        match self {
            ProgressDisplay::Bar(bar) => {
                bar.set_position(done_ms.max(0) as u64);
                bar.set_message(summary.to_string());
            }
            ProgressDisplay::Lines { wall, next } if wall.uptime() >= *next => {
                *next += BETWEEN_LINES;
                say(format_args!("simulate: {summary}"));
            }
            ProgressDisplay::Lines { .. } => {}
        }
    }

    /// Prints the final counts.
    pub fn finish(self, summary: &Summary) {
        if let ProgressDisplay::Bar(bar) = &self {
            bar.finish_and_clear();
        }
        say(format_args!("simulate: done, {summary}"));
    }
}
