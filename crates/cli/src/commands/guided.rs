//! The first start in the interface: a model is found with the user, and a project's settings are trusted or not.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::sync::Arc;
use std::time::Instant;

use helve_config::Trust;
use helve_models::{Place, VENDORS, Vendor};
use helve_tui::{Device, Guide, Helper, Led, Look, Nearby, lead};
use ratatui::layout::Size;

use super::login::{checked, store};
use super::trust::{asked_for, give};
use crate::confine::own_program;
use crate::failure::{Exit, Failure};
use crate::models::{Models, block_on};
use crate::setup::Setup;

pub(super) type Terminal = Device<File, fn() -> Size>;

/// How the keys of some providers begin. Others look like each other.
const PREFIXES: [(&str, &str); 10] = [
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
pub(super) enum Guided {
    /// There is a model.
    Ready(Box<Models>),
    Demo,
    Left(Exit),
}

/// Sees to it that there is a model.
pub(super) async fn find_model(
    setup: &Setup,
    look: &Look,
    open: impl FnOnce() -> Result<Terminal, Failure>,
    terminal: &mut Option<Terminal>,
) -> Result<Guided, Failure> {
    let models = Models::new(setup)?;
    let failure = match models.main().await {
        Ok(found) => return Ok(Guided::Ready(Box::new(models.with_found(found)))),
        // A name that means nothing is a mistake, and no first start.
        Err(failure) if failure.exit() != Exit::NoKey => return Err(failure),
        Err(failure) => failure,
    };
    if terminal.is_none() {
        *terminal = Some(open()?);
    }
    let Some(device) = terminal.as_mut() else { return Ok(Guided::Left(Exit::Error)) };
    let helper = helper(setup)?;
    loop {
        let led = lead(Guide::to_a_model(look.clone(), &helper), device, &helper).await;
        match led.map_err(lost)? {
            Led::Local(model) => {
                return Ok(Guided::Ready(Box::new(Models::new(setup)?.choosing(Some(model)))));
            }
            Led::Demo => return Ok(Guided::Demo),
            Led::Skipped | Led::Trusted => return Err(failure),
            Led::Told => return Ok(Guided::Left(Exit::Interrupted)),
            Led::Key => {
                let models = Models::new(setup)?;
                // A key that is stored and can't be used is asked for again.
                if let Ok(found) = models.main().await {
                    return Ok(Guided::Ready(Box::new(models.with_found(found))));
                }
            }
        }
    }
}

/// Asks whether the project may do what needs trust. Without a yes it is worked on all the same, without those settings.
pub(super) async fn ask_for_trust(
    setup: &Setup,
    look: &Look,
    open: impl FnOnce() -> Result<Terminal, Failure>,
    terminal: &mut Option<Terminal>,
) -> Result<Option<Exit>, Failure> {
    let config = setup.config()?;
    if !matches!(config.trust(), Trust::Untrusted | Trust::Changed) {
        return Ok(None);
    }
    if terminal.is_none() {
        *terminal = Some(open()?);
    }
    let Some(device) = terminal.as_mut() else { return Ok(Some(Exit::Error)) };
    let helper = helper(setup)?;
    let guide = Guide::to_trust(asked_for(setup)?, look.clone(), &helper);
    match lead(guide, device, &helper).await.map_err(lost)? {
        Led::Told => Ok(Some(Exit::Interrupted)),
        Led::Trusted => {
            give(setup)?;
            close(device);
            Err(begin_again())
        }
        _ => Ok(None),
    }
}

/// The settings count from the beginning, so the program begins again. Comes back only if that fails.
pub(super) fn begin_again() -> Failure {
    let again = own_program()
        .map(|program| std::process::Command::new(program).args(std::env::args_os().skip(1)).exec());
    let error = again.unwrap_or_else(|error| error);
    Failure::new("the settings were not read again", error, "Start helve again.")
}

/// Puts the terminal back.
pub(super) fn close(device: &mut Terminal) {
    // One that is gone can't be put back.
    let _ = device.screen.leave();
    let _ = device.raw.pause();
}

fn lost(error: std::io::Error) -> Failure {
    Failure::new("the terminal can't be used any more", error, "Start helve again, or in another terminal.")
}

fn helper(setup: &Setup) -> Result<Helper, Failure> {
    let models = Arc::new(Models::impatient(setup)?);
    let offered = |vendor: &&Vendor| vendor.place == Place::Remote && !vendor.keys.is_empty();
    let providers =
        VENDORS.iter().filter(offered).map(|vendor| (vendor.name.to_owned(), vendor.title.to_owned()));
    let (known, keys) = (models.clone(), setup.places.keys());
    Ok(Helper {
        now: Arc::new(Instant::now),
        guess: Arc::new(|key| guess(key).map(str::to_owned)),
        providers: providers.collect(),
        store: Arc::new(move |provider, key| {
            let told = |failure: Failure| failure.to_string();
            let provider = known.router.provider(provider).map_err(|error| error.to_string())?;
            store(&provider.name, &checked(key, provider).map_err(told)?, &keys).map_err(told)
        }),
        look_around: Arc::new(move || block_on(nearby(&models)).unwrap_or_default()),
    })
}

async fn nearby(models: &Models) -> Nearby {
    let mut nearby = Nearby::default();
    for server in models.servers().await {
        nearby.odd.extend(server.oddity());
        let served = server.models.iter().flatten();
        nearby.models.extend(served.map(|model| format!("{}/{model}", server.provider.name)));
    }
    nearby
}

/// Whose key it is, if its beginning says so.
fn guess(key: &str) -> Option<&'static str> {
    PREFIXES.iter().find(|(prefix, _)| key.starts_with(prefix)).map(|(_, provider)| *provider)
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
            PREFIXES
                .iter()
                .all(|(_, provider)| Vendor::find(provider).is_some_and(|vendor| vendor.name == *provider))
        );
    }
}
