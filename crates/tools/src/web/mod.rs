//! Fetching pages, and reading them.

mod address;
mod attribute_limit;
mod charset;
mod fetcher;
mod html_tree;
mod node_text;
mod page;
mod printing;
pub(crate) mod web_fetch;
