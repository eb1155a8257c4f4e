//! Fetching pages, and reading them.

mod address;
mod charset;
mod fetching;
mod markup;
mod page;
mod printing;
mod thinned;
pub(crate) mod web_fetch;
