//! The first start in the interface: a model is found with the user, and a project's settings are trusted or not.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::sync::Arc;
use std::time::Instant;

use helve_config::ProjectTrust;
use helve_models::{ServerLocation, VENDORS, Vendor};
use helve_tui::{
    AppOptions, GuideOutcome, LocalModelScan, SetupGuide, SetupServices, TerminalDevice, run_guide,
};
use ratatui::layout::Size;

use super::login::{check_key, store};
use super::trust::{asked_for, give};
use crate::failure::{CliFailure, ProgramExit};
use crate::sandbox_policy::own_program;
use crate::setup::CliSetup;
use crate::user_models::{UserModels, block_on};

pub(super) type GuideTerminal = TerminalDevice<File, fn() -> Size>;

/// How the keys of some providers begin. Others look like each other.
const API_KEY_PREFIXES: [(&str, &str); 10] = [
    ("sk-ant-", "anthropic"),
    ("sk-or-", "openrouter"),
    ("sk-proj-", "openai"),
    ("sk-svcacct-", "openai"),
    ("AIza", "gemini"),
    ("gsk_", "groq"),
    ("xai-", "xai"),
    ("csk-", "cerebras"),
    ("fw_", "fireworks"),
    ("tgp_", "together"),
];

/// What came of the set-up.
pub(super) enum ModelSetup {
    /// There is a model.
    Ready(Box<UserModels>),
    Demo,
    Exit(ProgramExit),
}

/// Sees to it that there is a model.
pub(super) async fn find_model(
    setup: &CliSetup,
    look: &AppOptions,
    open: impl FnOnce() -> Result<GuideTerminal, CliFailure>,
    terminal: &mut Option<GuideTerminal>,
) -> Result<ModelSetup, CliFailure> {
    let models = UserModels::new(setup)?;
    let failure = match models.main().await {
        Ok(found) => return Ok(ModelSetup::Ready(Box::new(models.with_found(found)))),
        // A name that means nothing is a mistake, and no first start.
        Err(failure) if failure.exit() != ProgramExit::NoKey => return Err(failure),
        Err(failure) => failure,
    };
    if terminal.is_none() {
        *terminal = Some(open()?);
    }
    let Some(device) = terminal.as_mut() else { return Ok(ModelSetup::Exit(ProgramExit::Error)) };
    let helper = helper(setup)?;
    loop {
        let led = run_guide(SetupGuide::for_model(look.clone(), &helper), device, &helper).await;
        match led.map_err(lost)? {
            GuideOutcome::LocalModel(model) => {
                return Ok(ModelSetup::Ready(Box::new(UserModels::new(setup)?.choosing(Some(model)))));
            }
            GuideOutcome::Demo => return Ok(ModelSetup::Demo),
            GuideOutcome::Skipped | GuideOutcome::Trusted => return Err(failure),
            GuideOutcome::Terminated => return Ok(ModelSetup::Exit(ProgramExit::Interrupted)),
            GuideOutcome::KeyStored => {
                let models = UserModels::new(setup)?;
                // A key that is stored and can't be used is asked for again.
                if let Ok(found) = models.main().await {
                    return Ok(ModelSetup::Ready(Box::new(models.with_found(found))));
                }
            }
        }
    }
}

/// Asks whether the project may do what needs trust. Without a yes it is worked on all the same, without those settings.
pub(super) async fn ask_for_trust(
    setup: &CliSetup,
    look: &AppOptions,
    open: impl FnOnce() -> Result<GuideTerminal, CliFailure>,
    terminal: &mut Option<GuideTerminal>,
) -> Result<Option<ProgramExit>, CliFailure> {
    let config = setup.config()?;
    if !matches!(config.trust(), ProjectTrust::Untrusted | ProjectTrust::Changed) {
        return Ok(None);
    }
    if terminal.is_none() {
        *terminal = Some(open()?);
    }
    let Some(device) = terminal.as_mut() else { return Ok(Some(ProgramExit::Error)) };
    let helper = helper(setup)?;
    let guide = SetupGuide::for_trust(asked_for(setup)?, look.clone(), &helper);
    match run_guide(guide, device, &helper).await.map_err(lost)? {
        GuideOutcome::Terminated => Ok(Some(ProgramExit::Interrupted)),
        GuideOutcome::Trusted => {
            give(setup)?;
            close(device);
            Err(restart_program())
        }
        _ => Ok(None),
    }
}

/// The settings count from the beginning, so the program begins again. Comes back only if that fails.
pub(super) fn restart_program() -> CliFailure {
    let again = own_program()
        .map(|program| std::process::Command::new(program).args(std::env::args_os().skip(1)).exec());
    let error = again.unwrap_or_else(|error| error);
    CliFailure::new("the settings were not read again", error, "Start helve again.")
}

/// Puts the terminal back.
pub(super) fn close(device: &mut GuideTerminal) {
    // One that is gone can't be put back.
    let _ = device.screen.leave();
    let _ = device.raw.pause();
}

fn lost(error: std::io::Error) -> CliFailure {
    CliFailure::new(
        "the terminal can't be used any more",
        error,
        "Start helve again, or in another terminal.",
    )
}

fn helper(setup: &CliSetup) -> Result<SetupServices, CliFailure> {
    let models = Arc::new(UserModels::with_short_retries(setup)?);
    let offered = |vendor: &&Vendor| vendor.place == ServerLocation::Remote && !vendor.keys.is_empty();
    let providers =
        VENDORS.iter().filter(offered).map(|vendor| (vendor.name.to_owned(), vendor.title.to_owned()));
    let (known, keys) = (models.clone(), setup.places.keys());
    Ok(SetupServices {
        now: Arc::new(Instant::now),
        guess: Arc::new(|key| guess(key).map(str::to_owned)),
        providers: providers.collect(),
        store: Arc::new(move |provider, key| {
            let told = |failure: CliFailure| failure.to_string();
            let provider = known.router.provider(provider).map_err(|error| error.to_string())?;
            store(&provider.name, &check_key(key, provider).map_err(told)?, &keys).map_err(told)
        }),
        look_around: Arc::new(move || block_on(nearby(&models)).unwrap_or_default()),
    })
}

async fn nearby(models: &UserModels) -> LocalModelScan {
    let mut nearby = LocalModelScan::default();
    for server in models.servers().await {
        nearby.odd.extend(server.oddity());
        let served = server.models.iter().flatten();
        nearby.models.extend(served.map(|model| format!("{}/{model}", server.provider.name)));
    }
    nearby
}

/// Whose key it is, if its beginning says so.
fn guess(key: &str) -> Option<&'static str> {
    API_KEY_PREFIXES.iter().find(|(prefix, _)| key.starts_with(prefix)).map(|(_, provider)| *provider)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_known_by_their_beginning() {
        assert_eq!(guess("sk-ant-api03-x"), Some("anthropic"));
        assert_eq!(guess("sk-or-v1-x"), Some("openrouter"));
        assert_eq!(guess("sk-0123"), None);
        assert!(
            API_KEY_PREFIXES
                .iter()
                .all(|(_, provider)| Vendor::find(provider).is_some_and(|vendor| vendor.name == *provider))
        );
    }
}
