//! What the program costs while a model works. The figures come from the benchmark of the testkit, which has the servers:
//! this program stays one that is built in a moment.

use std::path::Path;

use crate::bench::{Row, of_bench};

pub(crate) fn rows(helve: &Path) -> Result<Vec<Row>, String> {
    let path = helve.to_str().ok_or("the path of helve is no text")?;
    let mut rows = of_bench("helve-testkit", "loop", &[path])?;
    rows.push(size(helve)?);
    Ok(rows)
}

/// Of the program as it is shipped, stripped.
fn size(helve: &Path) -> Result<Row, String> {
    let bytes = helve.metadata().map_err(|error| format!("{}: {error}", helve.display()))?.len();
    let megabytes = format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000);
    Ok(["size of helve", &megabytes, "", "", "", "≤ 20 MB"].map(str::to_owned))
}
