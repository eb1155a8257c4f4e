//! How parts of a page are printed for which the library's way does not do: tables and code.

use std::rc::Rc;

use htmd::element_handler::{HandlerResult, Handlers};
use htmd::{Element, Node};
use markup5ever_rcdom::NodeData;

use crate::web::page::{join_words, tag, words};

/// A longer word is no name of a language.
const MAX_LANGUAGE_CHARS: usize = 30;

/// Code between fences, as it stands. A fence is longer than any in the code.
pub(crate) fn code_block(_: &dyn Handlers, element: Element<'_>) -> Option<HandlerResult> {
    let (code, language) = code(element.node);
    if code.trim().is_empty() {
        return Some("\n\n".into());
    }
    let code = code.trim_end().trim_start_matches('\n');
    let longest = code.split(|letter| letter != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(3.max(longest + 1));
    Some(format!("\n\n{fence}{}\n{code}\n{fence}\n\n", language.unwrap_or_default()).into())
}

/// All text below a node, letter by letter, and the language that some element says it is.
fn code(node: &Rc<Node>) -> (String, Option<String>) {
    let (mut code, mut named) = (String::new(), None);
    let mut waiting = vec![node.clone()];
    while let Some(node) = waiting.pop() {
        match &node.data {
            NodeData::Text { contents } => code.push_str(&contents.borrow()),
            NodeData::Element { .. } if tag(&node) == Some("br") => code.push('\n'),
            NodeData::Element { attrs, .. } if named.is_none() => {
                let attrs = attrs.borrow();
                let class = attrs.iter().find(|attr| &*attr.name.local == "class");
                named = class.and_then(|class| language(&class.value));
            }
            _ => {}
        }
        waiting.extend(node.children.borrow().iter().rev().cloned());
    }
    (code, named)
}

fn language(classes: &str) -> Option<String> {
    let prefixed = |class: &str| {
        let name = class.strip_prefix("language-").or_else(|| class.strip_prefix("lang-"))?;
        let is_plain = name.chars().all(|letter| letter.is_ascii_alphanumeric() || "+#._-".contains(letter));
        (is_plain && name.len() <= MAX_LANGUAGE_CHARS).then(|| name.to_owned())
    };
    classes.split_ascii_whitespace().find_map(prefixed)
}

/// A table without padding: that would only cost, and a wide cell in a long table would take gigabytes.
pub(crate) fn table(handlers: &dyn Handlers, element: Element<'_>) -> Option<HandlerResult> {
    let mut text = String::from("\n\n");
    let mut is_headed = false;
    for part in element.node.children.borrow().iter() {
        match tag(part) {
            Some("thead" | "tbody" | "tfoot") => {
                for row in part.children.borrow().iter() {
                    text.push_str(&table_row(handlers, row, &mut is_headed));
                }
            }
            _ => text.push_str(&stray(part)),
        }
    }
    text.push('\n');
    Some(text.into())
}

/// A row in one line. Pages that are laid out by tables have whole chapters in a cell: those stay as they are.
fn table_row(handlers: &dyn Handlers, row: &Rc<Node>, is_headed: &mut bool) -> String {
    if tag(row) != Some("tr") {
        return stray(row);
    }
    let row = row.children.borrow();
    let cells = row.iter().filter(|cell| tag(cell).is_some() || !stray(cell).is_empty());
    let texts: Vec<String> =
        cells.filter_map(|cell| handlers.handle(cell)).map(|cell| cell.content.trim().to_owned()).collect();
    let is_head = !*is_headed && row.iter().any(|cell| tag(cell) == Some("th"));
    if !*is_headed && !is_head && texts.iter().any(|text| text.contains('\n')) {
        return format!("{}\n\n", texts.join("\n\n"));
    }
    let cells: Vec<String> = texts.iter().map(|text| join_words(text).replace('|', "\\|")).collect();
    let line = format!("| {} |\n", cells.join(" | "));
    if !is_head {
        return line;
    }
    *is_headed = true;
    format!("{line}|{}\n", " --- |".repeat(cells.len()))
}

/// What stands in a table and in no cell: a caption, or what was too deep.
fn stray(node: &Rc<Node>) -> String {
    let line = join_words(&words(node));
    if line.is_empty() { line } else { format!("{line}\n\n") }
}
