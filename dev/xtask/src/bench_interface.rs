//! What the terminal interface costs. The figures come from the benchmark of the testkit, which has a terminal.

use std::path::Path;

use crate::bench::{Row, of_bench};

pub(crate) fn rows(helve: &Path) -> Result<Vec<Row>, String> {
    let path = helve.to_str().ok_or("the path of helve is no text")?;
    of_bench("helve-testkit", "interface", &[path])
}
