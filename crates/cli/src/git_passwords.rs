//! Passwords for git, from the user's own stores, without a shell.
//!
//! Git asks its credential helpers through a shell. Where it has the user's credentials there is none: so it has no helpers,
//! and asks this program (`GIT_ASKPASS`), once for the name of the user and once for the password. This program asks the stores
//! that are named in a variable, as git would.

use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

/// The stores, as commands.
pub(crate) const STORES_VARIABLE: &str = "HELVE_GIT_PASSWORD_STORES";
/// What stands between two stores, and between the words of one.
const BETWEEN_STORES: &str = "\n";
const BETWEEN_WORDS: &str = "\t";
/// No store has more to say.
const MAX_ANSWER_BYTES: u64 = 64 << 10;

/// This program's own file, also after an update has replaced it.
pub(crate) fn own_path() -> Option<PathBuf> {
    let path = std::env::current_exe().ok()?;
    let replaced = path.to_str().and_then(|path| path.strip_suffix(" (deleted)")).map(PathBuf::from);
    [Some(path), replaced].into_iter().flatten().find(|path| path.is_file())
}

/// The stores as they stand in the variable.
pub(crate) fn as_variable(stores: &[Vec<OsString>]) -> OsString {
    let stores: Vec<OsString> = stores.iter().map(|words| words.join(OsStr::new(BETWEEN_WORDS))).collect();
    stores.join(OsStr::new(BETWEEN_STORES))
}

/// Answers git, if this process was started to do so.
pub(crate) fn askpass_main(args: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    let stores = std::env::var(STORES_VARIABLE).ok()?;
    let question = args.skip(1).collect::<Vec<_>>().join(OsStr::new(" "));
    let answer = question.to_str().and_then(PasswordQuestion::parse).and_then(|question| {
        let stores = stores.split(BETWEEN_STORES).filter(|store| !store.is_empty());
        { stores }.find_map(|store| question.ask(&store.split(BETWEEN_WORDS).collect::<Vec<_>>()))
    });
    Some(match answer {
        Some(answer) if writeln!(std::io::stdout(), "{answer}").is_ok() => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

/// What git wants to know, and about which server.
#[derive(Debug, PartialEq, Eq)]
struct PasswordQuestion {
    /// The field of a store's answer that is wanted.
    field: &'static str,
    protocol: String,
    /// With its port.
    host: String,
    path: Option<String>,
    username: Option<String>,
}

impl PasswordQuestion {
    /// Reads `Username for 'https://host': ` and `Password for 'https://me@host': `.
    fn parse(text: &str) -> Option<PasswordQuestion> {
        let (what, rest) = text.split_once(" for '")?;
        let (address, _) = rest.rsplit_once('\'')?;
        let field = match what {
            "Username" => "username",
            "Password" => "password",
            _ => return None,
        };
        let (protocol, rest) = address.split_once("://")?;
        let (authority, path) =
            rest.split_once('/').map_or((rest, None), |(before, path)| (before, Some(path)));
        let (username, host) =
            authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
        let question = PasswordQuestion {
            field,
            protocol: Some(protocol).filter(|protocol| matches!(*protocol, "https" | "http"))?.to_owned(),
            host: Some(decoded(host)?).filter(|host| !host.is_empty())?,
            path: match path.filter(|path| !path.is_empty()) {
                Some(path) => Some(decoded(path)?),
                None => None,
            },
            username: match username {
                Some(username) => Some(decoded(username)?),
                None => None,
            },
        };
        Some(question)
    }

    /// As stores want to be asked.
    fn request(&self) -> String {
        let fields = [("path", &self.path), ("username", &self.username)];
        let more = fields.iter().filter_map(|(name, value)| Some(format!("{name}={}\n", value.as_ref()?)));
        format!("protocol={}\nhost={}\n{}\n", self.protocol, self.host, more.collect::<String>())
    }

    fn ask(&self, store: &[&str]) -> Option<String> {
        let (program, arguments) = store.split_first()?;
        let mut command = Command::new(program);
        command.args(arguments).arg("get").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut running = command.spawn().ok()?;
        // One that does not listen may answer all the same.
        let _ = running.stdin.take()?.write_all(self.request().as_bytes());
        let mut answer = String::new();
        let read = running.stdout.take()?.take(MAX_ANSWER_BYTES).read_to_string(&mut answer);
        let is_well = running.wait().is_ok_and(|status| status.success());
        let line = |line: &str| Some(line.strip_prefix(self.field)?.strip_prefix('=')?.to_owned());
        read.ok().filter(|_| is_well).and_then(|_| answer.lines().find_map(line))
    }
}

/// A part of an address with its escapes resolved. One that holds the end of a line could pass for more than one field.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok().filter(|text| !text.contains(['\n', '\r', '\0']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_git_asks_is_understood() {
        let question =
            |text: &str| PasswordQuestion::parse(text).map(|question| (question.field, question.request()));
        let host = "protocol=https\nhost=example.com:8443\n\n".to_owned();
        assert_eq!(question("Username for 'https://example.com:8443': "), Some(("username", host)));
        let me = "protocol=http\nhost=h\npath=a/b.git\nusername=me@work\n\n".to_owned();
        assert_eq!(question("Password for 'http://me%40work@h/a/b.git': "), Some(("password", me)));
        for strange in [
            "",
            "Password: ",
            "Password for 'cert:///key': ",
            "Password for 'https://': ",
            "Password for 'https://a%0ahost=b': ",
            "Enter passphrase for key '/home/me/.ssh/id': ",
        ] {
            assert_eq!(question(strange), None, "{strange}");
        }
    }

    #[test]
    fn the_first_store_that_knows_answers() {
        let question = PasswordQuestion::parse("Password for 'https://me@h': ").unwrap();
        let answer = "while read -r l && [ -n \"$l\" ]; do :; done; echo username=me; echo password=p=w";
        assert_eq!(question.ask(&["sh", "-c", answer]).as_deref(), Some("p=w"));
        assert_eq!(question.ask(&["sh", "-c", "exit 1"]), None);
        assert_eq!(question.ask(&["/nowhere/at/all"]), None);
    }
}
