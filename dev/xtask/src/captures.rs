//! `cargo xtask captures`: the main screens, drawn by the program on a terminal of its own.

use crate::run::{cargo, show_and_run};

pub(crate) fn make() -> Result<(), String> {
    let test = ["test", "--package", "helve-cli", "--test", "it", "captures::"];
    show_and_run(cargo().args(test).env("HELVE_CAPTURES", "write"))?;
    println!("wrote docs/captures");
    Ok(())
}
