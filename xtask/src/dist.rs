//! The files of a release, for the machine that this runs on: an archive, a Debian package, a list of
//! what is in them (SBOM), and the files that the container image is made of.
//!
//! The same sources and binary make the same bytes: entries are sorted, owned by root and as old as the
//! last commit (or `SOURCE_DATE_EPOCH`).

use std::{
    env, fs, io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use crate::release;

mod deb;
mod sbom;

/// A release that is being put together.
struct Release<'a> {
    root: &'a Path,
    /// The folder of the finished files.
    folder: PathBuf,
    /// The folder of trees that are packed.
    stage: PathBuf,
    binary: PathBuf,
    version: String,
    /// The target triple of the binary.
    target: String,
    /// Seconds since 1970 that every file is as old as.
    epoch: String,
}

/// Makes the files below `dist/` in the target folder and returns their paths. Builds the gateway as
/// it is shipped unless a binary is given.
pub(crate) fn run(root: &Path, binary: Option<&Path>) -> io::Result<Vec<PathBuf>> {
    let binary = match binary {
        Some(binary) => fs::canonicalize(binary)?,
        None => release::run(root)?,
    };
    let folder = root.join(env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()));
    let folder = folder.join("dist");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let release = Release {
        root,
        stage: folder.join("stage"),
        folder,
        version: version_of(&binary)?,
        binary,
        target: release::host()?,
        epoch: epoch(root)?,
    };
    let made = release.made();
    let _ = fs::remove_dir_all(&release.stage);
    made
}

impl Release<'_> {
    fn made(&self) -> io::Result<Vec<PathBuf>> {
        let generated = self.stage.join("generated");
        done(Command::new(&self.binary).arg("generate").arg("--out").arg(&generated))?;
        let mut made = vec![self.archive(&generated)?, deb::package(self, &generated)?];
        let sbom = self.folder.join(format!("{}.cdx.json", self.name()));
        fs::write(&sbom, sbom::of(self.root, &self.target, &self.version, &self.epoch)?)?;
        made.push(sbom);
        for path in made.clone() {
            made.push(checksum(&path)?);
        }
        self.image()?;
        Ok(made)
    }

    fn name(&self) -> String {
        format!("portcullis-{}-{}", self.version, self.target)
    }

    /// The archive of a binary and what belongs to it, for any Linux.
    fn archive(&self, generated: &Path) -> io::Result<PathBuf> {
        let name = self.name();
        let tree = self.stage.join(&name);
        install(&self.binary, &tree.join("portcullis"), 0o755)?;
        for (from, to) in [
            ("LICENSE", "LICENSE"),
            ("README.md", "README.md"),
            ("docs/portcullis.starter.toml", "portcullis.starter.toml"),
            ("docs/portcullis.example.toml", "portcullis.example.toml"),
            ("deploy/systemd/portcullis.service", "systemd/portcullis.service"),
            ("deploy/systemd/portcullis.sysusers", "systemd/portcullis.sysusers"),
            ("deploy/helm/portcullis/portcullis.rules.yml", "prometheus/portcullis.rules.yml"),
        ] {
            install(&self.root.join(from), &tree.join(to), 0o644)?;
        }
        for folder in ["completions", "man"] {
            for file in files(&generated.join(folder))? {
                let name = file.file_name().unwrap_or_default();
                install(&file, &tree.join(folder).join(name), 0o644)?;
            }
        }
        let archive = self.folder.join(format!("{name}.tar.gz"));
        let mut tar = Command::new("tar");
        tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mode=go-w"]);
        tar.args(["--format=ustar", "--use-compress-program=gzip -n"]);
        tar.arg(format!("--mtime=@{}", self.epoch)).arg("-C").arg(&self.stage).arg("-cf");
        done(tar.arg(&archive).arg(&name))?;
        Ok(archive)
    }

    /// The tree that the container image takes its files from.
    fn image(&self) -> io::Result<()> {
        let tree = self.folder.join("image");
        install(&self.binary, &tree.join("usr/local/bin/portcullis"), 0o755)?;
        let state = tree.join("var/lib/portcullis");
        fs::create_dir_all(&state)?;
        fs::set_permissions(state, fs::Permissions::from_mode(0o700))
    }
}

/// Copies a file, makes the folders above it, and sets its mode.
fn install(from: &Path, to: &Path, mode: u32) -> io::Result<()> {
    write(to, &read(from)?, mode)
}

/// Writes a file, makes the folders above it, and sets its mode.
fn write(to: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(to, bytes)?;
    fs::set_permissions(to, fs::Permissions::from_mode(mode))
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    fs::read(path).map_err(|error| io::Error::other(format!("`{}`: {error}", path.display())))
}

/// The files of a folder, sorted.
fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let paths = fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path()));
    let mut paths = paths.collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

/// Writes `FILE.sha256` beside a file, in the form that `sha256sum --check` reads.
fn checksum(path: &Path) -> io::Result<PathBuf> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let name = path.file_name().unwrap_or_default();
    let sum = output(Command::new("sha256sum").current_dir(folder).arg(name))?;
    let mut beside = path.as_os_str().to_owned();
    beside.push(".sha256");
    fs::write(&beside, sum)?;
    Ok(beside.into())
}

/// The version that a binary tells: also a proof that it runs here.
fn version_of(binary: &Path) -> io::Result<String> {
    let told = output(Command::new(binary).arg("--version"))?;
    let version = told.trim().strip_prefix("portcullis ").map(str::to_owned);
    version.ok_or_else(|| io::Error::other(format!("`{}` is no Portcullis", binary.display())))
}

fn epoch(root: &Path) -> io::Result<String> {
    if let Ok(epoch) = env::var("SOURCE_DATE_EPOCH") {
        return Ok(epoch);
    }
    let told = output(Command::new("git").current_dir(root).args(["log", "-1", "--format=%ct"]));
    told.map(|told| told.trim().to_owned()).map_err(|error| {
        io::Error::other(format!("{error}; set SOURCE_DATE_EPOCH where there is no git repository"))
    })
}

/// Output of a command; fails with its words when it fails.
fn output(command: &mut Command) -> io::Result<String> {
    let output = command.output().map_err(|error| named(command, &error))?;
    if !output.status.success() {
        return Err(named(command, &String::from_utf8_lossy(&output.stderr)));
    }
    String::from_utf8(output.stdout).map_err(io::Error::other)
}

fn done(command: &mut Command) -> io::Result<()> {
    output(command).map(drop)
}

fn named(command: &Command, what: &dyn std::fmt::Display) -> io::Error {
    io::Error::other(format!("`{}`: {what}", command.get_program().to_string_lossy()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BINARY: &str = "#!/bin/sh\n\
        if [ \"$1\" = --version ]; then echo portcullis 9.8.7; exit; fi\n\
        mkdir -p \"$3/completions\" \"$3/man\"\n\
        for name in portcullis.bash _portcullis portcullis.fish; do\n\
            echo \"# $name\" > \"$3/completions/$name\"\n\
        done\n\
        echo .TH portcullis > \"$3/man/portcullis.1\"\n";

    fn made_in(folder: &Path) -> Vec<PathBuf> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let binary = folder.join("portcullis");
        let script = folder.join("script");
        fs::write(&script, BINARY).unwrap();
        // Another process writes it: a child that another test starts meanwhile would hold it open
        // for writing, and then it cannot be run.
        done(Command::new("install").arg("-m755").arg(&script).arg(&binary)).unwrap();
        let folder = folder.join("dist");
        fs::create_dir_all(&folder).unwrap();
        let release = Release {
            root,
            stage: folder.join("stage"),
            folder,
            version: version_of(&binary).unwrap(),
            binary,
            target: release::host().unwrap(),
            epoch: "1700000000".to_owned(),
        };
        release.made().unwrap()
    }

    #[test]
    fn the_same_sources_make_the_same_bytes() {
        let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());

        let made = folders.each_ref().map(|folder| made_in(folder.path()));

        assert_eq!(made[0].len(), 6);
        for (one, other) in made[0].iter().zip(&made[1]) {
            assert!(fs::read(one).unwrap() == fs::read(other).unwrap(), "{}", one.display());
        }
    }

    #[test]
    fn the_archive_has_everything_in_one_folder_and_belongs_to_root() {
        let folder = tempfile::tempdir().unwrap();
        let made = made_in(folder.path());

        let told =
            output(Command::new("tar").arg("--list").arg("--verbose").arg("-f").arg(&made[0]));

        let told = told.unwrap();
        let name = format!("portcullis-9.8.7-{}", release::host().unwrap());
        for path in ["LICENSE", "man/portcullis.1", "systemd/portcullis.service"] {
            assert!(told.contains(&format!("{name}/{path}\n")), "{path}: {told}");
        }
        assert!(told.lines().all(|line| line.contains(" 0/0 ")), "{told}");
        let mut checked = Command::new("sha256sum");
        checked.arg("--check").arg(&made[3]).current_dir(made[0].parent().unwrap());
        assert!(output(&mut checked).is_ok());
    }

    #[test]
    fn another_program_is_refused() {
        assert!(version_of(Path::new("/bin/true")).is_err());
    }
}
