//! What a benchmark found, beside what it should have found, as a Markdown table.

use std::fmt;

/// One row of the table.
#[derive(Debug)]
pub struct Figure {
    pub name: String,
    pub measured: String,
    pub goal: String,
    /// `None` where there is no goal.
    pub met: Option<bool>,
}

impl Figure {
    /// A figure that is to be at most `goal`; `shown` tells it with its spread.
    pub fn at_most(name: impl Into<String>, value: f64, goal: f64, shown: impl fmt::Display) -> Figure {
        Figure {
            name: name.into(),
            measured: shown.to_string(),
            goal: format!("≤ {goal}"),
            met: Some(value <= goal),
        }
    }

    /// A figure that is to be at least `goal`.
    pub fn at_least(name: impl Into<String>, value: f64, goal: f64, shown: impl fmt::Display) -> Figure {
        Figure {
            name: name.into(),
            measured: shown.to_string(),
            goal: format!("≥ {goal}"),
            met: Some(value >= goal),
        }
    }

    /// What helps to judge the others.
    pub fn beside(name: impl Into<String>, shown: impl fmt::Display) -> Figure {
        Figure {
            name: name.into(),
            measured: shown.to_string(),
            goal: String::new(),
            met: None,
        }
    }
}

/// Prints all rows, ready for a document.
pub fn print(figures: &[Figure]) {
    println!("\n| figure | measured | goal | met |\n|---|---|---|---|");
    for Figure {
        name,
        measured,
        goal,
        met,
    } in figures
    {
        let met = match met {
            Some(true) => "yes",
            Some(false) => "**no**",
            None => "",
        };
        println!("| {name} | {measured} | {goal} | {met} |");
    }
}
