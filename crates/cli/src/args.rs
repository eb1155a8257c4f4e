//! The command line. Help, completions and the reference page are all made from this.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use helve_protocol::{PermissionVerdict, WireProtocol};
use serde_json::Value;

use crate::failure::CliFailure;

/// A coding agent for the terminal
#[derive(Debug, Parser)]
#[command(name = "helve", version, after_help = AFTER_HELP)]
pub(crate) struct CliArgs {
    #[command(flatten)]
    pub(crate) everywhere: GlobalArgs,
    #[command(flatten)]
    pub(crate) interactive: InteractiveArgs,
    #[command(subcommand)]
    pub(crate) command: Option<CliCommand>,
}

/// What the interface takes: without a command, it is opened.
#[derive(Debug, clap::Args)]
pub(crate) struct InteractiveArgs {
    /// What to do first; without a command, the interface is opened
    pub(crate) prompt: Vec<String>,
    /// Resume this session: its id, the beginning or the end of it, or `last`
    #[arg(long, value_name = "ID", conflicts_with = "continue_last")]
    pub(crate) resume: Option<String>,
    /// Resume the last session of this project
    #[arg(long = "continue", conflicts_with = "resume")]
    pub(crate) continue_last: bool,
    /// Print plain lines and read lines, for screen readers and simple terminals
    #[arg(long)]
    pub(crate) plain: bool,
    #[command(flatten)]
    pub(crate) permitting: PermissionArgs,
}

impl InteractiveArgs {
    /// Whether anything was said that is meant for the interface.
    pub(crate) fn is_wanted(&self) -> bool {
        let PermissionArgs { permission_mode, allow, ask, deny } = &self.permitting;
        let has_rules = [allow, ask, deny].iter().any(|rules| !rules.is_empty());
        self.resume.is_some() || self.continue_last || self.plain || permission_mode.is_some() || has_rules
    }

    /// What to do first. A single word is rather a command that was misspelt.
    pub(crate) fn text(&self) -> Result<Option<String>, CliFailure> {
        let text = self.prompt.join(" ");
        match text.trim() {
            "" => Ok(None),
            word if !word.contains(char::is_whitespace) => {
                let what = format!("there is no command {word:?}");
                let hint = "`helve --help` lists them. To say something to the agent, use more than a word.";
                Err(CliFailure::usage(what, "a single word is not taken for a task", hint))
            }
            text => Ok(Some(text.to_owned())),
        }
    }
}

const AFTER_HELP: &str = "Everything stays on this machine: Helve sends no telemetry.\n\
                          Start with `helve doctor`: it shows what works here.\n\n\
                          Exit codes: 0 done, 1 failed, 2 wrong usage or settings, 3 a key is missing or wrong, 10 step limit,\n\
                          11 cost limit, 12 time limit, 13 refused with nobody to ask, 130 interrupted.";

/// What every command takes.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct GlobalArgs {
    /// Work in this folder instead of the current one
    #[arg(short = 'C', long = "cwd", value_name = "DIR", global = true)]
    pub(crate) cwd: Option<PathBuf>,
    /// Use this model, as provider/model or an alias
    #[arg(short, long, value_name = "NAME", global = true)]
    pub(crate) model: Option<String>,
    /// Set any setting for this run, such as limits.max_steps=10
    #[arg(long, value_name = "KEY=VALUE", value_parser = assignment, global = true)]
    pub(crate) set: Vec<(String, String)>,
    /// Also work in this folder; can be given several times
    #[arg(long, value_name = "DIR", global = true)]
    pub(crate) add_dir: Vec<PathBuf>,
    /// When to colour the output
    #[arg(long, value_name = "WHEN", global = true)]
    pub(crate) color: Option<ColorWhen>,
    /// Write more to the logs; `helve doctor` shows where they are
    #[arg(long, global = true)]
    pub(crate) debug: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ColorWhen {
    Auto,
    Always,
    Never,
}

impl ColorWhen {
    pub(crate) fn name(self) -> &'static str {
        match self {
            ColorWhen::Auto => "auto",
            ColorWhen::Always => "always",
            ColorWhen::Never => "never",
        }
    }
}

/// The words of the command line with every `--set` in front. The parser lets those behind the command replace those
/// before it, and a setting must not get lost without a word.
pub(crate) fn hoist_set_flags(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words = words.peekable();
    let mut gathered: Vec<OsString> = words.next().into_iter().collect();
    let mut others = Vec::new();
    while let Some(word) = words.next() {
        if word == "--" {
            others.push(word);
            others.extend(words.by_ref());
        } else if word == "--set" {
            gathered.push(word);
            gathered.extend(words.next());
        } else if word.as_encoded_bytes().starts_with(b"--set=") {
            gathered.push(word);
        } else {
            others.push(word);
        }
    }
    gathered.extend(others);
    gathered
}

fn assignment(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write it as KEY=VALUE, such as limits.max_steps=10")?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}

#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    #[command(flatten)]
    Work(WorkCommand),
    #[command(flatten)]
    Print(PrintCommand),
}

/// What needs the user's folders and settings.
#[derive(Debug, Subcommand)]
pub(crate) enum WorkCommand {
    /// Run a task without the interface
    Run(Box<RunCommandArgs>),
    /// Watch the whole loop at work on a sample project, with a scripted model, offline
    Demo,
    /// Explain what a command may do, and why
    #[command(subcommand)]
    Permissions(PermissionsCommand),
    /// Run one tool by hand and print its result as JSON
    Tool(ToolCommandArgs),
    /// Run recorded sessions again, offline, and prove that every request is the same
    Replay(ReplayArgs),
    /// Show the settings, where each comes from, and where the files are
    #[command(subcommand)]
    Config(ConfigCommand),
    /// List, show and delete sessions
    #[command(subcommand)]
    Sessions(SessionsCommand),
    /// Let this project's settings do what needs your trust: allow rules, providers, the shell's startup script
    Trust(TrustArgs),
    /// List models, try one out, and look at what their servers say
    #[command(subcommand)]
    Models(ModelsCommand),
    /// Store the key of a provider, for you alone; a variable with a key comes first
    Login {
        /// The provider, such as anthropic; `helve models list` shows them all
        provider: String,
    },
    /// Forget the stored key of a provider
    Logout {
        /// The provider
        provider: String,
    },
    /// Check what works here, what does not, and how to fix it
    Doctor(DoctorArgs),
}

/// What needs nothing but the program.
#[derive(Debug, Subcommand)]
pub(crate) enum PrintCommand {
    /// Print a shell completion script
    Completions {
        /// The shell that you use
        shell: Shell,
    },
    /// Print a page of the reference, as Markdown
    Reference {
        /// Which page
        page: ReferencePage,
    },
}

impl WorkCommand {
    /// For the logs, which may be shown to others.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            WorkCommand::Run(_) => "run",
            WorkCommand::Demo => "demo",
            WorkCommand::Permissions(PermissionsCommand::Explain { .. }) => "permissions.explain",
            WorkCommand::Tool(_) => "tool",
            WorkCommand::Replay(_) => "replay",
            WorkCommand::Config(ConfigCommand::Show { .. }) => "config.show",
            WorkCommand::Config(ConfigCommand::Schema) => "config.schema",
            WorkCommand::Config(ConfigCommand::Path { .. }) => "config.path",
            WorkCommand::Sessions(SessionsCommand::List { .. }) => "sessions.list",
            WorkCommand::Sessions(SessionsCommand::Show { .. }) => "sessions.show",
            WorkCommand::Sessions(SessionsCommand::Delete { .. }) => "sessions.delete",
            WorkCommand::Trust(_) => "trust",
            WorkCommand::Models(ModelsCommand::List { .. }) => "models.list",
            WorkCommand::Models(ModelsCommand::Probe { .. }) => "models.probe",
            WorkCommand::Models(ModelsCommand::Decode { .. }) => "models.decode",
            WorkCommand::Login { .. } => "login",
            WorkCommand::Logout { .. } => "logout",
            WorkCommand::Doctor(_) => "doctor",
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum PermissionsCommand {
    /// Tell which programs a command would run, which files it would write, and what the rules say of it
    Explain {
        /// The commands, each as one word
        #[arg(required_unless_present = "file")]
        command: Vec<String>,
        /// Explain every line of a file, one JSON line each
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
        /// As JSON, one line each
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        permitting: PermissionArgs,
    },
}

/// What may be done in this run.
#[derive(Debug, clap::Args)]
pub(crate) struct PermissionArgs {
    /// How freely it may act: plan, ask, accept-edits, auto or bypass
    #[arg(long, value_name = "MODE")]
    pub(crate) permission_mode: Option<String>,
    /// Allow what this rule covers, such as 'shell(npm test:*)'; can be given several times
    #[arg(long, value_name = "RULE")]
    pub(crate) allow: Vec<String>,
    /// Ask before what this rule covers
    #[arg(long, value_name = "RULE")]
    pub(crate) ask: Vec<String>,
    /// Never do what this rule covers
    #[arg(long, value_name = "RULE")]
    pub(crate) deny: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ToolCommandArgs {
    /// The tool; without it, all tools are listed
    pub(crate) name: Option<String>,
    /// Its input; piped, or with `-`, it is read from the standard input
    #[arg(value_name = "JSON")]
    pub(crate) input: Option<String>,
    /// Say yes to what would be asked
    #[arg(short, long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) permitting: PermissionArgs,
    /// List the tools with the schemas of their inputs
    #[arg(long = "json", conflicts_with = "name")]
    pub(crate) json_list: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RunCommandArgs {
    /// What to do; piped input is added to it
    pub(crate) prompt: Vec<String>,
    /// How to tell what happens
    #[arg(long, value_name = "FORM", default_value = "text")]
    pub(crate) output: OutputFormat,
    /// Print the last answer only
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Resume this session: its id, the beginning or the end of it, or `last`
    #[arg(long, value_name = "ID", conflicts_with = "continue_last")]
    pub(crate) resume: Option<String>,
    /// Resume the last session of this project
    #[arg(long = "continue", conflicts_with = "resume")]
    pub(crate) continue_last: bool,
    /// Go on from another session (`last` for the last one), or from the end of one of its turns, in a session of its own
    #[arg(long, value_name = "ID[@TURN]", conflicts_with_all = ["resume", "continue_last"])]
    pub(crate) fork: Option<String>,
    /// Read what to do from a file, or from the standard input with `-`; words and piped text come after it
    #[arg(long, value_name = "FILE")]
    pub(crate) instruction_file: Option<PathBuf>,
    /// Show the model a picture or a PDF; can be given several times
    #[arg(long, value_name = "FILE")]
    pub(crate) image: Vec<PathBuf>,
    /// What the standard input holds
    #[arg(long, value_name = "FORM", default_value = "text")]
    pub(crate) input: InputFormat,
    /// Do not offer this tool to the model; can be given several times
    #[arg(long, value_name = "NAME")]
    pub(crate) remove_tool: Vec<String>,
    /// Run the model's commands with this shell instead of bash
    #[arg(long, value_name = "NAME")]
    pub(crate) shell: Option<String>,
    /// Let every shell of the model's read this script first
    #[arg(long, value_name = "FILE")]
    pub(crate) startup_script: Option<String>,
    /// Stop after so many steps (model requests)
    #[arg(long, value_name = "N", visible_alias = "max-turns")]
    pub(crate) max_steps: Option<String>,
    /// Stop when so much was spent
    #[arg(long, value_name = "USD")]
    pub(crate) max_cost: Option<String>,
    /// Stop after so long, such as 90s or 10m
    #[arg(long, value_name = "DURATION")]
    pub(crate) max_time: Option<String>,
    /// Say yes to what would be asked, but for what can't be meant
    #[arg(short, long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) permitting: PermissionArgs,
}

impl RunCommandArgs {
    /// Whether it takes up what was there before.
    pub(crate) fn goes_on(&self) -> bool {
        self.continue_last || self.resume.is_some()
    }
}

impl WorkCommand {
    /// The settings that flags of the command stand for: key, value, and what the user typed.
    pub(crate) fn settings(&self) -> Vec<(&'static str, String, &'static str)> {
        let mode = self.permitting().and_then(PermissionArgs::mode);
        let WorkCommand::Run(run) = self else { return mode.into_iter().collect() };
        let own = [
            ("limits.max_steps", &run.max_steps, "--max-steps"),
            ("limits.max_cost", &run.max_cost, "--max-cost"),
            ("limits.max_time", &run.max_time, "--max-time"),
            ("shell.program", &run.shell, "--shell"),
            ("shell.startup", &run.startup_script, "--startup-script"),
        ];
        let own = own.into_iter().filter_map(|(key, value, shown)| Some((key, value.clone()?, shown)));
        let removed: Vec<String> = run.remove_tool.iter().map(|name| format!("{name:?}")).collect();
        let removed = (!removed.is_empty())
            .then(|| ("tools.remove", format!("[{}]", removed.join(", ")), "--remove-tool"));
        own.chain(removed).chain(mode).collect()
    }

    fn permitting(&self) -> Option<&PermissionArgs> {
        match self {
            WorkCommand::Run(run) => Some(&run.permitting),
            WorkCommand::Tool(call) => Some(&call.permitting),
            WorkCommand::Permissions(PermissionsCommand::Explain { permitting, .. }) => Some(permitting),
            _ => None,
        }
    }

    /// Rules of the command line.
    pub(crate) fn rules(&self) -> Vec<(PermissionVerdict, String)> {
        self.permitting().map(PermissionArgs::rules).unwrap_or_default()
    }
}

impl PermissionArgs {
    pub(crate) fn mode(&self) -> Option<(&'static str, String, &'static str)> {
        self.permission_mode.clone().map(|mode| ("permissions.mode", mode, "--permission-mode"))
    }

    pub(crate) fn rules(&self) -> Vec<(PermissionVerdict, String)> {
        let PermissionArgs { allow, ask, deny, .. } = self;
        let lists = [
            (PermissionVerdict::Deny, deny),
            (PermissionVerdict::Ask, ask),
            (PermissionVerdict::Allow, allow),
        ];
        lists
            .into_iter()
            .flat_map(|(verdict, list)| list.iter().map(move |text| (verdict, text.clone())))
            .collect()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum InputFormat {
    /// More of the instruction
    Text,
    /// Commands and queries, one JSON object a line, until it ends; questions are asked as events
    StreamJson,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// The answer, with what is done on the standard error
    Text,
    /// One JSON object at the end
    Json,
    /// Every event, one JSON object a line, and the result as the last
    StreamJson,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Show every setting with its value and where it comes from
    Show {
        /// Only this setting, or those below it, such as limits
        key: Option<String>,
        /// As JSON
        #[arg(long)]
        json: bool,
        /// Show values that may hold a password or a key, too
        #[arg(long)]
        secrets: bool,
    },
    /// Print the JSON schema of config.toml, for editors
    Schema,
    /// Show where the settings files are, the weakest first
    Path {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// List the sessions, the last used first
    List {
        /// Only those of the current project
        #[arg(long)]
        here: bool,
        /// Show at most so many
        #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
        limit: usize,
        /// All of them, whatever the limit, sub-agents' too
        #[arg(long)]
        all: bool,
        /// One JSON object a line, without limit
        #[arg(long)]
        json: bool,
    },
    /// Show the conversation of a session
    Show {
        /// The id, its beginning or its end, or `last`
        id: String,
        /// The messages as JSON
        #[arg(long, conflicts_with = "events")]
        json: bool,
        /// The events, one JSON object a line
        #[arg(long)]
        events: bool,
    },
    /// Delete sessions, with everything that belongs to them
    Delete {
        /// The ids, their beginnings or their ends, or `last`
        #[arg(required = true)]
        ids: Vec<String>,
        /// Delete their forks too
        #[arg(long)]
        forks: bool,
        /// Delete without asking
        #[arg(short, long)]
        yes: bool,
    },
}

#[derive(Debug, clap::Args)]
pub(crate) struct ReplayArgs {
    /// The ids, their beginnings or their ends, or `last`
    #[arg(required_unless_present = "all")]
    pub(crate) ids: Vec<String>,
    /// All sessions
    #[arg(long, conflicts_with = "ids")]
    pub(crate) all: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct TrustArgs {
    /// Trust this project no longer
    #[arg(long, conflicts_with_all = ["list", "yes"])]
    pub(crate) forget: bool,
    /// List the projects that you trust
    #[arg(long)]
    pub(crate) list: bool,
    /// Trust it without asking
    #[arg(short, long)]
    pub(crate) yes: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct DoctorArgs {
    /// Repair what can be repaired; damaged files are kept under another name
    #[arg(long)]
    pub(crate) repair: bool,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ModelsCommand {
    /// List the providers and the models that can be used here, and why others can't
    List {
        /// Only of this provider
        provider: Option<String>,
        /// Every model that Helve knows, usable or not, old ones too
        #[arg(long)]
        all: bool,
        /// As JSON, with everything that is known
        #[arg(long)]
        json: bool,
    },
    /// Try a model out: does it answer, does it call a tool, how fast is it? Costs a few tokens
    Probe {
        /// The model, instead of the one that you have chosen
        name: Option<String>,
    },
    /// Print what a recorded response body says, as JSON; for bug reports
    Decode {
        /// The body of the response; `-` for the standard input
        file: PathBuf,
        /// The protocol that the server speaks
        #[arg(long, value_parser = wire_protocol())]
        wire: WireProtocol,
        /// Read it in pieces of so many bytes, as a network might give it
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        chunk: Option<u32>,
    },
}

/// Takes the name of a wire protocol, and lists all of them in the help.
fn wire_protocol() -> impl TypedValueParser<Value = WireProtocol> {
    let names = WireProtocol::ALL.map(|wire| PossibleValue::new(wire.name()).help(wire.title()));
    PossibleValuesParser::new(names).try_map(|name| serde_json::from_value(Value::String(name)))
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ReferencePage {
    /// The command line
    Commands,
    /// Environment variables
    Environment,
    /// Events, commands and queries in their JSON form
    Events,
    /// Keys of the interface
    Keys,
    /// Settings
    Settings,
}
