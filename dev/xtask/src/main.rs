//! `cargo xtask …`: what CI and people run. It needs nothing but the Rust toolchain; what more it finds it uses, and what
//! it could not do for lack of a tool it says at the end.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "this is a program that tells what it does")]
#![expect(clippy::disallowed_methods, reason = "it reads the environment and measures time")]

mod bench;
mod captures;
mod catalogue;
mod docs;
mod fuzz;
mod measure;
mod run;
mod speak;
mod test;

use std::process::ExitCode;

const USAGE: &str = "\
cargo xtask test [--install] [WORDS]   check the format, the lints, the docs, and run all tests
                                       --install: install missing tools with apt-get (CI does)
                                       WORDS: hand these to the test runner, and do nothing else
cargo xtask test --wire                show our requests to the types of the providers' own libraries (pip)
cargo xtask test --real-model          speak with a server on this machine (HELVE_TEST_SERVER, or one that is found)
cargo xtask bench [PARTS]              measure, each figure beside a baseline; a wrong part tells which there are
cargo xtask fuzz [N]                   run N random scripts (100,000), and compare with what was read in them
cargo xtask docs [--check]             make the reference pages anew, or check that they are up to date
cargo xtask measure [--types]          tell how the code reads: names, long functions, comments, module cycles
cargo xtask captures                   draw the main screens anew, as text and as pictures
cargo xtask catalogue FILE             make the built-in catalogue of models out of a file of facts";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["test", "--wire"] => speak::wire(),
        ["test", "--real-model"] => speak::real_model(),
        ["test", options @ ..] => test::run(options),
        ["bench", parts @ ..] => bench::run(parts),
        ["fuzz"] => fuzz::run(None),
        ["fuzz", count] => fuzz::run(Some(count)),
        ["docs"] => docs::make(),
        ["docs", "--check"] => docs::check(),
        ["captures"] => captures::make(),
        ["measure", options @ ..] => measure::run(options),
        ["catalogue", facts] => catalogue::make(facts),
        _ => Err(USAGE.to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}
