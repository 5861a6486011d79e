//! Manual pages for the program and each of its commands, with the usual sections.

use std::fs;
use std::io;
use std::path::Path;

use anyhow::Context as _;
use clap::{Command, CommandFactory as _};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use super::print;
use crate::tools::cli::Cli;

/// Headings behind the help of a command, and the corresponding sections of the manual.
const SECTIONS: [(&str, &str); 2] = [("Examples:", "EXAMPLES"), ("Exit codes:", "EXIT STATUS")];

/// Prints the program's page, or writes a page for it and each of its commands to `dir`.
///
/// # Errors
/// If they cannot be written.
pub fn man(dir: Option<&Path>) -> anyhow::Result<()> {
    // `abgauge help run` equals `abgauge run --help`, so it needs no page.
    let mut command = Cli::command().disable_help_subcommand(true);
    // Fills in the full names of subcommands, such as `abgauge-config-show`.
    command.build();
    let Some(dir) = dir else {
        let mut text = Vec::new();
        page(&command, None, &mut text)?;
        return print(&String::from_utf8_lossy(&text));
    };
    let shown = dir.display();
    fs::create_dir_all(dir).with_context(|| format!("create the directory {shown}"))?;
    pages(&command, None, dir).with_context(|| format!("write the manual to {shown}"))
}

fn pages(command: &Command, parent: Option<&Command>, dir: &Path) -> io::Result<()> {
    let mut text = Vec::new();
    page(command, parent, &mut text)?;
    fs::write(dir.join(format!("{}.1", name(command))), text)?;
    visible(command).try_for_each(|inner| pages(inner, Some(command), dir))
}

fn page(command: &Command, parent: Option<&Command>, out: &mut Vec<u8>) -> io::Result<()> {
    let man = Man::new(command.clone()).manual("abgauge manual");
    man.render_title(out)?;
    man.render_name_section(out)?;
    man.render_synopsis_section(out)?;
    man.render_description_section(out)?;
    if command.get_arguments().any(|argument| !argument.is_hide_set()) {
        man.render_options_section(out)?;
    }
    if visible(command).next().is_some() {
        man.render_subcommands_section(out)?;
    }
    let behind = command.get_after_long_help().map(ToString::to_string);
    for paragraph in behind.unwrap_or_default().split("\n\n") {
        section(paragraph).to_writer(out)?;
    }
    see_also(command, parent).to_writer(out)?;
    man.render_version_section(out)
}

/// Renders a paragraph. One under a known heading keeps its line breaks, any other is a note.
fn section(paragraph: &str) -> Roff {
    let mut roff = Roff::new();
    let (first, rest) = paragraph.split_once('\n').unwrap_or((paragraph, ""));
    match SECTIONS.iter().find(|(heading, _)| *heading == first) {
        Some((_, title)) => {
            roff.control("SH", [*title]);
            roff.control("nf", []);
            for line in rest.lines() {
                roff.text([roman(line.strip_prefix("  ").unwrap_or(line))]);
            }
            roff.control("fi", []);
        }
        None if paragraph.is_empty() => {}
        None => {
            roff.control("SH", ["NOTES"]);
            roff.text([roman(paragraph)]);
        }
    }
    roff
}

fn see_also(command: &Command, parent: Option<&Command>) -> Roff {
    let others: Vec<&Command> = parent.into_iter().chain(visible(command)).collect();
    let mut roff = Roff::new();
    if !others.is_empty() {
        roff.control("SH", ["SEE ALSO"]);
    }
    for (n, other) in others.iter().enumerate() {
        let end = if n + 1 < others.len() { "(1)," } else { "(1)" };
        roff.text([bold(name(other)), roman(end)]);
    }
    roff
}

fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|command| !command.is_hide_set())
}

/// Returns a name such as `abgauge-config-show`.
fn name(command: &Command) -> &str {
    command.get_display_name().unwrap_or_else(|| command.get_name())
}
