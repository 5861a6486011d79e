//! Results of benchmarks and their goals, as a Markdown table.

use std::fmt;

/// One row of the table.
#[derive(Debug)]
pub struct Figure {
    pub name: String,
    pub measured: String,
    pub goal: String,
    /// Set if the goal is met. `None` without a goal.
    pub met: Option<bool>,
}

impl Figure {
    /// Creates a figure with an upper limit. `shown` is the text of the measurement, including its spread.
    pub fn at_most(name: impl Into<String>, value: f64, goal: f64, shown: impl fmt::Display) -> Figure {
        Figure {
            name: name.into(),
            measured: shown.to_string(),
            goal: format!("≤ {goal}"),
            met: Some(value <= goal),
        }
    }

    /// Creates a figure with a lower limit.
    pub fn at_least(name: impl Into<String>, value: f64, goal: f64, shown: impl fmt::Display) -> Figure {
        Figure {
            name: name.into(),
            measured: shown.to_string(),
            goal: format!("≥ {goal}"),
            met: Some(value >= goal),
        }
    }

    /// Creates a figure without a goal, which helps to interpret the others.
    pub fn beside(name: impl Into<String>, shown: impl fmt::Display) -> Figure {
        Figure {
            name: name.into(),
            measured: shown.to_string(),
            goal: String::new(),
            met: None,
        }
    }
}

/// Prints all rows in the format of the documents.
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
