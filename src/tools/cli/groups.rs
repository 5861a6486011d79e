//! The commands in groups by their purpose, for `abgauge --help`.

use clap::Command;
use clap::builder::styling::Styles;

/// Groups with their commands, in the order of the help.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Run", &["run", "health"]),
    ("Try", &["demo", "simulate"]),
    (
        "Analyze files",
        &["evaluate", "plan", "convert", "catalog", "profiles"],
    ),
    ("Set up and check", &["config", "check", "hash"]),
    ("Stored state", &["state"]),
    ("About abgauge", &["help", "man", "completions", "version"]),
];

/// Width of the help in columns, if the terminal is not narrower.
pub(super) const WIDTH: usize = 100;
/// Columns before the description of a command.
const INDENT: usize = 15;

/// Lists the commands in their groups instead of in one list.
pub(super) fn grouped(command: Command) -> Command {
    let template = template(&command);
    command.help_template(template)
}

fn template(command: &Command) -> String {
    let heading = *Styles::styled().get_header();
    let literal = *Styles::styled().get_literal();
    let terminal = console::Term::stdout().size_checked();
    let width = terminal.map_or(WIDTH, |(_, columns)| WIDTH.min(columns.into()));
    let mut template = "{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    for (group, names) in GROUPS {
        template += &format!("\n{heading}{group}:{heading:#}\n");
        for name in names {
            let about = about(command, name);
            let lines = textwrap::wrap(&about, width.saturating_sub(INDENT).max(20));
            let gap = " ".repeat(INDENT - 2 - name.len());
            let lines = lines.join(&format!("\n{}", " ".repeat(INDENT)));
            template += &format!("  {literal}{name}{literal:#}{gap}{lines}\n");
        }
    }
    template + &format!("\n{heading}Options:{heading:#}\n{{options}}{{after-help}}")
}

fn about(command: &Command, name: &str) -> String {
    let found = command.find_subcommand(name).and_then(Command::get_about);
    // The parser adds this command later.
    found.map_or_else(|| "Print the help of a command".to_owned(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory as _;

    use super::*;
    use crate::tools::cli::Cli;

    #[test]
    fn every_command_is_in_one_group() {
        let cli = Cli::command();
        let names = GROUPS.iter().flat_map(|(_, names)| names.iter().copied());
        let grouped: BTreeSet<&str> = names.clone().collect();
        assert_eq!(names.count(), grouped.len(), "no command is in two groups");
        let all = cli.get_subcommands().map(Command::get_name).chain(["help"]);
        assert_eq!(grouped, all.collect());
    }

    #[test]
    fn the_help_lists_the_commands_below_their_groups() {
        let help = grouped(Cli::command()).render_long_help().to_string();
        let place = |text: &str| help.find(text).unwrap_or_else(|| panic!("{text}: {help}"));
        let order = [
            "Usage: abgauge",
            "\nTry:\n  demo  ",
            "\nAnalyze files:\n  evaluate  ",
            "\nOptions:\n",
            "\nExamples:\n",
        ];
        assert!(order.map(place).is_sorted(), "{help}");
        assert!(help.lines().all(|line| line.chars().count() <= WIDTH), "{help}");
    }
}
