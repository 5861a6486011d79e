//! docs/runbooks.md as a page, so that the runbook of a warning is available wherever the daemon runs.

use std::fmt::Write as _;

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};

const DOCUMENT: &str = include_str!("../../../docs/runbooks.md");
const TEMPLATE: &str = include_str!("../page/runbooks.html");

/// Renders the page. Each runbook's anchor is its alert's name in lower case, as on sites that render the Markdown.
pub(super) fn page() -> String {
    let mut body = String::new();
    html::push_html(&mut body, events().into_iter());
    let mut contents = String::new();
    for name in names() {
        let anchor = anchor_of(name);
        write!(contents, "<li><a href=\"#{anchor}\">{name}</a></li>").expect("a string takes all");
    }
    TEMPLATE
        .replace("<!-- contents -->", &contents)
        .replace("<!-- body -->", &body)
}

/// Returns the alerts that have a runbook.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    DOCUMENT.lines().filter_map(|line| line.strip_prefix("## "))
}

fn anchor_of(name: &str) -> String {
    name.to_lowercase()
}

/// Parses the document and adds anchors to its runbooks. Other documents are not served, so links to them become text
/// followed by the file's name.
fn events() -> Vec<Event<'static>> {
    let mut events = Vec::new();
    let mut names = names();
    let mut elsewhere: Option<Elsewhere> = None;
    for event in Parser::new_ext(DOCUMENT, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Heading {
                level: HeadingLevel::H2,
                classes,
                attrs,
                ..
            }) => events.push(Event::Start(Tag::Heading {
                level: HeadingLevel::H2,
                // Headings of this level and names come from the same lines, so they have the same order.
                id: names.next().map(|name| anchor_of(name).into()),
                classes,
                attrs,
            })),
            Event::Start(Tag::Link { dest_url, .. }) if !dest_url.starts_with('#') => {
                let file = dest_url.split('#').next().unwrap_or_default().to_owned();
                // Links cannot be nested in Markdown, so one at a time is enough.
                elsewhere = Some(Elsewhere { file, is_text: false });
            }
            Event::Text(text) => match &mut elsewhere {
                Some(link) if *link.file == *text => link.is_text = true,
                _ => events.push(Event::Text(text)),
            },
            Event::End(TagEnd::Link) => events.push(match elsewhere.take() {
                None => Event::End(TagEnd::Link),
                Some(Elsewhere { file, is_text: true }) => Event::Text(format!("docs/{file}").into()),
                Some(Elsewhere { file, .. }) => Event::Text(format!(" (docs/{file})").into()),
            }),
            event => events.push(event),
        }
    }
    events
}

struct Elsewhere {
    file: String,
    /// Set if the text of the link is the file's name.
    is_text: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_runbook_has_an_anchor_and_every_link_resolves() {
        let page = page();
        assert!(names().count() > 20);
        for name in names() {
            let heading = format!("<h2 id=\"{}\">{name}</h2>", name.to_lowercase());
            assert_eq!(page.matches(&heading).count(), 1, "{name}");
        }
        let body = page.split_once("<body>").expect("a body").1;
        let links: Vec<&str> = body.split("href=\"").skip(1).collect();
        assert!(links.len() > names().count());
        for link in links {
            let target = link.split('"').next().unwrap();
            match target.strip_prefix('#') {
                Some(anchor) => assert!(page.contains(&format!("id=\"{anchor}\"")), "{target}"),
                None => assert_eq!(target, "./", "other documents are not served"),
            }
        }
        for reported in [
            "see docs/sizing.md.",
            "what abgauge reads back (docs/operate.md)",
            "<table>",
        ] {
            assert!(page.contains(reported), "{reported}");
        }
        assert!(!page.contains("<!--"), "every place is filled");
    }
}
