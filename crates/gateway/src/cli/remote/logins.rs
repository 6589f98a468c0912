//! Logins that are kept on this machine: a file for each gateway, readable by its user only.

use std::{
    env, fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use portcullis_app::replace_private_file;
use portcullis_core::{clock::Timestamp, secret::Secret};
use serde::{Deserialize, Serialize};

use crate::{boot::make_private, cli::output::Failure};

/// The largest file.
const MAX_BYTES: u64 = 64 << 10;

/// The tokens of a login, and the gateway that they are of.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KeptLogin {
    /// The gateway: they are sent nowhere else.
    pub(super) url: String,
    access_token: String,
    refresh_token: String,
    pub(super) expires_at: Timestamp,
    pub(super) scope: String,
}

impl KeptLogin {
    pub(super) fn new(
        url: String,
        access: &Secret,
        refresh: &Secret,
        expires_at: Timestamp,
        scope: String,
    ) -> Self {
        let text = |secret: &Secret| secret.expose().to_owned();
        Self { url, access_token: text(access), refresh_token: text(refresh), expires_at, scope }
    }

    pub(super) fn access_token(&self) -> Secret {
        Secret::new(self.access_token.clone())
    }

    pub(super) fn refresh_token(&self) -> Secret {
        Secret::new(self.refresh_token.clone())
    }
}

/// The file of the login at a gateway; it need not exist.
pub(super) struct LoginFile {
    path: PathBuf,
    url: String,
}

impl LoginFile {
    /// The file for the gateway at `url`, in the folder for state (XDG Base Directory Specification).
    pub(super) fn of(url: &str) -> Result<Self, Failure> {
        Ok(Self::within(&folder()?, url))
    }

    fn within(folder: &Path, url: &str) -> Self {
        let plain = |letter: char| letter.is_ascii_alphanumeric() || ".-".contains(letter);
        let name: String = url.chars().map(|it| if plain(it) { it } else { '_' }).collect();
        Self { path: folder.join(format!("{name}.json")), url: url.to_owned() }
    }

    /// The login; `None` if there is none of this gateway. Fails if others can read the file.
    pub(super) fn read(&self) -> Result<Option<KeptLogin>, Failure> {
        let wrong = |told: &str| -> Failure { format!("`{}`: {told}", self.path.display()).into() };
        let found = match fs::metadata(&self.path) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(wrong(&error.to_string())),
        };
        if found.mode() & 0o077 != 0 {
            return Err(wrong("others can read the tokens in it; `chmod 600` it, or log in again"));
        }
        if found.len() > MAX_BYTES {
            return Err(wrong("it is no login"));
        }
        let text = fs::read(&self.path).map_err(|error| wrong(&error.to_string()))?;
        let login: KeptLogin = serde_json::from_slice(&text)
            .map_err(|_| wrong("it is no login; remove it, and log in again"))?;
        Ok(Some(login).filter(|login| login.url == self.url))
    }

    /// Keeps a login in place of an earlier one.
    pub(super) fn write(&self, login: &KeptLogin) -> Result<(), Failure> {
        if let Some(folder) = self.path.parent() {
            make_private(folder).map_err(|error| format!("`{}`: {error}", folder.display()))?;
        }
        replace_private_file(&self.path, &serde_json::to_vec(login)?)
            .map_err(|error| format!("`{}`: {error}", self.path.display()).into())
    }

    /// Removes the login.
    pub(super) fn remove(&self) -> Result<(), Failure> {
        match fs::remove_file(&self.path) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(format!("`{}`: {error}", self.path.display()).into()),
        }
    }
}

/// `$XDG_STATE_HOME/portcullis/logins`, by default in `~/.local/state`.
fn folder() -> Result<PathBuf, Failure> {
    let given = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = given("XDG_STATE_HOME").or_else(|| Some(given("HOME")?.join(".local/state")));
    let state = state.ok_or("neither XDG_STATE_HOME nor HOME names a folder for the login")?;
    Ok(state.join("portcullis").join("logins"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn login(url: &str) -> KeptLogin {
        let secret = |text: &str| Secret::new(text.to_owned());
        let expires_at = Timestamp::from_micros(1_795_000_000_000_000);
        KeptLogin::new(url.to_owned(), &secret("a"), &secret("r"), expires_at, "admin".to_owned())
    }

    #[test]
    fn a_login_is_kept_for_its_user_and_its_gateway_only() {
        let folder = tempfile::tempdir().unwrap();
        let logins = folder.path().join("logins");
        let url = "https://gw.example:8443";
        let file = LoginFile::within(&logins, url);
        assert!(file.read().unwrap().is_none());

        file.write(&login(url)).unwrap();

        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!((mode(&file.path), mode(&logins)), (0o600, 0o700));
        assert_eq!(file.read().unwrap().unwrap().access_token().expose(), "a");
        let twin = LoginFile::within(&logins, "https://gw.example/8443");
        assert_eq!(twin.path, file.path);
        assert!(twin.read().unwrap().is_none(), "a file of another gateway is none");
        file.remove().unwrap();
        file.remove().unwrap();
        assert!(file.read().unwrap().is_none());
    }

    #[test]
    fn a_file_that_others_can_read_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let file = LoginFile::within(folder.path(), "https://gw.example");
        file.write(&login("https://gw.example")).unwrap();

        fs::set_permissions(&file.path, fs::Permissions::from_mode(0o640)).unwrap();

        assert!(file.read().is_err());
    }
}
