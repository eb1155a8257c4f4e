//! `helve reference`: the pages that are made from the program itself.

use std::fmt::Write;

use clap::{Arg, Command, CommandFactory};
use helve_models::BaseUrlVariable;

use crate::args::{CliArgs, ReferencePage};

pub(crate) fn page(page: ReferencePage) -> String {
    match page {
        ReferencePage::Commands => commands(),
        ReferencePage::Environment => format!("{}{}", helve_config::environment_reference(), providers()),
        ReferencePage::Events => helve_protocol::reference::events(),
        ReferencePage::Keys => helve_tui::keys_reference(),
        ReferencePage::Settings => helve_config::settings_reference(),
    }
}

/// The variables of providers, which other programs hear too.
fn providers() -> String {
    let mut page = "\n## Providers\n\nFor keys and addresses, the variables that other programs use are heard. The first that \
                    is set counts.\n\n| provider | key | base URL |\n|---|---|---|\n"
        .to_owned();
    for vendor in helve_models::VENDORS {
        let list =
            |names: Vec<&str>| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let keys = list(vendor.keys.iter().map(|(name, _)| *name).collect());
        let addresses = vendor.base_url_env.iter().map(|variable| match variable {
            BaseUrlVariable::Whole(name) | BaseUrlVariable::Host(name) => *name,
        });
        let _ = writeln!(page, "| {} | {keys} | {} |", vendor.name, list(addresses.collect()));
    }
    page.push_str(
        "\n`HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` are heard for servers that are not on this machine; on \
         Linux `SSL_CERT_FILE` and `SSL_CERT_DIR` name the certificates that are trusted.\n",
    );
    page
}

fn commands() -> String {
    let mut helve = CliArgs::command();
    helve.build();
    let mut page = "# Commands\n\n<!-- Made by `cargo xtask docs`. Do not edit. -->\n".to_owned();
    let _ = write!(
        page,
        "\n{}.\n\n## Everywhere\n\n",
        helve.get_about().map(ToString::to_string).unwrap_or_default()
    );
    page.push_str(&table(helve.get_arguments()));
    for command in helve.get_subcommands().filter(|command| command.get_name() != "help") {
        chapter(command, "helve", &mut page);
    }
    page.push_str(EXIT_CODES_CHAPTER);
    page
}

const EXIT_CODES_CHAPTER: &str = "
## Exit codes

| code | meaning |
|---|---|
| 0 | done |
| 1 | error |
| 2 | wrong usage of the command line, or errors in the settings |
| 3 | a key is missing or wrong |
| 10 | step limit reached |
| 11 | cost limit reached |
| 12 | time limit reached |
| 13 | something had to be asked, and there was nobody |
| 130 | interrupted |
";

fn chapter(command: &Command, above: &str, page: &mut String) {
    let name = format!("{above} {}", command.get_name());
    let below: Vec<&Command> =
        command.get_subcommands().filter(|command| command.get_name() != "help").collect();
    if below.is_empty() {
        let _ = write!(
            page,
            "\n## `{name}`\n\n{}.\n",
            command.get_about().map(ToString::to_string).unwrap_or_default()
        );
        let own = table(command.get_arguments().filter(|arg| !arg.is_global_set()));
        if !own.is_empty() {
            let _ = write!(page, "\n{own}");
        }
    }
    for command in below {
        chapter(command, &name, page);
    }
}

fn table<'a>(args: impl Iterator<Item = &'a Arg>) -> String {
    let mut rows = String::new();
    for arg in args.filter(|arg| !matches!(arg.get_id().as_str(), "help" | "version")) {
        let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        let values: Vec<String> =
            arg.get_possible_values().iter().map(|value| format!("`{}`", value.get_name())).collect();
        let takes_value = arg.get_action().takes_values();
        let values = if values.is_empty() || !takes_value {
            String::new()
        } else {
            format!(": {}", values.join(", "))
        };
        let _ = writeln!(rows, "| {} | {help}{values} |", spelling(arg));
    }
    if rows.is_empty() { rows } else { format!("| argument | meaning |\n|---|---|\n{rows}") }
}

/// `-C, --cwd DIR`, or `ID` for one without a dash.
fn spelling(arg: &Arg) -> String {
    let dashed =
        [arg.get_short().map(|short| format!("-{short}")), arg.get_long().map(|long| format!("--{long}"))];
    let dashed: Vec<String> = dashed.into_iter().flatten().collect();
    let value = arg.get_value_names().unwrap_or_default().join(" ");
    let words = match (dashed.is_empty(), arg.get_action().takes_values()) {
        (true, _) => value,
        (false, true) => format!("{} {value}", dashed.join(", ")),
        (false, false) => dashed.join(", "),
    };
    format!("`{words}`")
}
