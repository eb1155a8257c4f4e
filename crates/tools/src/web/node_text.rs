//! The words of a page: what is text in its tree, and what is not.

use std::rc::Rc;

use htmd::Node;
use markup5ever_rcdom::NodeData;

/// What is no text, or is on every page of a site.
pub(crate) const DROPPED_TAGS: [&str; 17] = [
    "base", "canvas", "embed", "iframe", "input", "link", "math", "meta", "nav", "object", "script",
    "select", "style", "svg", "template", "textarea", "title",
];

/// The name of an element; none if the node is something else.
pub(crate) fn tag(node: &Node) -> Option<&str> {
    match &node.data {
        NodeData::Element { name, .. } => Some(&name.local),
        _ => None,
    }
}

/// All text below a node, with spaces between its pieces.
pub(crate) fn words(node: &Rc<Node>) -> String {
    let mut all = String::new();
    let mut waiting = vec![node.clone()];
    while let Some(node) = waiting.pop() {
        if let NodeData::Text { contents } = &node.data {
            all.extend([&**contents.borrow(), " "]);
        }
        let children = node.children.borrow();
        let shown =
            children.iter().rev().filter(|child| tag(child).is_none_or(|tag| !DROPPED_TAGS.contains(&tag)));
        waiting.extend(shown.cloned());
    }
    all
}

/// A text with single spaces where it has white space.
pub(crate) fn join_words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
