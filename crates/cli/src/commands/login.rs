//! `helve login` and `helve logout`

use std::io::{self, IsTerminal, Read, Write};
use std::path::Path;
use std::sync::Arc;

use helve_config::KeyStore;
use helve_models::{KeyOrigin, ModelProvider};

use crate::console::{self, ConsoleOutput, GOOD, WARN};
use crate::failure::{CliFailure, ProgramExit};
use crate::setup::CliSetup;
use crate::text::{self, one_line};
use crate::user_models::{UserModels, stored_keys};

/// No key is longer.
const MAX_KEY_BYTES: u64 = 16 << 10;

pub(crate) fn login(
    name: &str,
    setup: &CliSetup,
    screen: &mut ConsoleOutput,
) -> Result<ProgramExit, CliFailure> {
    let provider = known(name, setup)?;
    let key = read_key(&provider)?;
    let keys = setup.places.keys();
    store(&provider.name, &key, &keys)?;
    let path = text::path(&keys);
    writeln!(screen, "{GOOD}✓{GOOD:#} The key for {} is stored in {path}, for you alone.", provider.name)?;
    mention_variable(&provider);
    Ok(ProgramExit::Success)
}

/// Stores a key for the user alone.
pub(super) fn store(provider: &str, key: &str, path: &Path) -> Result<(), CliFailure> {
    let failed = |error| CliFailure::keys("the key was not stored", &error);
    let mut keys = KeyStore::read(path).map_err(failed)?;
    keys.store(provider, key).map_err(failed)
}

pub(crate) fn logout(
    name: &str,
    setup: &CliSetup,
    screen: &mut ConsoleOutput,
) -> Result<ProgramExit, CliFailure> {
    let mut keys = stored_keys(setup)?;
    // A provider that was taken out of the settings may still have a key here.
    let provider = known(name, setup);
    let name = provider.as_ref().map_or(name, |provider| &provider.name);
    if let (None, Err(failure)) = (keys.get(name), provider.as_ref()) {
        console::print_to_stderr(&format!("{WARN}helve: {}{WARN:#}", one_line(&failure.to_string())));
        return Ok(ProgramExit::Usage);
    }
    if keys.get(name).is_none() {
        writeln!(screen, "There is no stored key for {}.", one_line(name))?;
    } else {
        let forgotten = keys.forget(name);
        forgotten.map_err(|error| CliFailure::keys("the key is still stored", &error))?;
        writeln!(screen, "{GOOD}✓{GOOD:#} The key for {name} is forgotten.")?;
    }
    if let Ok(provider) = &provider {
        mention_variable(provider);
    }
    Ok(ProgramExit::Success)
}

fn known(name: &str, setup: &CliSetup) -> Result<Arc<ModelProvider>, CliFailure> {
    let models = UserModels::new(setup)?;
    models
        .router
        .provider(name)
        .cloned()
        .map_err(|error| CliFailure::usage("nothing was done", &error, error.hint()))
}

/// A variable comes before what is stored, which may surprise.
fn mention_variable(provider: &ModelProvider) {
    if let Some(KeyOrigin::Variable(name)) = provider.key.as_ref().map(|key| &key.origin) {
        console::print_to_stderr(&format!(
            "{WARN}helve: {name} is set, and comes before a stored key{WARN:#}"
        ));
    }
}

/// The key from a person, who does not see it, or from the standard input.
fn read_key(provider: &ModelProvider) -> Result<String, CliFailure> {
    let unreadable = |error: io::Error| CliFailure::new("the key can't be read", error, "Try it again.");
    let key = if io::stdin().is_terminal() {
        console::ask_secret(&format!("The key for {} (it is not shown): ", provider.name))
            .map_err(unreadable)?
    } else {
        let mut key = String::new();
        io::stdin().take(MAX_KEY_BYTES).read_to_string(&mut key).map_err(unreadable)?;
        key
    };
    check_key(&key, provider)
}

/// The key in what was given for it, or why there is none.
pub(super) fn check_key(given: &str, provider: &ModelProvider) -> Result<String, CliFailure> {
    let key = given.trim();
    let wrong = |why: &str| {
        let hint = format!("Give one: `helve login {}` asks for it, or reads it from a pipe.", provider.name);
        Err(CliFailure::usage("no key was stored", why, hint))
    };
    match key {
        "" => wrong("nothing was given"),
        key if key.len() > 4_096 => wrong("that is too long for a key"),
        key if key.starts_with(['"', '\''])
            || provider.key_names.iter().any(|name| key.starts_with(name)) =>
        {
            wrong("that is more than a key: give only what stands behind the equals sign, without quotes")
        }
        key if !key.bytes().all(|byte| byte.is_ascii_graphic()) => {
            wrong("a key is one word of letters, digits and signs")
        }
        key => Ok(key.to_owned()),
    }
}
